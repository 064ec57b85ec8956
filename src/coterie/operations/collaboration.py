"""`collaboration.*`: messages between sessions (ADR 0239)."""

from dataclasses import replace
from typing import Final

from coterie.app import cancel as cancelling
from coterie.app import describe, find
from coterie.app.accept_result import AcceptResult, accept_result
from coterie.app.receipt import Receipt
from coterie.app.send_message import SendMessage, send_message
from coterie.app.spawn_session import SpawnSession, spawn_session
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Deliver, Kind
from coterie.core.session.worktree import Origin
from coterie.core.text import flaw_of
from coterie.operations import params, views
from coterie.operations.act import Act

LISTED_CHARS_MAX: Final = 4_000
"""Code points of a text that a list of messages shows; completions are bounded by themselves."""


def bound(receipt: Receipt) -> TurnId | None:
    """The turn that a receipt's own request has started."""
    return None if receipt.replayed else receipt.turn_id


def told(receipt: Receipt) -> views.SendReceipt:
    """The receipt of a send, spawn or retry."""
    message = receipt.message
    return views.SendReceipt(
        message_id=message.id,
        session_id=message.target_session_id,
        status=receipt.state.value,
        position=receipt.position,
        turn_id=receipt.turn_id,
        remaining_hops=message.hops,
        ceiling=message.ceiling,
        replayed=receipt.replayed,
        held=receipt.held or None,
        waiting=receipt.waiting.value if receipt.waiting else None,
    )


async def send(act: Act, given: params.Send) -> views.SendReceipt:
    """Send a message or a task to another session; an idle one starts at once."""
    command = SendMessage(
        act.sender(given.as_session_id),
        SessionId(given.session_id),
        given.content,
        Kind(given.kind),
        notify=bool(given.notify_on_completion),
        key=act.key,
        slot=False,
        deliver=Deliver(given.deliver),
        expires_at=int(given.expires_at.timestamp() * 1000) if given.expires_at is not None else None,
    )
    receipt = await act.bind(send_message, lambda slot: replace(command, slot=slot), bound)
    asked = command.deliver is Deliver.CURRENT_TURN and not receipt.replayed
    return told(receipt).model_copy(update={"deliver": receipt.deliver.value if asked else None})


async def _origin(act: Act, source: SessionId, workspace: str | None) -> Origin | None:
    if workspace == "shared" or act.host.workspaces is None:
        return None
    creator = await act.host.store.read(describe.session, source, brief=True)
    found = await act.host.workspaces.origin(creator.project_path) if creator.project_path is not None else None
    if found is None and workspace == "worktree":
        where = creator.project_path or "of a session without one"
        raise InvalidArgumentError(
            f"The project folder {where} is in no git project with a commit, or git is not installed, "
            "so there can be no worktree; use workspace 'shared'."
        )
    return found


async def spawn(act: Act, given: params.Spawn) -> views.SendReceipt:
    """Create a session that inherits project and permission mode, and send its first task."""
    sender = act.sender(given.as_session_id)
    replay = await act.is_replay()
    chosen = None if replay else act.model(given.model, delegated=True)
    origin = None if replay else await _origin(act, sender.session_id, given.workspace)
    model = chosen.binding.key if chosen else None
    notify = bool(given.notify_on_completion)
    receipt = await act.bind(
        spawn_session,
        lambda slot: SpawnSession(
            sender,
            given.content,
            given.title,
            model,
            notify=notify,
            key=act.key,
            slot=slot,
            workspace=given.workspace,
            origin=origin,
        ),
        bound,
        # The workers of a plugin are counted over all that waits.
        brief=False,
    )
    selection = chosen.selection.value if chosen else None
    worker = await act.host.store.read(find.known, receipt.message.target_session_id, brief=True)
    return told(receipt).model_copy(
        update={
            "requested_model": given.model or None,
            "model_selection": selection,
            "uncommitted_carried": False if worker.worktree else None,
        }
    )


async def result(act: Act, given: params.Result) -> views.ResultView:
    """Read the outcome of a message."""
    which = describe.WhichResult(
        SessionId(given.session_id),
        MessageId(given.message_id) if given.message_id is not None else None,
        TurnId(given.turn_id) if given.turn_id is not None else None,
        act.reader,
    )
    ready, message = await act.host.store.read(describe.result, which, brief=True)
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
    return stopped(await act.run(cancelling.cancel, command))


def stopped(found: cancelling.Cancelled) -> views.CancelledView:
    """What a cancel has stopped."""
    return views.CancelledView(
        cancelled=True,
        session_retained=True,
        message_ids=list(found.message_ids),
        running_turn_ids=list(found.turn_ids),
        replayed=found.replayed or None,
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
    used, found = await act.host.store.read(describe.chain, which)
    return views.ChainView(
        chain_id=used.id,
        messages=[views.MessageView.of(message, LISTED_CHARS_MAX) for _, message in found],
        budget=views.Purse.of(used, act.host.limits),
        cursor=str(found[-1][0]) if len(found) == describe.PAGE_MAX else None,
    )


async def message(act: Act, given: params.MessageRef) -> views.OneMessage:
    """Read one message, whole."""
    found, noted = await act.host.store.read(describe.message, (MessageId(given.message_id), act.reader), brief=True)
    return views.OneMessage(
        message=views.MessageView.of(found),
        acceptance_status="accepted" if noted else "pending",
        note=noted.note or None if noted else None,
    )


async def accept(act: Act, given: params.Accept) -> views.AcceptedView:
    """Note that the result of a message that one has sent is good; it changes nothing else."""
    note = given.note
    if (flaw := flaw_of(note)) is not None:
        raise InvalidArgumentError(f"note has {flaw}, which cannot be stored; leave it out.")
    command = AcceptResult(act.sender(given.as_session_id), MessageId(given.message_id), note, act.key)
    replayed = await act.run(accept_result, command)
    return views.AcceptedView(accepted=True, message_id=given.message_id, replayed=replayed or None)
