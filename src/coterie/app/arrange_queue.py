"""`queue.remove`, `queue.promote` and `queue.move`: a person puts a session's queue in order; none starts anything."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from coterie.app import find
from coterie.app.complete import complete
from coterie.app.idempotency import Key, once, until
from coterie.app.step import Step
from coterie.core.codes import Code
from coterie.core.errors import NotFoundError, RefusedError
from coterie.core.ids import InputId, MessageId, NewId, SessionId
from coterie.core.ledger.states import InputRemoved
from coterie.core.refusal import Refusal
from coterie.ports.rows import AuditRow, Input
from coterie.ports.store import Tx

_QUEUE_MAX: Final = 1 << 31
_REASON: Final = "CANCELLED: a person removed it from the queue."


@dataclass(frozen=True, slots=True)
class OfInput:
    """One waiting input of one session."""

    session_id: SessionId
    input_id: InputId
    key: Key | None


class Direction(StrEnum):
    """Which way in the queue."""

    UP = "up"
    """Earlier."""
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class MoveInput:
    """One place up or down."""

    which: OfInput
    direction: Direction


def remove_input(tx: Tx, command: OfInput, now: int, new_id: NewId) -> tuple[MessageId | None, bool]:
    """Take an input out; its message settles as cancelled and tells its sender.

    Returns the message, if it was one, and whether that was told before.

    Raises:
        NotFoundError: Session or input is not there.
    """
    before = once(tx, command.key, "", kept_until=until(now))
    if before is not None:
        return MessageId(before) if before else None, True
    waiting = _found(tx, command)
    tx.inputs.remove(waiting.id)
    tx.changed(command.session_id, "input", waiting.id)
    tx.journal.audit(AuditRow("person", "remove", command.session_id, waiting.id), now)
    if waiting.message_id is None:
        return None, False
    settled = tx.messages.move(waiting.message_id, InputRemoved, now, error=_REASON)
    assert settled is not None, "a message with an input is queued (I3)"
    tx.changed(settled.source_session_id, "message", settled.id)
    tx.changed(settled.target_session_id, "message", settled.id)
    tx.pairs.close(settled.source_session_id, settled.target_session_id)
    complete(Step(tx, now, new_id), settled, slot=False)
    if command.key is not None:
        tx.journal.set_ref(command.key.scope, command.key.key, settled.id)
    return settled.id, False


def promote_input(tx: Tx, command: OfInput, now: int, new_id: NewId) -> bool:
    """Let an input go before all that is not promoted, behind what was promoted earlier; steering becomes a prompt.

    Returns whether that was done before with the key.

    Raises:
        NotFoundError: Session or input is not there.
        RefusedError: It is promoted already (`CONFLICT`).
    """
    del new_id
    if once(tx, command.key, command.input_id, kept_until=until(now)) is not None:
        return True
    waiting = _found(tx, command)
    if waiting.promoted:
        text = f"Input {waiting.id} is promoted already; it goes when those before it have gone."
        raise RefusedError(Refusal(Code.CONFLICT, text))
    tx.inputs.promote(waiting.id)
    tx.changed(command.session_id, "input", waiting.id)
    return False


def move_input(tx: Tx, command: MoveInput, now: int, new_id: NewId) -> tuple[bool, bool]:
    """Exchange an input with its neighbour: a prompt with a prompt, steering with steering, a message with a message.

    Returns whether it moved (a promoted one and one without such a neighbour does not), and whether that was told
    before with the key.

    Raises:
        NotFoundError: Session or input is not there.
    """
    del new_id
    which = command.which
    before = once(tx, which.key, "no", kept_until=until(now))
    if before is not None:
        return before == "yes", True
    waiting = _found(tx, which)
    peers = [
        other.id
        for other in tx.inputs.page(which.session_id, _QUEUE_MAX)
        if not other.promoted and _part(other) == _part(waiting)
    ]
    if waiting.promoted:
        return False, False
    at = peers.index(waiting.id)
    beside = at - 1 if command.direction is Direction.UP else at + 1
    if not 0 <= beside < len(peers):
        return False, False
    tx.inputs.swap(waiting.id, peers[beside])
    tx.changed(which.session_id, "input", waiting.id)
    if which.key is not None:
        tx.journal.set_ref(which.key.scope, which.key.key, "yes")
    return True, False


def _part(waiting: Input) -> str:
    return waiting.kind if waiting.message_id is None else "message"


def _found(tx: Tx, which: OfInput) -> Input:
    find.locked(tx, which.session_id)
    waiting = tx.inputs.get(which.input_id)
    if waiting is None or waiting.session_id != which.session_id:
        raise NotFoundError("waiting input", which.input_id)
    return waiting
