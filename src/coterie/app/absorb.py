"""Reading an outcome absorbs its notice: the sender has seen it, so it starts no turn of its own."""

from collections.abc import Iterable

from coterie.core.ids import MessageId
from coterie.core.ledger.message import Joined
from coterie.core.ledger.states import MessageBound, MessageState
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx


def absorb(tx: Tx, turn: Turn, shown: Iterable[MessageId], now: int) -> None:
    """Let the queued completions of messages that *turn* has been shown join it.

    The caller writes the item that shows them in the same transaction: a crash before it brings the notice again.
    """
    for message_id in dict.fromkeys(shown):
        _absorb_one(tx, turn, message_id, now)


def _absorb_one(tx: Tx, turn: Turn, message_id: MessageId, now: int) -> None:
    completion = tx.messages.completion_of(message_id)
    if completion is None or completion.target_session_id != turn.session_id:
        return
    # A completion that was claimed or absorbed before has left the queue: then there is nothing to do.
    if completion.state is not MessageState.QUEUED or not tx.inputs.remove_message(completion.id):
        return
    moved = tx.messages.move(completion.id, MessageBound, now, into=(turn.id, Joined.ABSORBED))
    assert moved is not None, "a message with an input is queued (I3)"
    tx.turns.lower_hops(turn.id, completion.hops)
    tx.changed(turn.session_id, "message", completion.id)
    tx.changed(completion.source_session_id, "message", completion.id)
