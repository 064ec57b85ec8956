"""What was answered is on the disk: every answer is held against what a loss of power would have left.

A watched disk writes down each call that SQLite makes and each answer that a client got, in one order. From that a
disk is built as it was at any moment: certain are the bytes that were synced, of the later ones any part may be lost.
"""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from tests.contract.disk import Cut, Disk, Event, Gone, NotSynced, Synced, Written, watched
from tests.contract.test_sqlite import open_sqlite
from tests.guarantees import guarantee

from coterie.app.idempotency import Key
from coterie.core.errors import StorageUnknownError
from coterie.storage.sqlite.check import check
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.ledger import Ledger

SECTOR: Final = 512


@dataclass(frozen=True, slots=True)
class Answered:
    """A client was told that its message is accepted."""

    message: str


@dataclass(slots=True)
class _File:
    certain: bytearray = field(default_factory=bytearray)
    open: list[Written | Cut] = field(default_factory=list[Written | Cut])
    """What may be lost, in order."""

    def settle(self) -> None:
        self.certain = self.after(self.open)
        self.open = []

    def after(self, changes: Sequence[Written | Cut]) -> bytearray:
        found = bytearray(self.certain)
        for change in changes:
            if isinstance(change, Cut):
                del found[change.size :]
                found.extend(bytes(change.size - len(found)))
            else:
                found.extend(bytes(max(0, change.offset - len(found))))
                found[change.offset : change.offset + len(change.data)] = change.data
        return found

    def torn(self, rng: random.Random) -> bytearray:
        """What is left when each later write has reached the disk or not, sector by sector."""
        return self.after([part for change in self.open for part in _parts(change) if rng.random() < 0.5])


def _parts(change: Written | Cut) -> list[Written | Cut]:
    if isinstance(change, Cut):
        return [change]
    ends = [*range(SECTOR - change.offset % SECTOR, len(change.data), SECTOR), len(change.data)]
    return [
        Written(change.file, change.offset + start, change.data[start:end])
        for start, end in zip((0, *ends), ends, strict=False)
    ]


class Platter:
    """The disk after some of the events."""

    def __init__(self) -> None:
        self.files: dict[str, _File] = {}

    def take(self, event: Event) -> None:
        """Let one more thing happen."""
        file = self.files.setdefault(event.file, _File())
        if isinstance(event, Synced):
            file.settle()
        elif isinstance(event, NotSynced):
            file.open = []
        elif isinstance(event, Gone):
            del self.files[event.file]
        else:
            file.open.append(event)

    def lose_power(self, path: Path, rng: random.Random | None = None) -> None:
        """Write what is left: nothing but what is certain, or with *rng* some of the rest too."""
        for end, file in self.files.items():
            Path(f"{path}{end}").write_bytes(file.torn(rng) if rng else file.certain)


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Disk]:
    """The disk that the ledger is on."""
    with watched(tmp_path / "coterie.db") as disk:
        yield disk


async def life(disk: Disk, path: Path, setting: str = "") -> list[Any]:
    """Let four clients write at once, with pages written back into the file now and then; what happened, in order.

    With a *setting* of `PRAGMA synchronous` other than the store's own.
    """
    ledger = Ledger(open_sqlite, path)
    await ledger.start()
    source, target = await ledger.sessions("AB")
    ledger.limit(inbox_max=10_000, chain_messages_max=10_000)
    await ledger.begin(source)
    assert isinstance(ledger.store, SqliteStore)
    connection = ledger.store.writer.driver.connection
    if setting:
        connection.execute(f"PRAGMA synchronous = {setting}")
    connection.execute("PRAGMA wal_autocheckpoint = 120")

    async def client() -> None:
        for _ in range(12):
            receipt = await ledger.note(source, target)
            disk.events.append(Answered(receipt.message.id))

    await asyncio.gather(*(client() for _ in range(4)))
    happened = list(disk.events)
    await ledger.store.close()
    return happened


def rows(path: Path, table: str) -> set[str]:
    """The ids that a start would find."""
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute(f"SELECT id FROM {table}")}


def lost(happened: Sequence[Any], folder: Path) -> list[str]:
    """The messages that were not certain when they were answered."""
    platter, missing = Platter(), list[str]()
    found: set[str] | None = None
    for event in happened:
        if isinstance(event, Answered):
            if found is None:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                platter.lose_power(folder / "coterie.db")
                found = rows(folder / "coterie.db", "messages")
            missing += {event.message} - found
        else:
            platter.take(event)
            found = None
    return missing


def test_this_sqlite_syncs_at_all() -> None:
    """It can be built so that a sync does nothing; then no answer is worth anything."""
    with closing(sqlite3.connect(":memory:")) as connection:
        assert ("NO_SYNC",) not in connection.execute("PRAGMA compile_options").fetchall()


@guarantee("I4")
@pytest.mark.parametrize("setting", ["", "NORMAL", "OFF"])
async def test_every_answer_comes_after_the_sync_that_holds_it(disk: Disk, tmp_path: Path, setting: str) -> None:
    """With weaker settings than the store's the same check must find answers that were lost, or it sees nothing."""
    happened = await life(disk, tmp_path / "coterie.db", setting)

    missing = lost(happened, tmp_path / "after")

    assert sum(isinstance(event, Answered) for event in happened) == 48
    assert sum(event == Synced("") for event in happened) > (setting != "OFF"), "nothing was written back"
    assert bool(missing) is bool(setting)


@guarantee("I4")
async def test_after_any_loss_of_power_a_host_starts_with_all_that_was_answered(disk: Disk, tmp_path: Path) -> None:
    """Writes under way may be there, missing or torn; also those that make the file, and that move pages into it."""
    happened = await life(disk, tmp_path / "coterie.db")
    rng = random.Random(4)
    moments = set(rng.sample(range(len(happened)), 40))
    platter, answered = Platter(), set[str]()

    for moment, event in enumerate(happened):
        if isinstance(event, Answered):
            answered.add(event.message)
        else:
            platter.take(event)
        if moment not in moments:
            continue
        path = tmp_path / f"{moment}.db"
        platter.lose_power(path, rng)
        again = Ledger(open_sqlite, path)
        await again.start()
        await again.recover()
        await again.store.close()
        assert answered <= rows(path, "messages")
        assert not check(path)[1]

    assert len(answered) == 48


@guarantee("I4")
@guarantee("I14")
async def test_a_replay_after_a_sync_that_failed_is_on_the_disk_too(disk: Disk, tmp_path: Path) -> None:
    """A new connection reads what never reached the disk; to answer from that would be to answer too early."""
    path, after, later = tmp_path / "coterie.db", tmp_path / "after.db", tmp_path / "later.db"
    ledger = Ledger(open_sqlite, path)
    await ledger.start()
    session = await ledger.session()
    key = Key("person", "k", "f")
    disk.fault = lambda act, file: sqlite3.SQLITE_IOERR_FSYNC if (act, file) == ("sync", "-wal") else 0
    with pytest.raises(StorageUnknownError):
        await ledger.prompt(session, key=key)
    disk.fault = lambda _act, _file: 0

    prompted = await ledger.prompt(session, key=key)
    replayed = Platter()
    for event in disk.events:
        replayed.take(event)
    replayed.lose_power(after)
    more = await ledger.session()
    platter = Platter()
    for event in disk.events:
        platter.take(event)
    platter.lose_power(later)
    await ledger.store.close()

    assert prompted.replayed, "the commit whose sync failed was read again"
    assert rows(after, "turns") == rows(later, "turns") == {prompted.turn_id}
    assert rows(after, "sessions") == {session}
    assert rows(later, "sessions") == {session, more}
