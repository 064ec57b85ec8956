"""`session.create`, and the row that spawn writes."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.idempotency import Key, once
from coterie.app.step import Step
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import NewId, SessionId
from coterie.core.permission import StoredMode
from coterie.core.session.session import TITLE_CHARS_MAX, Session
from coterie.core.session.worktree import Origin, worktree_for
from coterie.core.text import cut, flaw_of, is_blank
from coterie.core.thinking import Thinking
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A new session."""

    title: str | None
    project_path: str | None
    """Absolute path of a folder that exists."""
    model: str | None
    permission_mode: StoredMode
    created_by: SessionId | None = None
    plugin: str | None = None
    """The plugin through which it was spawned."""
    key: Key | None = None
    thinking: Thinking | None = None
    origin: Origin | None = None
    """What its worktree begins from, if it gets one."""


def open_session(tx: Tx, command: OpenSession, now: int, new_id: NewId) -> tuple[Session, bool]:
    """Create a session; returns it and whether an earlier request with the key had made it."""
    session_id = new_id("ses")
    first = once(tx, command.key, session_id)
    if first is not None:
        return find.known(tx, SessionId(first)), True
    return new_session(Step(tx, now, new_id), command, SessionId(session_id)), False


def new_session(step: Step, command: OpenSession, session_id: SessionId) -> Session:
    """Write a session; its title is cut to 80 characters."""
    if (flaw := flaw_of(command.project_path or "")) is not None:
        raise InvalidArgumentError(f"projectPath has {flaw}, which cannot be stored; leave it out.")
    session = Session(
        session_id,
        fit_title(command.title),
        command.project_path,
        command.model,
        permission_mode=command.permission_mode,
        held=None,
        streak=0,
        ready=None,
        revision=0,
        created_at=step.now,
        updated_at=step.now,
        thinking=command.thinking,
        created_by=command.created_by,
        worktree=worktree_for(command.origin, session_id) if command.origin else None,
    )
    step.tx.sessions.add(session, command.plugin)
    step.tx.changed(session.id, "session", session.id)
    return session


def fit_title(text: str | None) -> str:
    """Return *text* as a title: one line, cut to 80 characters, never blank.

    Raises:
        InvalidArgumentError: It has a character that cannot be stored.
    """
    if (flaw := flaw_of(text or "")) is not None:
        raise InvalidArgumentError(f"title has {flaw}, which cannot be stored; leave it out.")
    title = " ".join((text or "").split())
    return "Untitled" if is_blank(title) else cut(title, TITLE_CHARS_MAX)[0]
