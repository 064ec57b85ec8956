"""`session.rename`, `session.configure` and `session.archive`."""

from dataclasses import dataclass, replace

from coterie.app import find
from coterie.app.idempotency import Key, once, until
from coterie.app.open_session import fit_title
from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError, RefusedError
from coterie.core.ids import NewId, SessionId
from coterie.core.inbound import Inbound
from coterie.core.permission import StoredMode
from coterie.core.refusal import Refusal
from coterie.core.session.session import Held, Session
from coterie.core.text import is_blank
from coterie.core.thinking import Thinking
from coterie.ports.rows import AuditRow
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class ConfigureSession:
    """What to change; None leaves it as it is."""

    session_id: SessionId
    key: Key | None
    title: str | None = None
    model: str | None = None
    """Key of a binding."""
    permission_mode: StoredMode | None = None
    inbound: Inbound | None = None
    current_turn: bool | None = None
    thinking: Thinking | None = None


@dataclass(frozen=True, slots=True)
class ArchiveSession:
    """A session to put away."""

    session_id: SessionId
    key: Key | None


def configure_session(tx: Tx, command: ConfigureSession, now: int, new_id: NewId) -> tuple[Session, bool]:
    """Change a session's settings; returns it, and whether an earlier request with the key had done it.

    A lower permission mode acts at once; a higher one does not reach a running turn.

    Raises:
        NotFoundError, InvalidArgumentError
    """
    del new_id
    if once(tx, command.key, command.session_id, kept_until=until(now)) is not None:
        return find.known(tx, command.session_id), True
    session = find.locked(tx, command.session_id)
    if command.title is not None and is_blank(command.title):
        raise InvalidArgumentError("title is empty; a session needs a name.")
    changed = replace(
        session,
        title=session.title if command.title is None else fit_title(command.title),
        model=session.model if command.model is None else command.model,
        permission_mode=command.permission_mode or session.permission_mode,
        inbound=command.inbound or session.inbound,
        current_turn=session.current_turn if command.current_turn is None else command.current_turn,
        thinking=command.thinking or session.thinking,
    )
    if changed != session:
        tx.sessions.configure(changed)
        tx.changed(session.id, "session", session.id)
        if changed.permission_mode is not session.permission_mode:
            tx.journal.audit(AuditRow("person", "permission", session.id, changed.permission_mode.value), now)
    return changed, False


def archive_session(tx: Tx, command: ArchiveSession, now: int, new_id: NewId) -> tuple[Session, bool]:
    """Put a session away: its queue is held, it takes no new messages, and answers to what it sent still wait for it.

    Raises:
        NotFoundError: It is not there.
        RefusedError: It runs a turn (`CONFLICT`).
    """
    del new_id
    if once(tx, command.key, command.session_id, kept_until=until(now)) is not None:
        return find.known(tx, command.session_id), True
    session = find.locked(tx, command.session_id)
    if tx.turns.running(session.id) is not None:
        text = f"Session {session.id} runs a turn; interrupt it first, or wait until it has ended."
        raise RefusedError(Refusal(Code.CONFLICT, text))
    if session.held is not Held.ARCHIVED:
        tx.sessions.archive(session.id)
        tx.changed(session.id, "held", session.id)
        tx.journal.audit(AuditRow("person", "archive", session.id, ""), now)
    return replace(session, held=Held.ARCHIVED), False
