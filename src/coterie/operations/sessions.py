"""`session.*`, `app.*` and `ledger.*`."""

import re
from pathlib import Path
from typing import Final

from coterie.app import describe
from coterie.app.open_session import OpenSession, open_session
from coterie.app.prompt_session import Prompted, PromptSession, prompt_session
from coterie.core.errors import InvalidArgumentError, NotFoundError
from coterie.core.ids import SessionId, TurnId
from coterie.core.model_ref import default_binding
from coterie.core.session.session import Session
from coterie.core.thinking import applied
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.ports.rows import Used

_CURSOR: Final = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)


async def health(act: Act, given: params.NoParams) -> views.Health:
    """Whether the host answers, which version it is, and how much it does."""
    del given
    running = await act.host.store.read(describe.running_here, None, brief=True)
    return views.Health(
        ok=True,
        version=act.host.version,
        epoch=running[0],
        turns_running=running[1],
        unconfined=act.host.unconfined,
    )


async def create(act: Act, given: params.SessionCreate) -> views.OneSession:
    """Create a session."""
    replay = await act.is_replay()
    command = OpenSession(
        title=given.title,
        project_path=None if replay else _folder(given.project_path),
        model=None if replay else act.model_key(given.model),
        permission_mode=given.permission_mode,
        thinking=given.thinking,
        key=act.key,
    )
    session, replayed = await act.host.store.run(open_session, command, brief=True)
    return one(act, session, replayed=replayed)


def one(act: Act, session: Session, *, replayed: bool = False, used: Used | None = None) -> views.OneSession:
    """A session, and what of its settings has no effect."""
    models = act.host.models
    binding = next((each for each in models if each.key == session.model), None) or default_binding(models)
    note = None
    if session.thinking is not None and binding is not None and applied(session.thinking, binding) is None:
        note = f"The model {binding.key} is not marked as reasoning, so thinking ({session.thinking}) has no effect."
    view = views.SessionView.of(session)
    return views.OneSession(
        session=view,
        replayed=replayed or None,
        note=note,
        unconfined=act.host.unconfined,
        usage=views.UsageView.of(used) if used is not None else None,
    )


def _folder(text: str | None) -> str | None:
    if text is None:
        return None
    if "\x00" in text:
        raise InvalidArgumentError("projectPath has the character U+0000, which no folder has.")
    path = Path(text)
    if not path.is_absolute():
        raise InvalidArgumentError(f"projectPath {text!r} is not absolute; give the whole path of the folder.")
    try:
        whole = path.resolve(strict=True)
    except (OSError, RuntimeError, UnicodeError) as error:
        raise InvalidArgumentError(f"projectPath {text!r} cannot be used: {error}.") from error
    if not whole.is_dir():
        raise InvalidArgumentError(f"projectPath {text!r} is not a folder; create it first, or correct the path.")
    return str(whole)


async def page(act: Act, given: params.SessionList) -> views.SessionPage:
    """List sessions, most recently updated first."""
    found = await act.host.store.read(describe.sessions, (cursor_of(given.cursor), given.limit))
    more = found[-1] if len(found) == given.limit else None
    return views.SessionPage(
        sessions=[views.SessionView.of(session, status) for session, _, status in found],
        cursor=cursor_after(more[0], more[1]) if more else None,
    )


def cursor_after(session: Session, number: int) -> str:
    """The cursor behind which the next page begins."""
    return f"{session.updated_at}-{number}"


def cursor_of(text: str | None) -> tuple[int, int] | None:
    """Read a page's cursor."""
    if text is None:
        return None
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(f"cursor {text!r} is not one that an earlier page returned.")
    return int(found[1]), int(found[2])


async def get(act: Act, given: params.SessionRef) -> views.OneSession:
    """Read one session."""
    session, used = await act.host.store.read(describe.session_used, SessionId(given.session_id))
    return one(act, session, used=used)


async def turn(act: Act, given: params.TurnRef) -> views.TurnView:
    """Read one turn and how it ended."""
    found = await act.host.store.read(describe.turn_now, TurnId(given.turn_id), brief=True)
    if found is None:
        raise NotFoundError("turn", given.turn_id)
    return views.TurnView.of(found[0])


async def items(act: Act, given: params.SessionItems) -> views.ItemPage:
    """Read a page of a transcript."""
    which = describe.Page(given.after, given.limit, SessionId(given.session_id))
    found = await act.host.store.read(describe.items, which)
    more = found[-1].number if len(found) == given.limit else None
    return views.ItemPage(items=[views.ItemView.of(numbered) for numbered in found], cursor=more)


async def prompt(act: Act, given: params.SessionPrompt) -> views.PromptReceipt:
    """Give a session a person's input: it starts at once where the session is free, else it waits."""

    def started(prompted: Prompted) -> bool:
        return prompted.turn_id is not None and not prompted.replayed

    prompted = await act.bind(
        prompt_session,
        lambda slot: PromptSession(SessionId(given.session_id), given.text, act.key, slot),
        lambda prompted: prompted.turn_id if started(prompted) else None,
    )
    return views.PromptReceipt(
        input_id=prompted.input_id,
        status=prompted.status,
        turn_id=prompted.turn_id,
        position=prompted.position,
        replayed=prompted.replayed,
    )


async def verify(act: Act, given: params.NoParams) -> views.VerifyView:
    """Check every promise that the ledger's rows can show."""
    del given
    checks, broken = await act.host.store.read(describe.verify, None)
    failures = [{"invariant": violation.invariant, "ref": violation.ref} for violation in broken]
    return views.VerifyView(ok=not broken, checked=len(checks), failures=failures)
