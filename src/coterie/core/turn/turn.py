"""One execution of one input.

Pure module.
"""

from dataclasses import dataclass, replace

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
    cost: int | None = None
    """Millionths of a US dollar; None is unknown."""
    news: bool = False
    """Whether steering or messages wait for its next model request."""
    more_chains: tuple[ChainId, ...] = ()
    """Chains of the messages that joined, besides its own: what it sends is charged to all of them."""

    def joined_by(self, hops: int, chain_id: ChainId) -> "Turn":
        """The turn after a message with *hops* of *chain_id* joined it."""
        if hops >= self.hops and chain_id in self.chains:
            return self
        more = self.more_chains if chain_id in self.chains else (*self.more_chains, chain_id)
        return replace(self, hops=min(self.hops, hops), more_chains=more)

    @property
    def chains(self) -> tuple[ChainId, ...]:
        """Its own chain first."""
        return (self.chain_id, *self.more_chains)
