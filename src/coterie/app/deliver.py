"""Puts a message into the ledger and to its target: what send, spawn, retry and completion share."""

from dataclasses import dataclass

from coterie.app.bind import bind_fresh
from coterie.app.step import Step
from coterie.core.admission import Places
from coterie.core.ids import InputId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Joined, Message
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a message finds at its target."""

    places: Places
    slot: bool
    """A slot is reserved, so that an idle target may start at once."""
    waiting: Waiting | None = None
    """Why it may not start yet."""
    turn_id: TurnId | None = None
    """The running turn that it is offered to."""


def deliver(step: Step, target: Session, message: Message, arrival: Arrival) -> Turn | None:
    """Write *message*, queued, or running with the turn that is returned."""
    tx = step.tx
    waiting = Input(
        InputId(step.new_id("inp")),
        target.id,
        message.kind.value,
        message.chain_id,
        created_at=step.now,
        message_id=message.id,
        waiting=arrival.waiting,
        turn_id=arrival.turn_id,
    )
    turn = bind_fresh(step, target, waiting, message, places=arrival.places, slot=arrival.slot)
    tx.messages.add(message, (turn.id, Joined.CLAIMED) if turn is not None else None)
    if arrival.turn_id is not None:
        tx.turns.set_news(arrival.turn_id, news=True)
    tx.changed(message.source_session_id, "message", message.id)
    tx.changed(message.target_session_id, "message", message.id)
    return turn


def offered_to(step: Step, target: Session, places: Places) -> TurnId | None:
    """The running turn that may take in what arrives now, if the session's setting lets it."""
    if not (target.current_turn and places.running):
        return None
    running = step.tx.turns.running(target.id)
    return running.id if running is not None and not running.fenced else None
