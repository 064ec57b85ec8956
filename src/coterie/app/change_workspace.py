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


def worktree(tx: Tx, session_id: SessionId) -> tuple[Session, Worktree]:
    """The session with its worktree.

    Raises:
        NotFoundError: There is no such session.
        RefusedError: It has no worktree.
    """
    session = find.session(tx, session_id)
    if session.worktree is None:
        text = f"The session {session.title!r} works in the folder of its creator; it has no worktree."
        raise RefusedError(Refusal(Code.CONFLICT, text))
    return session, session.worktree


def idle_worktree(tx: Tx, session_id: SessionId) -> tuple[Session, Worktree]:
    """As `worktree`, of a session that runs no turn."""
    found = worktree(tx, session_id)
    if tx.turns.running(session_id) is not None:
        text = f"A turn runs in {found[0].title!r}; wait for its end or interrupt it."
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
