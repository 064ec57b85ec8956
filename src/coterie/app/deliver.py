"""Puts a message into the ledger and to its target: what send, spawn and completion share."""

from coterie.app.bind import bind_fresh
from coterie.app.step import Step
from coterie.core.admission import Places
from coterie.core.ids import InputId
from coterie.core.ledger.message import Joined, Message
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.ports.store import Input


def deliver(step: Step, target: Session, message: Message, *, places: Places, slot: bool) -> Turn | None:
    """Write *message*, queued, or running with the turn that is returned."""
    waiting = Input(
        InputId(step.new_id("inp")),
        target.id,
        message.kind.value,
        message.chain_id,
        created_at=step.now,
        message_id=message.id,
    )
    turn = bind_fresh(step, target, waiting, message, places=places, slot=slot)
    step.tx.messages.add(message, (turn.id, Joined.CLAIMED) if turn is not None else None)
    step.tx.changed(message.source_session_id, "message", message.id)
    step.tx.changed(message.target_session_id, "message", message.id)
    return turn
