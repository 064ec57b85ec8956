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

from coterie.app.delete_session import DeleteSession, delete_session
from coterie.app.describe import verify
from coterie.core.inbound import Inbound
from coterie.core.ledger.message import Deliver, Kind
from coterie.core.limits import Limits
from coterie.core.permission import Mode
from coterie.ports.rows import HostFacts, Violation
from coterie.storage.sql.statements import load
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds
from coterie.testing.ledger import HOST, Ledger, WakeLog, World

CHECKS: Final = tuple(load("verify"))

WAITS: Final = "(SELECT id FROM sessions WHERE title = 'waits')"
GONE: Final = "(SELECT id FROM sessions WHERE title = 'gone')"
GRANT: Final = "INSERT INTO grants (id, source_session_id, target_session_id, created_at, expires_at)"
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
OTHERS: Final = {
    "chain_id": "'chn_other'",
    "hops": "hops + 1",
    "ceiling": "'auto'",
    "kind": "'message'",
    "source_session_id": WAITS,
    "target_session_id": WAITS,
    "via": "NULL",
    "retry_of": "'msg_none'",
}
"""What a retry may not change, with another value."""
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
    "I3 a marked input has a message that is queued": (
        "UPDATE inputs SET kind = 'prompt', text = 'go', message_id = NULL WHERE waiting = 'policy'",
        "UPDATE messages SET state = 'cancelled' WHERE id IN (SELECT message_id FROM inputs WHERE waiting IS NOT NULL)",
        "UPDATE inputs SET waiting = 'policy' WHERE kind = 'completion'",
    ),
    "I3 steering and offers are for a running turn of their session": (
        "UPDATE inputs SET turn_id = NULL WHERE kind = 'steer'",
        "UPDATE inputs SET turn_id = 'turn_none' WHERE turn_id IS NOT NULL AND kind = 'message'",
        f"UPDATE inputs SET session_id = {WAITS} WHERE kind = 'steer'",
        "UPDATE turns SET state = 'completed' WHERE state = 'running'",
    ),
    "I3 a turn knows that something is meant for it": (
        "UPDATE turns SET news = 0 WHERE kind = 'prompt'",
        "UPDATE turns SET news = 0 WHERE kind = 'task'",
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
        f"{TWO_COMPLETIONS}; UPDATE sessions SET deleted_at = 1",
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
    "I12 a retry may do what it repeats and no more": (
        *(f"UPDATE messages SET {column} = {other} WHERE retry_of IS NOT NULL" for column, other in OTHERS.items()),
        "DELETE FROM messages WHERE state = 'completed'",
        "UPDATE messages SET state = 'running' WHERE state = 'completed'",
        "UPDATE messages SET retry_of = (SELECT id FROM messages WHERE kind = 'completion') WHERE retry_of IS NOT NULL",
    ),
    "I12 a turn has at most the hops of every message that joined it": (
        "UPDATE turns SET hops = 9, fenced = 1 WHERE kind = 'task'",
        "UPDATE messages SET turn_id = source_turn_id, joined = 'absorbed' WHERE kind = 'completion'",
    ),
    "I12 a chain has counted at least the messages that it has": (
        "UPDATE chains SET messages = messages - 1",
        "DELETE FROM chains",
    ),
    "I16 what waits across projects has an open question": (
        "DELETE FROM permission_requests",
        "UPDATE permission_requests SET source_session_id = target_session_id, target_session_id = source_session_id",
    ),
    "an open question has something that waits for its answer": (
        "UPDATE inputs SET waiting = NULL",
        "DELETE FROM inputs WHERE waiting = 'across_projects'",
    ),
    "I16 an idle session with a queue is held or ready, or all of it waits for a person": (
        "UPDATE sessions SET ready = NULL",
        "UPDATE inputs SET waiting = NULL WHERE waiting = 'policy'",
    ),
    "I16 a ready session is idle, free and has a queue": (
        f"UPDATE sessions SET held = 'restart' WHERE id = {WAITS}",
        f"DELETE FROM inputs WHERE session_id = {WAITS}",
        f"UPDATE inputs SET waiting = 'budget' WHERE session_id = {WAITS}",
        f"UPDATE turns SET session_id = {WAITS} WHERE kind = 'prompt'",
    ),
    "a deleted session runs nothing, waits for nothing and may do nothing": (
        f"UPDATE sessions SET held = 'restart' WHERE id = {GONE}",
        f"UPDATE inputs SET session_id = {GONE} WHERE session_id = {WAITS}",
        f"UPDATE turns SET state = 'running' WHERE session_id = {GONE}",
        f"UPDATE permission_requests SET target_session_id = {GONE}",
        f"{GRANT} VALUES ('grt_one', {GONE}, {WAITS}, 0, 1)",
        f"{GRANT} VALUES ('grt_one', {WAITS}, {GONE}, 0, 1)",
    ),
    "items are numbered without gaps": (
        "UPDATE items SET number = number + 1 WHERE number = 2",
        "UPDATE items SET number = number + 1 WHERE number = 2; UPDATE sessions SET deleted_at = 1",
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
    """A file with a running, a settled and a waiting message, a completion, and a session that is ready.

    Besides a retry, a message that its target's policy keeps waiting, and one that nobody has let cross; steering and
    an offer for turns that run; and a session that was deleted while it ran.
    """
    path = tmp_path_factory.mktemp("sound") / "coterie.db"

    async def write() -> None:
        ledger = Ledger(open_sqlite, path)
        await ledger.start()
        lead, done, works, waits, holds = [
            await ledger.session(title) for title in ("lead", "done", "works", "waits", "holds")
        ]
        far = await ledger.session("far", project="/far")
        await ledger.admit(holds, Inbound.HOLD)
        await ledger.begin(lead)
        settled = await ledger.task(lead, done)
        await ledger.settle(settled.turn_id)
        await ledger.retry(settled.message.id, slot=False)
        await ledger.task(lead, works)
        await ledger.task(lead, works)
        for target in (waits, holds, far):
            await ledger.note(lead, target, slot=False)
        await ledger.steer(lead)
        await ledger.configure(works, current_turn=True)
        await ledger.send(lead, works, kind=Kind.MESSAGE, deliver=Deliver.CURRENT_TURN)
        gone = await ledger.session("gone")
        await ledger.begin(gone)
        await ledger.store.run(delete_session, DeleteSession(gone, None))
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
