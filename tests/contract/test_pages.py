"""A page of sessions is one statement, however many rows it has: with one more for each row, a person would feel it."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_sqlite import open_sqlite

from coterie.app import describe
from coterie.ports.store import Tx
from coterie.testing.ledger import Ledger


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncGenerator[Ledger]:
    """A ledger of thirty sessions; some run, some wait, some have ended a turn, the last one is a worker's."""
    made = Ledger(open_sqlite, tmp_path / "coterie.db")
    await made.start()
    sessions = await made.sessions("abcdefghij" * 3)
    for session_id in sessions[:9]:
        turn_id = await made.begin(session_id)
        if session_id in sessions[:3]:
            await made.settle(turn_id)
        elif session_id in sessions[3:6]:
            await made.prompt(session_id)
    await made.spawn(sessions[8])
    yield made
    await made.store.close()


async def _statements(ledger: Ledger, query: Callable[[Tx], Any]) -> int:
    """How many statements a query takes; a use case may read as a reader does, and is counted."""
    before = ledger.store.statements
    await ledger.change(query)
    return ledger.store.statements - before


@pytest.mark.parametrize("limit", [1, 10, 100])
async def test_a_page_of_sessions_is_one_statement(ledger: Ledger, limit: int) -> None:
    """It is what a person sees first, and there may be ten thousand of them."""
    found = await ledger.look(lambda tx: describe.sessions(tx, (None, limit)))
    assert len(found) == min(limit, 31)
    assert len({status for _, _, status in found}) > 1 or limit == 1
    assert await _statements(ledger, lambda tx: describe.sessions(tx, (None, limit))) == 1
