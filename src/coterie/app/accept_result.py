"""`collaboration.accept`: a session notes that it is content with a result; it changes nothing else."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.idempotency import Key, once, until
from coterie.app.sender import Sender, live_turn
from coterie.core.codes import Code
from coterie.core.errors import PermissionDeniedError, RefusedError
from coterie.core.ids import MessageId, NewId
from coterie.core.ledger.states import MessageState
from coterie.core.refusal import Refusal
from coterie.core.text import is_blank
from coterie.ports.rows import Acceptance, AuditRow
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class AcceptResult:
    """The message whose result is good, and what to remember about it."""

    sender: Sender
    message_id: MessageId
    note: str
    key: Key | None


def accept_result(tx: Tx, command: AcceptResult, now: int, new_id: NewId) -> bool:
    """Note the acceptance; returns whether that was done before with the key.

    Raises:
        NotFoundError: The session neither sent nor received the message.
        PermissionDeniedError: It did not send it.
        RefusedError: The message has not completed with a result (`WORKER_NOT_READY`).
    """
    del new_id
    if once(tx, command.key, command.message_id, kept_until=until(now)) is not None:
        return True
    by = command.sender
    if by.turn_id is not None:
        live_turn(tx, by)
    message = find.message(tx, command.message_id, by.session_id)
    if message.source_session_id != by.session_id:
        raise PermissionDeniedError(f"Message {message.id} was not sent by you; only its sender accepts a result.")
    if message.state is not MessageState.COMPLETED or is_blank(message.result or ""):
        text = f"Message {message.id} is {message.state.value} and has no result to accept; wait, or read its error."
        raise RefusedError(Refusal(Code.WORKER_NOT_READY, text))
    if by.turn_id is None:
        tx.journal.audit(AuditRow("person", "accept", by.session_id, message.id), now)
    tx.exchanges.accept(Acceptance(message.id, by.session_id, command.note, now))
    return False
