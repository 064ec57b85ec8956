"""What the ledger has to say of an act on a worktree: whether it may happen, and that it has."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.idempotency import Key, once, until
from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.ids import NewId, SessionId
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session
from coterie.core.session.worktree import Worktree
from coterie.ports.rows import AuditRow
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class ChangeWorkspace:
    """An act on the worktree of a session."""

    session_id: SessionId
    act: str
    key: Key | None


@dataclass(frozen=True, slots=True)
class Found:
    """A session with its worktree."""

    session: Session
    worktree: Worktree
    runs: bool
    """Whether a turn works in it."""


def find_worktree(tx: Tx, session_id: SessionId) -> Found:
    """The session with its worktree.

    Raises:
        NotFoundError: There is no such session.
        RefusedError: It has no worktree.
    """
    session = find.session(tx, session_id)
    if session.worktree is None:
        text = f"The session {session.title!r} works in the folder of its creator; it has no worktree."
        raise RefusedError(Refusal(Code.CONFLICT, text))
    return Found(session, session.worktree, tx.turns.running(session_id) is not None)


def idle_worktree(tx: Tx, session_id: SessionId) -> Found:
    """As `find_worktree`, of a session that runs no turn."""
    found = find_worktree(tx, session_id)
    if found.runs:
        text = f"A turn runs in {found.session.title!r}; wait for its end or interrupt it."
        raise RefusedError(Refusal(Code.CONFLICT, text))
    return found


def note_change(tx: Tx, command: ChangeWorkspace, now: int, new_id: NewId) -> bool:
    """Note an act that was done; returns whether an earlier request with the key had done it."""
    del new_id
    if once(tx, command.key, "done", kept_until=until(now)) is not None:
        return True
    session = find.locked(tx, command.session_id)
    tx.journal.audit(AuditRow("person", command.act, session.id, session.title), now)
    return False
