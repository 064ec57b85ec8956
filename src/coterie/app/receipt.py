"""What the sender of a message is told; send, spawn and retry answer it."""

from dataclasses import dataclass

from coterie.core.ids import MessageId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Deliver, Message
from coterie.core.ledger.states import MessageState
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a message."""

    message: Message
    """As it was written."""
    turn: Turn | None = None
    """The turn that was started for it."""
    replayed: bool = False
    position: int | None = None
    """Place among the session messages that wait; None if it runs."""
    held: bool = False
    """The target's queue does not move until a person releases it."""
    waiting: Waiting | None = None
    """Why it does not start though its session may be free."""
    deliver: Deliver = Deliver.NEXT_TURN
    """When it reaches its target: what was asked for is not always possible."""

    @property
    def turn_id(self) -> TurnId | None:
        """The turn that runs the message."""
        return self.message.turn_id if self.turn is None else self.turn.id

    @property
    def state(self) -> MessageState:
        """Where the message is."""
        return self.message.state if self.turn is None else MessageState.RUNNING


def again(tx: Tx, message_id: MessageId) -> Receipt:
    """The receipt of an earlier request with the same key, with the present state."""
    message = tx.messages.get(message_id)
    assert message is not None, "a key is kept with the message it made"
    return Receipt(message, replayed=True)
