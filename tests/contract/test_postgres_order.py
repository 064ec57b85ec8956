"""Whoever writes to whom, the same session is locked first: with its lock not to be had, nothing else is held."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, TypeAlias

import pytest
from tests.contract.beside import Hand, hand, hold, one, processes, soon, until_waiting
from tests.postgres import needs_postgres, server

from coterie.core.ids import SessionId
from coterie.testing.ledger import Ledger

pytestmark = needs_postgres
Send: TypeAlias = Callable[[Ledger, SessionId, SessionId], Awaitable[Any]]

SENDS: Final[dict[str, Send]] = {
    "to the later one": lambda ledger, early, late: ledger.note(early, late),
    "to the earlier one": lambda ledger, early, late: ledger.note(late, early),
}
FREE: Final = "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE id = %s FOR UPDATE SKIP LOCKED) found"


@pytest.fixture
def url() -> str:
    """A database with an empty ledger."""
    return server().ledger("order")


@pytest.fixture
async def beside(url: str) -> AsyncGenerator[Hand]:
    """A hand that holds what others wait for."""
    async with hand(url) as found:
        yield found


@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS)
async def test_a_send_waits_for_the_earlier_session_with_nothing_in_hand(url: str, beside: Hand, send: Send) -> None:
    """Of two that write to each other, one would else have the first session and the other the second."""
    async with processes(url, 1) as (ledger,), hand(url) as watch:
        early, late = sorted(await ledger.sessions("AB"))
        await hold(beside, early)

        sending = asyncio.ensure_future(send(ledger, early, late))
        await until_waiting(watch)
        free = await one(watch, FREE, [late])
        await beside.execute("ROLLBACK")
        await soon(sending)

    assert free == 1


async def test_a_chain_out_of_order_is_waited_for_with_no_later_one_in_hand(url: str, beside: Hand) -> None:
    """Who tells many senders asks their chains one by one, and meets them in any order."""
    async with processes(url, 1) as (ledger,), hand(url) as watch:
        turns = [await ledger.turn(await ledger.begin(session)) for session in await ledger.sessions("AB")]
        early, late = sorted(turn.chain_id for turn in turns)
        await beside.execute("BEGIN")
        await beside.execute("SELECT 1 FROM chains WHERE id = %s FOR UPDATE", [early])

        locking = asyncio.ensure_future(ledger.change(lambda tx: [tx.chains.lock([one]) for one in (late, early)]))
        await until_waiting(watch)
        free = await one(watch, FREE.replace("sessions", "chains"), [late])
        await beside.execute("ROLLBACK")
        ((last,), (first,)) = await soon(locking)

    assert free == 1
    assert (last.id, first.id) == (late, early)
