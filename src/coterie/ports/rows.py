"""The rows of the ledger that are no noun of the core's own, as use cases read and write them."""

from dataclasses import dataclass
from enum import StrEnum

from coterie.core.chain import Spending
from coterie.core.ids import ChainId, GrantId, HostId, InputId, MessageId, RequestId, SessionId, TurnId
from coterie.core.inbound import Across, Waiting
from coterie.core.ledger.message import Message
from coterie.core.limits import Limits
from coterie.core.permission import Mode, Risk
from coterie.core.turn.items import Item


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Who executes here, and under which rules."""

    id: HostId
    epoch: int
    """Raised at each start; what an earlier epoch was running is interrupted."""
    permission_default: Mode
    limits: Limits
    across: Across = Across.ASK
    """What happens to messages between project folders."""
    resume: bool = False
    """Whether a start goes on with what waits, in place of holding it."""

    @property
    def spending(self) -> Spending:
        """What one chain may spend."""
        return Spending(self.limits.chain_cost_max, self.limits.chain_tokens_max)


@dataclass(frozen=True, slots=True)
class Input:
    """Something that waits in a session's queue."""

    id: InputId
    session_id: SessionId
    kind: str
    """`prompt`, `steer`, or the kind of the message."""
    chain_id: ChainId
    created_at: int
    text: str | None = None
    """What a person wrote."""
    message_id: MessageId | None = None
    promoted: bool = False
    """Goes before all that is not."""
    waiting: Waiting | None = None
    """Why it does not start though its session is free."""
    turn_id: TurnId | None = None
    """The running turn that may take it in: always for steering, for a message while it is offered."""


@dataclass(frozen=True, slots=True)
class Head:
    """An input that may start next."""

    input: Input
    message: Message | None
    """What it brings, if it is no prompt."""


@dataclass(frozen=True, slots=True)
class NumberedItem:
    """An item with its place in the transcript."""

    number: int
    turn_id: TurnId
    item: Item
    created_at: int


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened to a session; the feed of a page or a client is made of these."""

    number: int
    """Position in the stream over all sessions."""
    session_id: SessionId
    revision: int
    """Position in the session's own stream, without gaps."""
    kind: str
    ref: str
    at: int


@dataclass(frozen=True, slots=True)
class Violation:
    """A place where the ledger breaks a promise."""

    invariant: str
    ref: str


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A person's act for a session, or a refusal."""

    actor: str
    act: str
    session_id: SessionId | None
    ref: str


@dataclass(frozen=True, slots=True)
class PairRequest:
    """The question whether one session may write to another across projects; open until a person answers."""

    id: RequestId
    source_session_id: SessionId
    target_session_id: SessionId
    created_at: int


@dataclass(frozen=True, slots=True)
class PairGrant:
    """A person's leave for one session to write to another across projects, for a time."""

    id: GrantId
    source_session_id: SessionId
    target_session_id: SessionId
    created_at: int
    expires_at: int


class CallAnswer(StrEnum):
    """What a person says to a tool call that needs one."""

    ONCE = "once"
    """This call may run."""
    SESSION = "session"
    """So may every later one of its session with the same tool and the same subject."""
    DENY = "deny"
    """It does not run, and its model is told."""
    SAID = "said"
    """Words, to a question of the agent's own."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """Whether one tool call may run, or what the call itself asks; open while its turn runs and nobody has answered."""

    id: RequestId
    session_id: SessionId
    turn_id: TurnId
    call_id: str
    tool: str
    risk: Risk
    subject: str
    """What the call is about, as rules and grants name it: a path, a command line."""
    shown: str
    """What the call would do, for the person."""
    mode: Mode
    """What the turn may do without asking."""
    clamped_by: SessionId | None
    """Whose message keeps the turn below what its session may do; a grant for the session does not count then."""
    created_at: int
    answer: CallAnswer | None = None
    note: str = ""
    """What the person says or adds, for the model."""
    choices: tuple[str, ...] | None = None
    """Answers that the agent proposes to its own question, which is the subject; None asks for leave."""

    @property
    def is_question(self) -> bool:
        """Whether the agent wants to know something, and not to do something."""
        return self.choices is not None


@dataclass(frozen=True, slots=True)
class CallGrant:
    """A person's leave for a session to call one tool on one subject without asking again."""

    id: GrantId
    session_id: SessionId
    tool: str
    subject: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A session as others mention it."""

    id: SessionId
    title: str
    available: bool
    """False once it is deleted."""


@dataclass(frozen=True, slots=True)
class Used:
    """What the ended turns of a session have used together, delegations included; what no turn knows is None."""

    turns: int
    input_tokens: int | None
    output_tokens: int | None
    cost: int | None
    """Millionths of a US dollar."""
    uncounted: int
    """Turns of which some tokens are unknown."""
    unpriced: int
    """Turns whose cost is unknown."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A session's note that it is content with the result of a message it sent; it changes nothing else."""

    message_id: MessageId
    session_id: SessionId
    note: str
    created_at: int
