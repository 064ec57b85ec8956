"""Tells the sender of a message what became of it: exactly one completion, in the settling transaction (I7, I8)."""

from collections.abc import Mapping

from coterie.app.deliver import Arrival, deliver, offered_to
from coterie.app.step import Step
from coterie.core.chain import Chain, hops_of_completion, is_spent
from coterie.core.ids import MessageId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Joined, Kind, Message, completion_content
from coterie.core.ledger.states import MessageState
from coterie.core.turn.turn import Turn


def completion_for(step: Step, message: Message, change: Mapping[str, object] | None = None) -> Message:
    """The completion of *message*, which has settled: it carries the chain and the ceiling of what it answers (I11)."""
    return Message(
        MessageId(step.new_id("msg")),
        message.chain_id,
        message.target_session_id,
        message.target_title,
        target_session_id=message.source_session_id,
        target_title=message.source_title,
        kind=Kind.COMPLETION,
        content=completion_content(message, change),
        state=MessageState.QUEUED,
        notify=False,
        hops=hops_of_completion(message.hops),
        ceiling=message.ceiling,
        created_at=step.now,
        updated_at=step.now,
        source_turn_id=message.turn_id,
        reply_to=message.id,
    )


def complete(
    step: Step,
    message: Message,
    *,
    slot: bool,
    chain: Chain | None = None,
    change: Mapping[str, object] | None = None,
) -> Turn | None:
    """Write the completion that *message* asked for, if it did; return the turn that it started, if it did.

    Args:
        step: The transaction.
        message: It has settled.
        slot: A slot is free for the turn that the completion may start.
        chain: The message's chain, if it was read before.
        change: What its turn has changed in a worktree.
    """
    tx = step.tx
    found = tx.locks.target(message.source_session_id) if message.notify else None
    if found is None:
        return None
    target, places = found
    if chain is None or chain.id != message.chain_id:
        (chain,) = tx.chains.lock([message.chain_id])
    spent = is_spent(chain, tx.host.spending)
    arrival = Arrival(
        places,
        slot,
        waiting=Waiting.BUDGET if spent else None,
        turn_id=None if spent else offered_to(step, target, places),
    )
    return deliver(step, target, completion_for(step, message, change), arrival)


def complete_into(step: Step, message: Message, turn: Turn) -> None:
    """Write the completion of a message that was cancelled with the turn that sent it: it joins that turn, fenced."""
    if not message.notify:
        return
    completion = completion_for(step, message)
    step.tx.messages.add(completion, (turn.id, Joined.ABSORBED))
    step.tx.changed(turn.session_id, "message", completion.id)
