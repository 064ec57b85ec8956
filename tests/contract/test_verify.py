"""Every check of `coterie verify` can fail: a check that was never seen to fire proves nothing.

A sound ledger is written through the use cases, one row of it is spoilt with plain SQL, and the check must name it.
"""

import asyncio
import shutil
import sqlite3
from pathlib import Path
from typing import Final

import pytest
from tests.contract.test_sqlite import open_sqlite

from coterie.app.describe import verify
from coterie.core.limits import Limits
from coterie.core.permission import Mode
from coterie.ports.store import HostFacts, Violation
from coterie.storage.sql.statements import load
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds
from coterie.testing.ledger import HOST, Ledger, WakeLog, World

CHECKS: Final = tuple(load("verify"))

WAITS: Final = "(SELECT id FROM sessions WHERE title = 'waits')"
TWO_RUN: Final = """
DROP INDEX turns_one_runner;
UPDATE turns SET state = 'running', session_id = (SELECT id FROM sessions WHERE title = 'lead')
WHERE state = 'completed'
"""
TWO_COMPLETIONS: Final = """
DROP INDEX messages_one_completion;
CREATE TABLE twin AS SELECT * FROM messages WHERE kind = 'completion';
UPDATE twin SET id = 'msg_twin', number = 1000;
INSERT INTO messages SELECT * FROM twin
"""
SPOILT: Final[dict[str, tuple[str, ...]]] = {
    "I1 a session has at most one running turn": (TWO_RUN,),
    "I2 a message has a turn exactly if it left the queue by one": (
        "UPDATE messages SET turn_id = 'turn_other' WHERE state = 'completed'",
        "UPDATE messages SET turn_id = NULL, joined = NULL WHERE state = 'completed'",
        "UPDATE messages SET turn_id = (SELECT id FROM turns LIMIT 1), joined = 'claimed' WHERE state = 'queued'",
    ),
    "I2 a turn that was created for a message has that message": (
        "UPDATE messages SET joined = 'absorbed' WHERE state = 'completed'",
        "DELETE FROM messages WHERE state = 'completed'",
    ),
    "I2 an input has one turn": ("UPDATE turns SET input_id = 'inp_same' WHERE kind <> 'prompt'",),
    "I2 no input both waits and has a turn": (
        "UPDATE inputs SET id = (SELECT input_id FROM turns LIMIT 1) WHERE kind = 'completion'",
    ),
    "I3 a queued message has an input": ("DELETE FROM inputs WHERE kind = 'completion'",),
    "I3 the message of an input is queued": (
        "UPDATE messages SET state = 'cancelled' WHERE kind = 'completion'",
        "DELETE FROM messages WHERE kind = 'completion'",
    ),
    "I5 an ended turn has no unsettled message": (
        "UPDATE turns SET state = 'failed' WHERE state = 'running' AND kind = 'task'",
    ),
    "I6 the outcome of a message is the outcome of its turn": (
        "UPDATE messages SET state = 'failed' WHERE state = 'completed'",
        "UPDATE messages SET state = 'cancelled' WHERE state = 'running'",
    ),
    "I7 a settled message that asked for a completion has exactly one": (
        "DELETE FROM messages WHERE kind = 'completion'",
        TWO_COMPLETIONS,
    ),
    "I7 only a settled message that asked for it has a completion": (
        "UPDATE messages SET notify = 0 WHERE state = 'completed'",
        "UPDATE messages SET reply_to = 'msg_none' WHERE kind = 'completion'",
    ),
    "I8 a completion goes to the session that sent the message": (
        f"UPDATE messages SET target_session_id = {WAITS} WHERE kind = 'completion'",
    ),
    "I9 no turn of an earlier epoch runs": ("UPDATE hosts SET epoch = epoch + 1",),
    "I10 a message comes from a turn of its source, or is marked": (
        "UPDATE messages SET source_turn_id = NULL WHERE kind = 'task'",
        "UPDATE messages SET source_turn_id = turn_id WHERE state = 'completed'",
        "UPDATE messages SET source_turn_id = 'turn_none' WHERE kind = 'task'",
    ),
    "I11 a turn has at most the permission of the message that started it": (
        "UPDATE turns SET permission = 'auto' WHERE kind = 'task'",
        "UPDATE messages SET ceiling = 'accept-edits'; UPDATE turns SET permission = 'auto'",
    ),
    "I12 a completion carries one hop less than what it answers": (
        "UPDATE messages SET hops = 8 WHERE kind = 'completion'",
    ),
    "I16 an idle session with a queue is held or ready": ("UPDATE sessions SET ready = NULL",),
    "I16 a ready session is idle, free and has a queue": (
        f"UPDATE sessions SET held = 'restart' WHERE id = {WAITS}",
        f"DELETE FROM inputs WHERE session_id = {WAITS}",
        f"UPDATE turns SET session_id = {WAITS} WHERE kind = 'prompt'",
    ),
    "items are numbered without gaps": (
        "UPDATE items SET number = number + 1 WHERE number = 2",
        "DELETE FROM items WHERE number = 1",
    ),
    "changes follow the revision without gaps": (
        "DELETE FROM changes WHERE revision = 1",
        "UPDATE sessions SET revision = revision + 1",
    ),
}
"""What spoils a ledger, by the check that must find it."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a running, a settled and a waiting message, a completion, and a session that is ready."""
    path = tmp_path_factory.mktemp("sound") / "coterie.db"

    async def write() -> None:
        ledger = Ledger(open_sqlite, path)
        await ledger.start()
        lead, done, works, waits = [await ledger.session(title) for title in ("lead", "done", "works", "waits")]
        await ledger.begin(lead)
        await ledger.settle((await ledger.task(lead, done)).turn_id)
        await ledger.task(lead, works)
        await ledger.task(lead, works)
        await ledger.note(lead, waits, slot=False)
        await ledger.store.close()

    asyncio.run(write())
    return path


async def _checked(path: Path) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
    host = HostFacts(HOST, 1, Mode.ASK, Limits())
    store = open_sqlite(World(path, host, FakeClock(), SeededIds(), WakeLog()))
    try:
        return await store.read(verify, None)
    finally:
        await store.close()


async def test_a_sound_ledger_passes_every_check(sound: Path) -> None:
    """And every check that the file of checks has was made."""
    assert await _checked(sound) == (CHECKS, ())


@pytest.mark.parametrize(("check", "sql"), [(check, sql) for check, cases in SPOILT.items() for sql in cases])
async def test_a_spoilt_ledger_is_reported(sound: Path, tmp_path: Path, check: str, sql: str) -> None:
    """The finding has the name of the promise that is broken, and what breaks it."""
    path = tmp_path / "coterie.db"
    shutil.copy(sound, path)
    connection = sqlite3.connect(path, isolation_level=None)
    before = connection.total_changes
    connection.execute("PRAGMA ignore_check_constraints = 1")
    connection.executescript(sql)
    assert connection.total_changes > before, "the case spoils nothing"
    connection.close()

    _, broken = await _checked(path)

    assert check in {violation.invariant for violation in broken}
    assert all(violation.ref for violation in broken)


def test_every_check_has_a_ledger_that_breaks_it() -> None:
    """A new check comes with the rows that it was written against."""
    assert set(SPOILT) == set(CHECKS)
