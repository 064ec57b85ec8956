"""Ends a turn: its outcome, its messages, their completions and the next claim in one transaction (I5, I6, I7)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from coterie.app.absorb import absorb
from coterie.app.claim_turn import claim_session
from coterie.app.complete import complete
from coterie.app.step import Step
from coterie.core.chain import Chain, is_spent
from coterie.core.codes import Code
from coterie.core.ids import MessageId, NewId, TurnId
from coterie.core.ledger.states import MessageCancelled, MessageCompleted, MessageFailed, MessageInterrupted
from coterie.core.session.session import Held
from coterie.core.text import cut
from coterie.core.turn.items import Item, PersonText, Reply, total
from coterie.core.turn.states import TURN_TABLE, HostDied, TurnCancelled, TurnCompleted, TurnFailed, TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx

MESSAGE_EVENT: Final[dict[type, type]] = {
    TurnCompleted: MessageCompleted,
    TurnFailed: MessageFailed,
    TurnCancelled: MessageCancelled,
    HostDied: MessageInterrupted,
}
"""A message's outcome is its turn's outcome (I6)."""


@dataclass(frozen=True, slots=True)
class SettleTurn:
    """What a worker reports at the end of a turn that it runs."""

    turn_id: TurnId
    items: tuple[Item, ...] = ()
    """Written with the outcome."""
    shows: tuple[MessageId, ...] = ()
    """Messages whose settled outcome one of the items shows."""
    cancelled: bool = False
    code: Code | None = None
    """Why it failed; None is completed."""
    message: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: int | None = None
    """Millionths of a US dollar; None is unknown."""
    counted: bool = True
    """The worker knows what the turn has used; if not, its written replies tell."""
    slot: bool = True
    """The worker's slot may go on to another turn."""
    change: Mapping[str, object] | None = None
    """What it has changed in a worktree, for completions."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of it."""

    state: TurnState | None
    """None: the turn is no longer this host's, so the report changed nothing."""
    next: Turn | None = None
    """The turn that has the slot now."""


def settle_turn(tx: Tx, command: SettleTurn, now: int, new_id: NewId) -> Settled:
    """Settle a running turn of this host's epoch; a fenced one settles as cancelled whatever is reported."""
    turn = tx.locks.turn(command.turn_id, shown=command.shows, parties=True)
    if turn is None or turn.state is not TurnState.RUNNING or (turn.host_id, turn.epoch) != (tx.host.id, tx.host.epoch):
        return Settled(None)
    if turn.fenced or command.cancelled:
        event: type = TurnCancelled
    else:
        event = TurnCompleted if command.code is None else TurnFailed
    if command.items:
        tx.items.append(turn.session_id, turn.id, command.items, now)
        turn = absorb(tx, turn, command.shows, now)
    said = _said(command) if event is TurnCompleted else None
    step = Step(tx, now, new_id)
    turn = _with_outcome(turn, command, event, said, result_chars_max=tx.host.limits.result_chars_max)
    if not command.counted:
        turn = with_usage(step, turn)
    return end_turn(step, turn, event, slot=command.slot, told=Told(said, command.change))


@dataclass(frozen=True, slots=True)
class Told:
    """What completions tell besides the turn."""

    said: str | None = None
    """The whole of what the turn's result is cut from: completions quote both of its ends."""
    change: Mapping[str, object] | None = None
    """What it has changed in a worktree."""


_NOTHING: Final = Told()


def end_turn(
    step: Step, turn: Turn, event: type, *, slot: bool, hold: Held | None = None, told: Told = _NOTHING
) -> Settled:
    """Move *turn*, which carries its outcome, by *event*, with all that follows from it.

    Args:
        step: The transaction.
        turn: With result, error and usage filled in.
        event: The move.
        slot: A slot is free for whatever may start next.
        hold: Hold every session whose queue gets something from this: after a restart nothing begins by itself (I9).
        told: What completions tell besides.
    """
    tx = step.tx
    if not tx.turns.settle(turn, event, step.now):
        return Settled(None)
    tx.changed(turn.session_id, "turn", turn.id)
    tx.wake(turn.id)
    if turn.news:
        _leave_news(step, turn, event)
    if turn.more_chains:
        # What is told to senders below asks the chains one by one; all of them are locked in one order.
        tx.chains.lock(sorted(turn.chains))
    chain = _spend(step, turn)
    waiting = tx.directory.ready(turn.session_id) if slot else None
    started: Turn | None = None
    for message in tx.messages.settle_turn(turn, MESSAGE_EVENT[event], step.now):
        if hold is not None and message.notify:
            tx.sessions.hold(message.source_session_id, hold)
        may_start = slot and waiting is None and started is None
        whole = message if told.said in (None, message.result) else replace(message, result=told.said)
        started = complete(step, whole, slot=may_start, chain=chain, change=told.change) or started
        tx.changed(message.source_session_id, "message", message.id)
        tx.changed(message.target_session_id, "message", message.id)
    if slot and started is None:
        started = claim_session(step, waiting or turn.session_id)
    return Settled(TURN_TABLE.target(event), started)


def _leave_news(step: Step, turn: Turn, event: type) -> None:
    """Keep what the turn's model was not shown: offers stay in the queue, steering becomes what the person says next.

    After a cancel or a crash steering stays in the history, marked as unread.
    """
    tx = step.tx
    tx.marks.withdraw(turn.id)
    unread = [waiting for waiting in tx.marks.meant_for(turn.id) if waiting.text is not None]
    if event in (TurnCompleted, TurnFailed):
        for waiting in reversed(unread):
            tx.inputs.promote(waiting.id, first=True)
    elif unread:
        for waiting in unread:
            tx.inputs.remove(waiting.id)
        texts = [PersonText(waiting.text or "", unread=True) for waiting in unread]
        numbers = tx.items.append(turn.session_id, turn.id, texts, step.now)
        tx.changed(turn.session_id, "items", str(numbers[-1]))
    tx.changed(turn.session_id, "input", turn.id)


def _spend(step: Step, turn: Turn) -> Chain | None:
    """Charge what the turn has cost to its chains; what waits for a chain that is spent now waits for a person.

    Returns the turn's own chain, if it was read.
    """
    tokens = (turn.input_tokens or 0) + (turn.output_tokens or 0)
    if not turn.cost and not tokens:
        return None
    tx, own = step.tx, None
    for chain_id in sorted(turn.chains):
        chain = tx.chains.spend(chain_id, cost=turn.cost or 0, tokens=tokens if turn.cost is None else 0)
        own = chain if chain_id == turn.chain_id else own
        if is_spent(chain, tx.host.spending):
            for session_id in tx.marks.mark_chain(chain.id):
                tx.changed(session_id, "budget", chain.id)
    return own


def _said(command: SettleTurn) -> str:
    """The text of the turn's last reply."""
    return next((item.text for item in reversed(command.items) if isinstance(item, Reply)), "")


def _with_outcome(turn: Turn, command: SettleTurn, event: type, said: str | None, *, result_chars_max: int) -> Turn:
    result, truncated = (None, False) if said is None else cut(said, result_chars_max)
    return replace(
        turn,
        result=result,
        truncated=truncated,
        error_code=command.code.value if command.code and event is TurnFailed else None,
        error=command.message if event is TurnFailed else None,
        input_tokens=command.input_tokens,
        output_tokens=command.output_tokens,
        cost=command.cost,
    )


def with_usage(step: Step, turn: Turn) -> Turn:
    """*turn* with what its written replies have cost: for an end that no worker reports."""
    used = total(step.tx.items.usage(turn))
    return replace(turn, input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=used.cost)


def interrupt_turn(step: Step, turn: Turn) -> Settled:
    """End a turn that an earlier epoch of this host was running; what it had produced is kept (I9)."""
    # Read again: the end of another one may have offered it something since.
    turn = with_usage(step, step.tx.locks.turn(turn.id, parties=True) or turn)
    hold = None if step.tx.host.resume else Held.RESTART
    if turn.fenced:
        return end_turn(step, turn, TurnCancelled, slot=False, hold=hold)
    message = "The host stopped while this turn ran; nothing of it is repeated."
    turn = replace(turn, error_code=Code.INTERRUPTED.value, error=message)
    return end_turn(step, turn, HostDied, slot=False, hold=hold)
