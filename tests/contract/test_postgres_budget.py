"""What a chain has spent is read under its lock, and its inputs are marked under the locks of their sessions."""

import asyncio
from collections.abc import AsyncGenerator
from threading import Event

import pytest
from tests.contract.beside import BOUND_S, Hand, hand, one, processes, soon, store_of, until_waiting
from tests.guarantees import guarantee
from tests.postgres import needs_postgres, server

from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.settle_turn import Settled, SettleTurn, settle_turn
from coterie.core.ids import NewId
from coterie.core.inbound import Waiting
from coterie.core.turn.items import Reply, ToolResult
from coterie.ports.store import Tx
from coterie.testing.ledger import Ledger

pytestmark = needs_postgres
DEAR = 6_000_000
"""More than a chain may cost, in millionths of a US dollar."""


@pytest.fixture
def url() -> str:
    """A database with an empty ledger."""
    return server().ledger("budget")


@pytest.fixture
async def three(url: str) -> AsyncGenerator[list[Ledger]]:
    """Three processes of one host."""
    async with processes(url, 3) as ledgers:
        yield ledgers


@pytest.fixture
async def watch(url: str) -> AsyncGenerator[Hand]:
    """A hand that looks whether they wait."""
    async with hand(url) as found:
        yield found


def collisions(ledgers: list[Ledger]) -> list[int]:
    """How many transactions the database has ended for others."""
    return [store_of(ledger).collisions for ledger in ledgers]


@guarantee("I12")
async def test_a_completion_that_is_written_while_its_chain_is_spent_waits_for_a_person(
    three: list[Ledger], watch: Hand
) -> None:
    """The one does not see what the other writes; only the chain's lock lets one of them be the later."""
    ledger, gate, written = three[0], Event(), Event()

    def settle_slowly(tx: Tx, command: SettleTurn, now: int, new_id: NewId) -> Settled:
        settled = settle_turn(tx, command, now, new_id)
        written.set()
        gate.wait(BOUND_S)
        return settled

    lead, worker, other, deep = await ledger.sessions("ABCD")
    await ledger.begin(lead)
    first, second = await ledger.task(lead, worker), await ledger.task(lead, other)
    third = await ledger.task(other, deep)
    assert first.turn_id is not None
    assert second.turn_id is not None
    command = SettleTurn(first.turn_id, (Reply("done"),), slot=False)
    settling = asyncio.ensure_future(three[1].store.run(settle_slowly, command))
    await asyncio.to_thread(written.wait, BOUND_S)
    spending = asyncio.ensure_future(three[2].spend(third.turn_id, cost=DEAR))
    await until_waiting(watch)
    gate.set()
    await soon(settling)
    await soon(spending)

    assert [one.waiting for one in await ledger.queue(lead)] == [Waiting.BUDGET]
    assert collisions(three) == [0, 0, 0]


async def test_a_chain_is_marked_as_spent_without_a_wait_out_of_order(three: list[Ledger], watch: Hand) -> None:
    """Its inputs wait in sessions that the turn that spends it has nothing to do with."""
    ledger, gate, written = three[0], Event(), Event()
    lead, worker, deep, other = await ledger.sessions("ABCD")
    turn_id = await ledger.begin(lead)
    await ledger.task(lead, worker)
    done, below = await ledger.task(lead, other), await ledger.task(worker, deep)
    await ledger.settle(done.turn_id)

    def read_and_settle(tx: Tx, command: AppendToTurn, now: int, new_id: NewId) -> Settled:
        append_items(tx, command, now, new_id)
        written.set()
        gate.wait(BOUND_S)
        return settle_turn(tx, SettleTurn(turn_id, (Reply("done"),), cost=5, slot=False), now, new_id)

    command = AppendToTurn(turn_id, (ToolResult("call", "session_task", "read"),), (done.message.id,))
    settling = asyncio.ensure_future(three[1].store.run(read_and_settle, command))
    await asyncio.to_thread(written.wait, BOUND_S)
    spending = asyncio.ensure_future(three[2].spend(below.turn_id, cost=DEAR))
    await until_waiting(watch)
    gate.set()
    await soon(settling)
    await soon(spending)

    assert collisions(three) == [0, 0, 0]
    assert not await ledger.violations()


async def test_two_releases_of_the_same_chains_do_not_wait_for_each_other(three: list[Ledger], watch: Hand) -> None:
    """The queue of the one session has them in another order than that of the other."""
    ledger = three[0]
    lead, other, one_queue, other_queue = await ledger.sessions("ABCD")
    turns = [await ledger.begin(session) for session in (lead, other)]
    for source, target in ((lead, one_queue), (other, one_queue), (other, other_queue), (lead, other_queue)):
        await ledger.task(source, target, slot=False)
    for turn_id in turns:
        await ledger.spend(turn_id, cost=DEAR)
    for _ in range(10):
        await watch.execute("UPDATE chains SET grants = 0")
        await watch.execute("UPDATE inputs SET waiting = 'budget'")
        await asyncio.gather(three[1].release(one_queue), three[2].release(other_queue))
    assert collisions(three) == [0, 0, 0]
    assert await one(watch, "SELECT max(grants) FROM chains") == 1
