"""`session.fork`: a new session that knows what another one has heard and said."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.idempotency import Key, once
from coterie.app.open_session import OpenSession, new_session
from coterie.app.step import Step
from coterie.core.ids import NewId, SessionId
from coterie.core.session.session import Session
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class ForkSession:
    """The session to begin from."""

    session_id: SessionId
    title: str | None
    up_to: int | None
    """Number of the last item to take over; None is all."""
    key: Key | None


def fork_session(tx: Tx, command: ForkSession, now: int, new_id: NewId) -> tuple[Session, bool]:
    """Copy the transcript, origins included, into a new session; returns it and whether the key had made it before.

    It takes over folder, model, permission mode and thinking, and nothing that lives: no queue, message, link or grant.
    What was delivered to the old session was delivered to that one only.

    Raises:
        NotFoundError: The session is not there.
    """
    session_id = SessionId(new_id("ses"))
    first = once(tx, command.key, session_id)
    if first is not None:
        return find.known(tx, SessionId(first)), True
    old = find.locked(tx, command.session_id)
    title = command.title or f"{old.title} (fork)"
    opening = OpenSession(
        title, old.project_path, old.model, permission_mode=old.permission_mode, thinking=old.thinking
    )
    fork = new_session(Step(tx, now, new_id), opening, session_id)
    tx.items.copy(old.id, fork.id, command.up_to)
    return fork, False
