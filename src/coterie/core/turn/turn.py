"""One execution of one input.

Pure module.
"""

from dataclasses import dataclass

from coterie.core.ids import ChainId, HostId, InputId, MessageId, SessionId, TurnId
from coterie.core.permission import Mode
from coterie.core.turn.states import TurnState


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as the ledger has it."""

    id: TurnId
    session_id: SessionId
    input_id: InputId
    kind: str
    """`prompt`, or the kind of the message that started it."""
    message_id: MessageId | None
    """The message that started it."""
    state: TurnState
    host_id: HostId
    epoch: int
    permission: Mode
    """What the turn may do at most."""
    chain_id: ChainId
    hops: int
    """Least remaining hops over the input and all messages that joined."""
    fenced: bool
    """Whether a cancel was asked: whatever its worker reports, it settles as cancelled."""
    created_at: int
    ended_at: int | None = None
    result: str | None = None
    truncated: bool = False
    error_code: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
