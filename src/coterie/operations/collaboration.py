"""`collaboration.*`: messages between sessions (ADR 0239)."""

from dataclasses import replace

from coterie.app import cancel as cancelling
from coterie.app import describe
from coterie.app.send_message import Receipt, SendMessage, SpawnSession, send_message, spawn_session
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Kind, Message
from coterie.core.text import cut
from coterie.core.turn.turn import Turn
from coterie.operations import params, sessions, views
from coterie.operations.act import Act

PREVIEW_CHARS_MAX = 240


def _bound(receipt: Receipt) -> TurnId | None:
    return None if receipt.replayed else receipt.turn_id


def _receipt(receipt: Receipt) -> views.SendReceipt:
    message = receipt.message
    return views.SendReceipt(
        message_id=message.id,
        session_id=message.target_session_id,
        status=message.state.value,
        position=receipt.position,
        turn_id=message.turn_id,
        remaining_hops=message.hops,
        ceiling=message.ceiling,
        replayed=receipt.replayed,
        held=receipt.held or None,
    )


async def send(act: Act, given: params.Send) -> views.SendReceipt:
    """Send a message or a task to another session; an idle one starts at once."""
    kind = Kind(given.kind)
    notify = given.notify_on_completion
    command = SendMessage(
        act.sender(given.as_session_id),
        SessionId(given.session_id),
        given.content,
        kind,
        notify=kind is Kind.TASK if notify is None else notify,
        key=act.key,
        slot=False,
    )
    receipt = await act.bind(send_message, lambda slot: replace(command, slot=slot), _bound)
    return _receipt(receipt)


async def spawn(act: Act, given: params.Spawn) -> views.SendReceipt:
    """Create a session that inherits project and permission mode, and send its first task."""
    sender = act.sender(given.as_session_id)
    model = None if await act.is_replay() else act.model_key(given.model, delegated=True)
    notify = given.notify_on_completion is not False
    receipt = await act.bind(
        spawn_session,
        lambda slot: SpawnSession(sender, given.content, given.title, model, notify=notify, key=act.key, slot=slot),
        _bound,
    )
    return _receipt(receipt)


async def result(act: Act, given: params.Result) -> views.ResultView:
    """Read the outcome of a message."""
    which = describe.WhichResult(
        SessionId(given.session_id),
        MessageId(given.message_id) if given.message_id is not None else None,
        TurnId(given.turn_id) if given.turn_id is not None else None,
        act.reader,
    )
    ready, message = await act.host.store.read(describe.result, which)
    return views.ResultView(ready=ready, message=views.MessageView.of(message) if message else None)


async def cancel(act: Act, given: params.Cancel) -> views.CancelledView:
    """Stop work: a person anything, an agent what its session has sent."""
    command = cancelling.Cancel(
        SessionId(given.session_id),
        MessageId(given.message_id) if given.message_id is not None else None,
        by=act.reader,
        turn_id=act.sender(None).turn_id if act.reader else None,
        cascade=given.cascade,
        key=act.key,
    )
    stopped = await act.run(cancelling.cancel, command)
    return views.CancelledView(
        cancelled=True,
        session_retained=True,
        message_ids=list(stopped.message_ids),
        running_turn_ids=list(stopped.turn_ids),
        replayed=stopped.replayed or None,
    )


async def status(act: Act, given: params.SessionRef) -> views.StatusView:
    """Read the bounded summary of a session; an agent sees text of its own messages only."""
    found = await act.host.store.read(describe.status, SessionId(given.session_id))
    session, turn = found.session, found.turn
    creator = found.creator
    return views.StatusView(
        session_id=session.id,
        title=session.title,
        status=found.status,
        held=session.held.value if session.held else None,
        waiting=found.waiting,
        model=session.model,
        permission_mode=session.permission_mode.value,
        created_by_session=views.SessionReference(session_id=creator.id, title=creator.title) if creator else None,
        created_sessions=[views.SessionReference(session_id=id_, title=title) for id_, title in found.created] or None,
        current_task=_exchange(act, session.id, found.current) if found.current else None,
        last_turn=_last_turn(act, turn) if turn else None,
        recent_exchanges=[_exchange(act, session.id, message) for message in found.exchanges],
    )


async def directory(act: Act, given: params.SessionList) -> views.Directory:
    """List sessions with their states and links, without any text of theirs."""
    found = await act.host.store.read(describe.sessions, (sessions.cursor_of(given.cursor), given.limit))
    more = found[-1] if len(found) == given.limit else None
    entries = [
        views.DirectoryEntry(
            session_id=session.id,
            title=session.title,
            status=state,
            created_by_session_id=session.created_by,
            updated_at=views.iso(session.updated_at),
        )
        for session, _, state in found
    ]
    return views.Directory(sessions=entries, cursor=sessions.cursor_after(more[0], more[1]) if more else None)


def _last_turn(act: Act, turn: Turn) -> views.TurnView:
    view = views.TurnView.of(turn)
    # What a turn said belongs to its session and to people; other sessions read results of their own messages.
    return view if act.reader in (None, turn.session_id) else view.model_copy(update={"result": None, "error": None})


def _exchange(act: Act, session_id: SessionId, message: Message) -> views.Exchange:
    incoming = message.target_session_id == session_id
    peer = (
        (message.source_session_id, message.source_title)
        if incoming
        else (message.target_session_id, message.target_title)
    )
    mine = act.reader in (None, message.source_session_id, message.target_session_id)
    return views.Exchange(
        message_id=message.id,
        direction="incoming" if incoming else "outgoing",
        peer=views.SessionReference(session_id=peer[0], title=peer[1]),
        kind=message.kind.value,
        status=message.state.value,
        preview=cut(message.content, PREVIEW_CHARS_MAX)[0] if mine else "",
        created_at=views.iso(message.created_at),
    )


async def chain(act: Act, given: params.ChainOf) -> views.ChainView:
    """Read a page of a chain's messages, completions included."""
    if (given.chain_id is None) == (given.message_id is None):
        raise InvalidArgumentError("Name a chain by chainId or by messageId, one of the two.")
    which = (
        ChainId(given.chain_id) if given.chain_id is not None else None,
        MessageId(given.message_id) if given.message_id is not None else None,
        act.reader,
        int(given.cursor or 0),
    )
    chain_id, found, used = await act.host.store.read(describe.chain, which)
    return views.ChainView(
        chain_id=chain_id,
        messages=[views.MessageView.of(message) for _, message in found],
        messages_used=used,
        messages_max=act.host.limits.chain_messages_max,
        cursor=str(found[-1][0]) if len(found) == describe.PAGE_MAX else None,
    )
