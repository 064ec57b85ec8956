"""Reading an outcome absorbs its notice: the sender has seen it, so it starts no turn of its own."""

from collections.abc import Iterable

from coterie.core.ids import MessageId
from coterie.core.ledger.message import Joined, Message
from coterie.core.ledger.states import MessageBound, MessageState
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx


def absorb(tx: Tx, turn: Turn, shown: Iterable[MessageId], now: int) -> Turn:
    """Let the queued completions of messages that *turn* has been shown join it; return the turn as it is then.

    The caller writes the item that shows them in the same transaction: a crash before it brings the notice again.
    """
    after = turn
    for message_id in dict.fromkeys(shown):
        completion = _absorbed(tx, turn, message_id, now)
        if completion is not None:
            after = after.joined_by(completion.hops, completion.chain_id)
    if after is not turn:
        tx.turns.join(after)
    return after


def _absorbed(tx: Tx, turn: Turn, message_id: MessageId, now: int) -> Message | None:
    completion = tx.messages.completion_of(message_id)
    if completion is None or completion.target_session_id != turn.session_id:
        return None
    # A completion that was claimed or absorbed before has left the queue: then there is nothing to do.
    if completion.state is not MessageState.QUEUED or not tx.inputs.remove_message(completion.id):
        return None
    moved = tx.messages.move(completion.id, MessageBound, now, into=(turn.id, Joined.ABSORBED))
    assert moved is not None, "a message with an input is queued (I3)"
    tx.changed(turn.session_id, "message", completion.id)
    tx.changed(completion.source_session_id, "message", completion.id)
    return completion
