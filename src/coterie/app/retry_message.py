"""`session.retry`: a person lets a delivery that has ended be tried once more."""

from dataclasses import dataclass, replace

from coterie.app import find
from coterie.app.deliver import Arrival, deliver
from coterie.app.ground import refuse
from coterie.app.idempotency import Key, once
from coterie.app.receipt import Receipt, again
from coterie.app.step import Step
from coterie.core import admission, chain
from coterie.core.errors import ConflictError, InvalidArgumentError
from coterie.core.ids import MessageId, NewId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Kind, Message, Via
from coterie.core.ledger.states import SETTLED, MessageState
from coterie.ports.rows import AuditRow
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class RetryMessage:
    """A task or message that has settled."""

    message_id: MessageId
    key: Key | None
    slot: bool


def retry_message(tx: Tx, command: RetryMessage, now: int, new_id: NewId) -> Receipt:
    """Send the same again as a new message, with what the old one was allowed; the old one stays as it is.

    Raises:
        NotFoundError: The message or its target is not there.
        InvalidArgumentError: It is a completion: the host writes those.
        ConflictError: It has not settled.
        RefusedError: The chain's messages or the target's places are used up, or the target is archived.
    """
    step, limits = Step(tx, now, new_id), tx.host.limits
    message_id = MessageId(new_id("msg"))
    first = once(tx, command.key, message_id)
    if first is not None:
        return again(tx, MessageId(first))
    old = find.message(tx, command.message_id, None)
    if old.kind is Kind.COMPLETION:
        raise InvalidArgumentError(f"Message {old.id} is a completion; retry the message that it answers.")
    if old.state not in SETTLED:
        raise ConflictError(f"Message {old.id}", "settled", old.state.value)
    target = find.open_target(tx.sessions.lock([old.source_session_id, old.target_session_id]), old.target_session_id)
    (used,) = tx.chains.lock([old.chain_id])
    refuse(chain.admit_message(used, limits.chain_messages_max))
    places = tx.inputs.places(target.id)
    refuse(admission.admit_message(places, limits.inbox_max))
    tx.chains.charge(used.id, messages=1)
    tx.journal.audit(AuditRow("person", "retry", old.target_session_id, old.id), now)
    waiting = Waiting.BUDGET if chain.is_spent(used, tx.host.spending) else None
    message = _fresh(old, message_id, now)
    turn = deliver(step, target, message, Arrival(places, command.slot, waiting=waiting))
    if turn is not None:
        return Receipt(message, turn)
    position = places.messages + places.completions + 1
    return Receipt(message, position=position, held=target.held is not None, waiting=waiting)


def _fresh(old: Message, message_id: MessageId, now: int) -> Message:
    return replace(
        old,
        id=message_id,
        state=MessageState.QUEUED,
        created_at=now,
        updated_at=now,
        turn_id=None,
        joined=None,
        source_turn_id=None,
        via=Via.PERSON,
        result=None,
        truncated=False,
        error=None,
        retry_of=old.id,
        expires_at=None,
    )
