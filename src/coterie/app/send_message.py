"""`collaboration.send` and `collaboration.spawn`."""

from dataclasses import dataclass, replace

from coterie.app import find
from coterie.app.deliver import deliver
from coterie.app.idempotency import Key, once
from coterie.app.open_session import OpenSession, new_session
from coterie.app.sender import Sender, live_turn
from coterie.app.step import Step
from coterie.core import admission, chain
from coterie.core.chain import Chain
from coterie.core.errors import InvalidArgumentError, PermissionDeniedError, RefusedError
from coterie.core.ids import ChainId, MessageId, NewId, SessionId, TurnId
from coterie.core.ledger.message import Kind, Message, Via
from coterie.core.ledger.states import MessageState
from coterie.core.permission import least, resolve
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session, title_from
from coterie.core.turn.turn import Turn
from coterie.ports.store import AuditRow, Tx


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


@dataclass(frozen=True, slots=True)
class SpawnSession:
    """A new session with its first task."""

    sender: Sender
    content: str
    title: str | None
    model: str | None
    notify: bool
    key: Key | None
    slot: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the sender is told."""

    message: Message
    replayed: bool = False
    position: int | None = None
    """Place among the session messages that wait; None if it runs."""
    held: bool = False
    """The target's queue does not move until a person releases it."""

    @property
    def turn_id(self) -> TurnId | None:
        """The turn that runs the message."""
        return self.message.turn_id


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a send stands on."""

    session: Session
    turn: Turn | None
    chain: Chain
    hops: int
    ceiling: str


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
        return _again(tx, MessageId(first))
    if command.target == command.sender.session_id:
        raise InvalidArgumentError("A session cannot send to itself; sessionId must name another one.")
    sessions = tx.sessions.lock([command.sender.session_id, command.target])
    target = sessions.get(command.target)
    if target is None:
        raise find.no_session(command.target)
    ground = _ground(step, command.sender, sessions)
    _check(chain.admit_message(ground.chain, limits.chain_messages_max))
    places = tx.inputs.places(target.id)
    _check(admission.admit_message(places, limits.inbox_max))
    tx.chains.charge(ground.chain.id, messages=1)
    message = _message(step, message_id, ground, target, content=content, command=command)
    turn = deliver(step, target, message, places=places, slot=command.slot)
    return _receipt(message, turn, position=places.messages + places.completions + 1, held=target.held is not None)


def spawn_session(tx: Tx, command: SpawnSession, now: int, new_id: NewId) -> Receipt:
    """Create a session that inherits project and permission mode, and send its first task: all or nothing.

    Raises:
        InvalidArgumentError, NotFoundError, PermissionDeniedError, RefusedError, IdempotencyConflictError
    """
    limits, step = tx.host.limits, Step(tx, now, new_id)
    content = find.content(command.content, limits.content_chars_max, "content")
    message_id = MessageId(new_id("msg"))
    first = once(tx, command.key, message_id)
    if first is not None:
        return _again(tx, MessageId(first))
    ground = _ground(step, command.sender, tx.sessions.lock([command.sender.session_id]))
    if ground.session.created_by is not None:
        raise PermissionDeniedError("A spawned session cannot spawn; send to a session that is there, or answer.")
    if ground.turn is not None:
        _check(admission.admit_worker(tx.sessions.workers_active(ground.session.id), limits.workers_active_max))
    _check(chain.admit_session(ground.chain, limits.chain_sessions_max))
    _check(chain.admit_message(ground.chain, limits.chain_messages_max))
    tx.chains.charge(ground.chain.id, messages=1, sessions=1)
    worker = new_session(
        step,
        OpenSession(
            title=command.title or title_from(content),
            project_path=ground.session.project_path,
            model=command.model,
            permission_mode=ground.session.permission_mode,
            created_by=ground.session.id,
        ),
        SessionId(new_id("ses")),
    )
    tx.changed(ground.session.id, "session", worker.id)
    send = SendMessage(
        command.sender, worker.id, content, Kind.TASK, notify=command.notify, key=command.key, slot=command.slot
    )
    message = _message(step, message_id, ground, worker, content=content, command=send)
    places = admission.Places(0, 0, 0, running=False)
    turn = deliver(step, worker, message, places=places, slot=command.slot)
    return _receipt(message, turn, position=1, held=False)


def _check(refusal: Refusal | None) -> None:
    if refusal is not None:
        raise RefusedError(refusal)


def _again(tx: Tx, message_id: MessageId) -> Receipt:
    message = tx.messages.get(message_id)
    assert message is not None, "a key is kept with the message it made"
    return Receipt(message, replayed=True)


def _receipt(message: Message, turn: Turn | None, *, position: int, held: bool) -> Receipt:
    if turn is None:
        return Receipt(message, position=position, held=held)
    return Receipt(replace(message, state=MessageState.RUNNING, turn_id=turn.id))


def _ground(step: Step, sender: Sender, sessions: dict[SessionId, Session]) -> _Ground:
    """Check that the sender may speak now, and read what it has left.

    A person who speaks for a session starts a chain, as a prompt would.
    """
    tx = step.tx
    source = sessions.get(sender.session_id)
    if source is None:
        raise find.no_session(sender.session_id)
    mode = resolve(source.permission_mode, tx.host.permission_default)
    hops_max = tx.host.limits.hops_max
    if sender.turn_id is None:
        used = Chain(ChainId(step.new_id("chn")), 0, 0, step.now)
        tx.chains.add(used)
        tx.journal.audit(AuditRow("person", "send", source.id, used.id), step.now)
        hops = chain.hops_of_send(chain.hops_of_prompt(hops_max), hops_max)
        turn, ceiling = None, mode
    else:
        turn = live_turn(tx, sender)
        found = tx.chains.get(turn.chain_id)
        assert found is not None, "a turn has a chain"
        used, ceiling = found, least([turn.permission, mode])
        hops = chain.hops_of_send(turn.hops, hops_max)
    if isinstance(hops, Refusal):
        raise RefusedError(hops)
    return _Ground(source, turn, used, hops, ceiling.value)


def _message(
    step: Step, message_id: MessageId, ground: _Ground, target: Session, *, content: str, command: SendMessage
) -> Message:
    return Message(
        message_id,
        ground.chain.id,
        ground.session.id,
        ground.session.title,
        target_session_id=target.id,
        target_title=target.title,
        kind=command.kind,
        content=content,
        state=MessageState.QUEUED,
        notify=command.notify,
        hops=ground.hops,
        ceiling=ground.ceiling,
        created_at=step.now,
        updated_at=step.now,
        source_turn_id=ground.turn.id if ground.turn else None,
        via=None if ground.turn else Via.PERSON,
    )
