"""The store contract on SQLite, and what only this store promises."""

import asyncio
from pathlib import Path

import pytest

from coterie.ports.store import UseCase
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.ledger import Ledger, OpenedStore, OpenStore, World
from coterie.testing.store_contract import StoreContract


def open_sqlite(world: World) -> OpenedStore:
    """Open the store of the embedded host."""
    return SqliteStore(world.path, world.host, world.clock, world.ids, feed=world.feed)


class TestSqliteStore(StoreContract):
    """Collected here; the tests are the contract's."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """SQLite in a file."""
        return open_sqlite


async def test_who_asks_twice_without_waiting_is_served_in_that_order(tmp_path: Path) -> None:
    """What is brief waits for the next round of the loop, and what is not goes to another thread."""
    ledger = Ledger(open_sqlite, tmp_path / "coterie.db")
    await ledger.start()
    done: list[int] = []

    def act(number: int) -> UseCase[None, None]:
        return lambda _tx, _command, _now, _new_id: done.append(number)

    asked = [ledger.store.run(act(number), None, brief=number % 2 == 0) for number in range(6)]
    await asyncio.gather(*asked)
    await ledger.store.close()
    assert done == list(range(6))


async def test_how_quick_the_disk_is_follows_from_commits_that_write(tmp_path: Path) -> None:
    """A commit of nothing takes no time, and says nothing about the disk."""
    ledger = Ledger(open_sqlite, tmp_path / "coterie.db")
    await ledger.start()
    await ledger.session()
    assert isinstance(ledger.store, SqliteStore)
    quick = ledger.store.writer.flush_s
    for _ in range(10):
        await ledger.change(lambda _: None)
    assert ledger.store.writer.flush_s == quick > 0
    await ledger.store.close()


async def test_a_due_message_without_its_place_in_the_queue_keeps_no_start_busy(tmp_path: Path) -> None:
    """Rows that somebody has broken are told by `coterie verify`; a start must come to its end all the same."""
    ledger = Ledger(open_sqlite, tmp_path / "coterie.db")
    await ledger.start()
    source, target = await ledger.sessions("AB")
    await ledger.begin(target)
    sent = await ledger.send(source, target, expires_at=ledger.clock.now_ms() + 1000)
    await ledger.change(lambda tx: tx.inputs.remove_message(sent.message.id))
    ledger.clock.advance(2)
    async with asyncio.timeout(20):
        await ledger.restart()
    broken = await ledger.violations()
    await ledger.store.close()
    assert [one.ref for one in broken] == [sent.message.id]
