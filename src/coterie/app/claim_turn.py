"""Starts the next waiting input in a free slot."""

from typing import Final

from coterie.app.bind import bind
from coterie.app.expire import expire, is_over
from coterie.app.step import Step
from coterie.core.admission import head
from coterie.core.ids import NewId, SessionId
from coterie.core.ledger.message import Joined, Message
from coterie.core.ledger.states import MessageBound
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input
from coterie.ports.store import Tx

EXPIRED_MAX: Final = 8
"""Messages whose time is over that one claim ends on its way."""


def claim_session(step: Step, session_id: SessionId) -> Turn | None:
    """Start the head of one session's queue, if it is free and has one."""
    # What this session has after these is found by the wake-up that their end has caused.
    for _ in range(EXPIRED_MAX):
        found = step.tx.locks.heads(session_id)
        if found is None or found[0].held is not None:
            return None
        session, heads = found
        first = head(heads, session.streak)
        if first is None:
            return None
        if first.message is None or not is_over(first.message, step.now):
            return _start(step, session, first.input, first.message)
        expire(step, first.message)
    return None


def _start(step: Step, session: Session, waiting: Input, message: Message | None) -> Turn | None:
    tx = step.tx
    turn = bind(step, session, waiting, message)
    if turn is None:
        return None
    tx.inputs.remove(waiting.id)
    if message is not None:
        moved = tx.messages.move(message.id, MessageBound, step.now, into=(turn.id, Joined.CLAIMED))
        assert moved is not None, "a message with an input is queued (I3)"
        tx.changed(message.source_session_id, "message", message.id)
        tx.changed(session.id, "message", message.id)
    return turn


def claim_turn(tx: Tx, command: None, now: int, new_id: NewId) -> Turn | None:
    """Start the input that has waited longest for a slot; None if nothing waits for one."""
    del command
    step, first = Step(tx, now, new_id), tx.locks.ready(None)
    if first is None:
        return None
    turn = claim_session(step, first)
    if turn is not None:
        return turn
    # All that it had was no longer worth starting: the slot is for whoever waits next.
    following = tx.locks.ready(first)
    return claim_session(step, following) if following is not None else None


def anything_ready(tx: Tx, command: None) -> bool:
    """Whether an input waits for nothing but a slot."""
    del command
    return tx.directory.ready(None) is not None
