"""`collaboration.cancel`: fence first, then everything below, in one transaction."""

import json
from dataclasses import dataclass, field

from coterie.app import find
from coterie.app.complete import complete, complete_into
from coterie.app.idempotency import Key, once, until
from coterie.app.sender import Sender, live_turn
from coterie.app.step import Step
from coterie.core.errors import ConflictError, PermissionDeniedError
from coterie.core.ids import MessageId, NewId, SessionId, TurnId
from coterie.core.ledger.message import Joined, Kind, Message
from coterie.core.ledger.states import InputRemoved, MessageCancelled, MessageState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import AuditRow
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class Cancel:
    """What to stop in one session."""

    session_id: SessionId
    """The session that works, or would."""
    message_id: MessageId | None
    """One message; None is all that may be cancelled."""
    by: SessionId | None
    """The session that asks: it may stop what it has sent. None is a person, who may stop anything."""
    cascade: bool
    """Stop also what the stopped turns have sent."""
    key: Key | None = None
    turn_id: TurnId | None = None
    """The running turn of *by* in which it asks."""


@dataclass(slots=True)
class Cancelled:
    """What was stopped."""

    message_ids: list[MessageId] = field(default_factory=list[MessageId])
    turn_ids: list[TurnId] = field(default_factory=list[TurnId])
    replayed: bool = False


def cancel(tx: Tx, command: Cancel, now: int, new_id: NewId) -> Cancelled:
    """Stop queued messages at once, and fence the turns of running ones; sessions and history stay.

    Raises:
        NotFoundError: The session or the message is not there.
        PermissionDeniedError: The message was sent by another session than the one that asks.
        ConflictError: The named message has joined a turn that runs something else.
    """
    before = once(tx, command.key, "", kept_until=until(now))
    if before is not None:
        return _told(before)
    if command.by is not None and command.turn_id is not None:
        live_turn(tx, Sender(command.by, command.turn_id))
    find.locked(tx, command.session_id)
    stopped, step = Cancelled(), Step(tx, now, new_id)
    if command.by is None:
        tx.journal.audit(AuditRow("person", "cancel", command.session_id, command.message_id or ""), now)
    for message in _named(tx, command):
        _stop(step, message, None, stopped, cascade=command.cascade)
    if command.by is None and command.message_id is None:
        turn = tx.turns.running(command.session_id)
        if turn is not None and turn.id not in stopped.turn_ids:
            _fence(step, turn, stopped, cascade=command.cascade)
    _remember(tx, command.key, stopped)
    return stopped


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop what one session runs."""

    session_id: SessionId
    cascade: bool
    key: Key | None = None


def interrupt(tx: Tx, command: Interrupt, now: int, new_id: NewId) -> Cancelled:
    """A person stops the running turn of a session; its queue goes on, and so do its history and itself.

    Raises:
        NotFoundError: The session is not there.
    """
    before = once(tx, command.key, "", kept_until=until(now))
    if before is not None:
        return _told(before)
    find.locked(tx, command.session_id)
    stopped, step = Cancelled(), Step(tx, now, new_id)
    tx.journal.audit(AuditRow("person", "interrupt", command.session_id, ""), now)
    turn = tx.turns.running(command.session_id)
    if turn is not None:
        message = tx.messages.get(turn.message_id) if turn.message_id else None
        if message is not None:
            _stop(step, message, None, stopped, cascade=command.cascade)
        if turn.id not in stopped.turn_ids:
            _fence(step, turn, stopped, cascade=command.cascade)
    _remember(tx, command.key, stopped)
    return stopped


def _told(ref: str) -> Cancelled:
    message_ids, turn_ids = json.loads(ref)
    return Cancelled(message_ids, turn_ids, replayed=True)


def _remember(tx: Tx, key: Key | None, stopped: Cancelled) -> None:
    if key is not None:
        tx.journal.set_ref(key.scope, key.key, json.dumps([stopped.message_ids, stopped.turn_ids]))


def _named(tx: Tx, command: Cancel) -> tuple[Message, ...]:
    if command.message_id is None:
        found = tx.messages.open_between(command.session_id, command.by)
        return tuple(message for message in found if _may_stop(command.by, message))
    message = find.message(tx, command.message_id, None)
    if message.target_session_id != command.session_id or not _may_stop(command.by, message):
        raise PermissionDeniedError(f"Message {message.id} is not one that you sent to {command.session_id}.")
    if message.state is MessageState.RUNNING and message.joined is not Joined.CLAIMED:
        # It has joined a turn that runs something else, which must not end for it.
        raise ConflictError(f"Message {message.id}", "waiting or a turn of its own", "part of a running turn")
    return (message,)


def _may_stop(by: SessionId | None, message: Message) -> bool:
    """A person may stop anything; a session what it has sent, and a completion was sent by the host."""
    return by is None or (by == message.source_session_id and message.kind is not Kind.COMPLETION)


def _stop(step: Step, message: Message, parent: Turn | None, stopped: Cancelled, *, cascade: bool) -> None:
    tx = step.tx
    if message.state is MessageState.QUEUED:
        if not tx.inputs.remove_message(message.id):
            return
        settled = tx.messages.move(message.id, InputRemoved, step.now)
        assert settled is not None, "a message with an input is queued (I3)"
        tx.pairs.close(settled.source_session_id, settled.target_session_id)
        _tell(step, settled, parent, stopped)
    elif message.state is MessageState.RUNNING and message.turn_id is not None:
        turn = tx.turns.get(message.turn_id)
        # An accepted or absorbed message has joined a turn that runs something else, which goes on.
        if turn is None or turn.message_id != message.id:
            return
        settled = tx.messages.move(message.id, MessageCancelled, step.now)
        assert settled is not None, "the message was read in this transaction"
        _tell(step, settled, parent, stopped)
        _fence(step, turn, stopped, cascade=cascade)


def _tell(step: Step, settled: Message, parent: Turn | None, stopped: Cancelled) -> None:
    stopped.message_ids.append(settled.id)
    step.tx.changed(settled.source_session_id, "message", settled.id)
    step.tx.changed(settled.target_session_id, "message", settled.id)
    if parent is None:
        complete(step, settled, slot=False)
    else:
        complete_into(step, settled, parent)


def _fence(step: Step, turn: Turn, stopped: Cancelled, *, cascade: bool) -> None:
    tx = step.tx
    if not turn.fenced and tx.turns.fence(turn.id):
        stopped.turn_ids.append(turn.id)
        tx.changed(turn.session_id, "turn", turn.id)
    tx.wake(turn.id)
    if cascade:
        sent = tx.messages.sent_open(turn)
        tx.locks.involve(message.target_session_id for message in sent)
        for message in sent:
            _stop(step, message, turn, stopped, cascade=True)
