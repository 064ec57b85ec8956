"""`collaboration.send`."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.deliver import Arrival, deliver, offered_to
from coterie.app.ground import Ground, afford, pass_gate, refuse, stand
from coterie.app.idempotency import Key, once
from coterie.app.receipt import Receipt, again
from coterie.app.sender import Sender
from coterie.app.step import Step
from coterie.core import admission
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import MessageId, NewId, SessionId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Deliver, Kind, Message, Via
from coterie.core.ledger.states import MessageState
from coterie.core.session.session import Session
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A message from one session to another."""

    sender: Sender
    target: SessionId
    content: str
    kind: Kind
    notify: bool
    key: Key | None
    slot: bool
    """A slot is reserved, so that an idle target may start at once."""
    deliver: Deliver = Deliver.NEXT_TURN
    expires_at: int | None = None
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What of a message was found out on the way."""

    message_id: MessageId
    content: str
    """Trimmed."""
    hops: int


def send_message(tx: Tx, command: SendMessage, now: int, new_id: NewId) -> Receipt:
    """Accept a message for another session, and start it at once where that is free.

    Raises:
        InvalidArgumentError, NotFoundError, RefusedError, ConflictError, IdempotencyConflictError
    """
    limits, step = tx.host.limits, Step(tx, now, new_id)
    content = find.content(command.content, limits.content_chars_max, "content")
    message_id = MessageId(new_id("msg"))
    first = once(tx, command.key, message_id)
    if first is not None:
        return again(tx, MessageId(first))
    if command.target == command.sender.session_id:
        raise InvalidArgumentError("A session cannot send to itself; sessionId must name another one.")
    if command.expires_at is not None and command.expires_at <= now:
        raise InvalidArgumentError("expiresAt is in the past; leave it out, or name a time to come.")
    sessions = tx.sessions.lock([command.sender.session_id, command.target])
    target = find.open_target(sessions, command.target)
    ground = stand(step, command.sender, sessions)
    waiting = pass_gate(step, ground, target)
    hops = afford(step, ground)
    places = tx.inputs.places(target.id)
    refuse(admission.admit_message(places, limits.inbox_max))
    if waiting is None and ground.is_spent(step):
        waiting = Waiting.BUDGET
    offered = None if waiting else _offered(step, command, target, places)
    message = new_message(step, ground, target, command, draft=Draft(message_id, content, hops))
    turn = deliver(step, target, message, Arrival(places, command.slot, waiting=waiting, turn_id=offered))
    if turn is not None:
        return Receipt(message, turn)
    return Receipt(
        message,
        position=places.messages + places.completions + 1,
        held=target.held is not None,
        waiting=waiting,
        deliver=Deliver.CURRENT_TURN if offered else Deliver.NEXT_TURN,
    )


def _offered(step: Step, command: SendMessage, target: Session, places: admission.Places) -> TurnId | None:
    if command.deliver is not Deliver.CURRENT_TURN or command.kind is not Kind.MESSAGE:
        return None
    return offered_to(step, target, places)


def new_message(step: Step, ground: Ground, target: Session, command: SendMessage, *, draft: Draft) -> Message:
    """The message that *command* makes, queued."""
    return Message(
        draft.message_id,
        ground.chains[0].id,
        ground.session.id,
        ground.session.title,
        target_session_id=target.id,
        target_title=target.title,
        kind=command.kind,
        content=draft.content,
        state=MessageState.QUEUED,
        notify=command.notify,
        hops=draft.hops,
        ceiling=ground.ceiling.value,
        created_at=step.now,
        updated_at=step.now,
        source_turn_id=ground.turn.id if ground.turn else None,
        via=None if ground.turn else Via.PERSON,
        expires_at=command.expires_at,
    )
