"""Ends queued messages that are no longer worth starting."""

from typing import Final

from coterie.app.complete import complete
from coterie.app.step import Step
from coterie.core.ids import NewId
from coterie.core.ledger.message import Message
from coterie.core.ledger.states import MessageExpired
from coterie.ports.store import Tx

BATCH: Final = 64
"""Messages that one transaction ends."""
REASON: Final = "EXPIRED: it was not started before its expiresAt."


def is_over(message: Message, now: int) -> bool:
    """Whether the time in which *message* was worth starting has passed."""
    return message.expires_at is not None and message.expires_at <= now


def expire(step: Step, message: Message) -> bool:
    """Settle one queued message as cancelled, and tell its sender; returns whether it was there to end."""
    tx = step.tx
    if not tx.inputs.remove_message(message.id):
        return False
    settled = tx.messages.move(message.id, MessageExpired, step.now, error=REASON)
    assert settled is not None, "a message with an input is queued (I3)"
    tx.changed(settled.source_session_id, "message", settled.id)
    tx.changed(settled.target_session_id, "message", settled.id)
    tx.pairs.close(settled.source_session_id, settled.target_session_id)
    complete(step, settled, slot=False)
    return True


def due_now(tx: Tx, now: int) -> tuple[Message, ...]:
    """A batch of messages whose time is over at *now*, which are about to end."""
    due = tx.messages.due(now, BATCH)
    tx.locks.involve(id_ for message in due for id_ in (message.source_session_id, message.target_session_id))
    return due


def expire_due(tx: Tx, command: None, now: int, new_id: NewId) -> int:
    """Settle the messages whose time is over, a batch at once; returns how many."""
    del command
    due, step = due_now(tx, now), Step(tx, now, new_id)
    return sum(expire(step, message) for message in due)


def anything_due(tx: Tx, now: int) -> bool:
    """Whether a queued message's time is over at *now*, in epoch milliseconds."""
    return bool(tx.messages.due(now, 1))
