"""`collaboration.status` and `collaboration.list`: what others may know of a session (ADR 0239, the projection)."""

from typing import Final

from coterie.app import describe
from coterie.core.ids import SessionId
from coterie.core.ledger.message import Kind, Message
from coterie.core.ledger.states import SETTLED
from coterie.core.model_ref import default_binding
from coterie.core.text import cut, head_and_tail
from coterie.core.turn.turn import Turn
from coterie.operations import params, sessions, views
from coterie.operations.act import Act
from coterie.ports.delegates import Heartbeat
from coterie.ports.rows import Reference

PREVIEW_CHARS_MAX: Final = 240
"""Characters that a recent message shows."""
TASK_CHARS_MAX: Final = 512
"""Characters that the current task shows."""
OUTCOME_CHARS_MAX: Final = 2000
"""Characters that an outcome shows; `collaboration.result` has it whole."""


async def status(act: Act, given: params.SessionRef) -> views.StatusView:
    """Read the bounded summary of a session; an agent sees text of its own messages only."""
    found = await act.host.store.read(describe.status, SessionId(given.session_id), brief=True)
    session, turn, current = found.session, found.turn, found.current
    if current is not None and current.kind is Kind.COMPLETION:
        current = None
    newest = current if current and turn and current.turn_id == turn.id and current.state in SETTLED else None
    return views.StatusView(
        session_id=session.id,
        title=session.title,
        status=found.status,
        observed_at=views.iso(act.host.clock.now_ms()),
        held=session.held.value if session.held else None,
        waiting=found.waiting,
        **_model(act, session.model),
        permission_mode=session.permission_mode.value,
        created_by_session=_reference(found.creator) if found.creator else None,
        created_sessions=[_reference(one) for one in found.created] or None,
        current_task=_task(act, found, current) if current else None,
        result=_delivery(act, newest) if newest else None,
        last_delivery=_delivery(act, found.delivered) if found.delivered else None,
        last_turn=_last_turn(act, turn) if turn else None,
        recent_exchanges=[_exchange(act, found, message) for message in found.exchanges],
        delegations=[_delegation(one) for one in act.host.delegates.of_session(session.id)] or None,
    )


async def directory(act: Act, given: params.SessionList) -> views.Directory:
    """List sessions with their states, models and links, without any text of theirs."""
    found = await act.host.store.read(describe.sessions, (sessions.cursor_of(given.cursor), given.limit))
    more = found[-1] if len(found) == given.limit else None
    entries = [
        views.DirectoryEntry(
            session_id=session.id,
            title=session.title,
            status=state,
            **_model(act, session.model),
            created_by_session_id=session.created_by,
            updated_at=views.iso(session.updated_at),
        )
        for session, _, state in found
    ]
    return views.Directory(sessions=entries, cursor=sessions.cursor_after(more[0], more[1]) if more else None)


def _model(act: Act, key: str | None) -> dict[str, str | None]:
    """How a session's model is called; one that is not configured any more has its key only."""
    models = act.host.models
    named = next((one for one in models if one.key == key), None) if key else default_binding(models)
    if named is None:
        return {"model_key": key, "provider_name": None, "model_name": None}
    return {"model_key": named.key, "provider_name": named.provider, "model_name": named.label or named.model}


def _delegation(one: Heartbeat) -> views.DelegationView:
    return views.DelegationView(
        id=one.id,
        agent=one.agent,
        elapsed_s=round(one.elapsed_s, 1),
        requests=one.requests,
        tool_calls=one.tool_calls,
        last_tool=one.last_tool,
    )


def _reference(found: Reference) -> views.SessionReference:
    return views.SessionReference(session_id=found.id, title=found.title, available=None if found.available else False)


def _is_own(act: Act, message: Message) -> bool:
    return act.reader in (None, message.source_session_id, message.target_session_id)


def _last_turn(act: Act, turn: Turn) -> views.TurnView:
    view = views.TurnView.of(turn)
    # What a turn said belongs to its session and to people; other sessions read results of their own messages.
    return view if act.reader in (None, turn.session_id) else view.model_copy(update={"result": None, "error": None})


def _peer(found: describe.Status, session_id: SessionId, title: str) -> views.SessionReference:
    known = found.references.get(session_id)
    return views.SessionReference(
        session_id=session_id, title=title, available=None if known is not None and known.available else False
    )


def _task(act: Act, found: describe.Status, message: Message) -> views.CurrentTask:
    return views.CurrentTask(
        message_id=message.id,
        sender_session=_peer(found, message.source_session_id, message.source_title),
        kind=message.kind.value,
        text=cut(message.content, TASK_CHARS_MAX)[0] if _is_own(act, message) else "",
        status=message.state.value,
        turn_id=message.turn_id,
        created_at=views.iso(message.created_at),
    )


def _delivery(act: Act, message: Message) -> views.Delivery:
    text = head_and_tail(message.result, OUTCOME_CHARS_MAX)[0] if message.result is not None else None
    mine = _is_own(act, message)
    return views.Delivery(
        message_id=message.id,
        turn_id=message.turn_id,
        status=message.state.value,
        text=text if mine else None,
        error=message.error if mine else None,
    )


def _exchange(act: Act, found: describe.Status, message: Message) -> views.Exchange:
    incoming = message.target_session_id == found.session.id
    if incoming:
        peer = _peer(found, message.source_session_id, message.source_title)
    else:
        peer = _peer(found, message.target_session_id, message.target_title)
    return views.Exchange(
        message_id=message.id,
        direction="incoming" if incoming else "outgoing",
        peer=peer,
        kind=message.kind.value,
        status=message.state.value,
        preview=cut(message.content, PREVIEW_CHARS_MAX)[0] if _is_own(act, message) else "",
        created_at=views.iso(message.created_at),
    )
