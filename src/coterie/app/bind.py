"""Creates the turn of an input: the one place where a turn begins (I2)."""

from coterie.app.step import Step
from coterie.core.admission import Places, may_bind
from coterie.core.chain import hops_of_prompt
from coterie.core.ids import TurnId, nonce_of
from coterie.core.ledger.message import Message
from coterie.core.permission import Mode, least, resolve
from coterie.core.session.session import Session
from coterie.core.turn.items import Item, Origin, PersonText, SessionText
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input


def bind(step: Step, session: Session, waiting: Input, message: Message | None) -> Turn | None:
    """Create the running turn of *waiting* with its first item, or return None if the session runs one already.

    The caller holds the session's lock, removes the input row if there is one, and moves the message.
    """
    tx = step.tx
    mode = resolve(session.permission_mode, tx.host.permission_default)
    turn = Turn(
        TurnId(step.new_id("turn")),
        session.id,
        waiting.id,
        waiting.kind,
        message_id=message.id if message else None,
        state=TurnState.RUNNING,
        host_id=tx.host.id,
        epoch=tx.host.epoch,
        permission=least([mode, Mode(message.ceiling)]) if message else mode,
        chain_id=waiting.chain_id,
        hops=message.hops if message else hops_of_prompt(tx.host.limits.hops_max),
        fenced=False,
        created_at=step.now,
    )
    if not tx.turns.add(turn):
        return None
    streak = session.streak + 1 if message is None else 0
    if streak != session.streak:
        tx.sessions.set_streak(session.id, streak)
    tx.items.append(session.id, turn.id, [_first_item(step, waiting, message)], step.now)
    tx.changed(session.id, "turn", turn.id)
    return turn


def bind_fresh(
    step: Step, session: Session, waiting: Input, message: Message | None, *, places: Places, slot: bool
) -> Turn | None:
    """Bind an input that was never in the queue, if the session is free for it; else write it into the queue."""
    turn = None
    if waiting.waiting is None and may_bind(places, held=session.held is not None, slot=slot):
        turn = bind(step, session, waiting, message)
    if turn is None:
        step.tx.inputs.add(waiting)
        step.tx.changed(session.id, "input", waiting.id)
    return turn


def _first_item(step: Step, waiting: Input, message: Message | None) -> Item:
    if message is None:
        assert waiting.text is not None
        return PersonText(waiting.text)
    return item_of(step, message)


def item_of(step: Step, message: Message) -> SessionText:
    """What *message* says, with the origin that the ledger knows and a fresh nonce for its frame."""
    origin = Origin(
        message.id,
        message.source_session_id,
        message.source_title,
        message.target_session_id,
        kind=message.kind.value,
        reply_to_message_id=message.reply_to,
    )
    return SessionText(origin, message.content, nonce_of(step.new_id("inv")))
