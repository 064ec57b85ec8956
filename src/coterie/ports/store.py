"""The ledger on disk: a transaction with one part for each noun.

A use case is `(tx, command, now, new_id) -> result`; the store decides where it runs, commits it together with others,
and sends its wake-ups after the commit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from coterie.core.admission import Places
from coterie.core.chain import Chain
from coterie.core.ids import ChainId, HostId, InputId, MessageId, NewId, SessionId, TurnId
from coterie.core.ledger.message import Joined, Message
from coterie.core.limits import Limits
from coterie.core.permission import Mode
from coterie.core.session.session import Held, Session
from coterie.core.turn.items import Item
from coterie.core.turn.turn import Turn

C = TypeVar("C")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Who executes here, and under which rules."""

    id: HostId
    epoch: int
    """Raised at each start; what an earlier epoch was running is interrupted."""
    permission_default: Mode
    limits: Limits


@dataclass(frozen=True, slots=True)
class Input:
    """Something that waits in a session's queue."""

    id: InputId
    session_id: SessionId
    kind: str
    """`prompt`, or the kind of the message."""
    chain_id: ChainId
    created_at: int
    text: str | None = None
    """What a person wrote."""
    message_id: MessageId | None = None
    rank: int = 0
    """Lower goes first; a prompt that frees a held session has -1."""


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


class Hosts(Protocol):
    """Hosts and their epochs."""

    def begin_epoch(self, host_id: HostId, now: int) -> tuple[HostId, int]:
        """Return the id of this directory's host (the stored one, else *host_id*) and its new epoch."""
        ...


class Sessions(Protocol):
    """Sessions and who spawned them."""

    def lock(self, ids: Sequence[SessionId]) -> dict[SessionId, Session]:
        """Lock the rows, ascending by id, then read them; ids that name nothing are missing."""
        ...

    def get(self, session_id: SessionId) -> Session | None:
        """One session, without a lock."""
        ...

    def add(self, session: Session) -> None:
        """Write a new session and its link to its creator."""
        ...

    def set_held(self, session_id: SessionId, held: Held | None) -> None:
        """Stop or free the queue."""
        ...

    def set_streak(self, session_id: SessionId, streak: int) -> None:
        """Store how many human turns in a row there were."""
        ...

    def hold_waiting(self, held: Held, now: int) -> int:
        """Hold every session with a non-empty queue and note the change of each; returns how many."""
        ...

    def held(self) -> tuple[SessionId, ...]:
        """Ids of the held sessions."""
        ...

    def ready(self, other_than: SessionId | None) -> SessionId | None:
        """The session whose input has waited longest for nothing but a slot."""
        ...

    def page(self, before: tuple[int, int] | None, limit: int) -> tuple[tuple[Session, int, str], ...]:
        """Sessions, most recently updated first, after the cursor (updated_at, number).

        Each with its number and its status (`core.session.session.status_of`).
        """
        ...

    def near(self, text: str, limit: int) -> tuple[str, ...]:
        """Ids and titles that look like *text*, best first."""
        ...

    def created_by(self, session_id: SessionId, limit: int) -> tuple[tuple[SessionId, str], ...]:
        """Id and title of the sessions that this one spawned, newest first."""
        ...

    def workers_active(self, session_id: SessionId) -> int:
        """How many sessions that this one spawned have a running turn or a non-empty queue."""
        ...


class Inputs(Protocol):
    """The queues."""

    def add(self, waiting: Input) -> None:
        """Append to the queue of the session."""
        ...

    def places(self, session_id: SessionId) -> Places:
        """What is taken."""
        ...

    def heads(self, session_id: SessionId) -> tuple[Input | None, Input | None]:
        """The first prompt and the first message of the queue."""
        ...

    def remove(self, input_id: InputId) -> bool:
        """Take it out; False if it was not there."""
        ...

    def remove_message(self, message_id: MessageId) -> bool:
        """Take out the input of a message; False if it was not there."""
        ...


class Turns(Protocol):
    """Turns."""

    def add(self, turn: Turn) -> bool:
        """Write a running turn; False if the session has one already (I1)."""
        ...

    def lower_hops(self, turn_id: TurnId, hops: int) -> None:
        """Bound the turn's hops by those of a message that joined."""
        ...

    def get(self, turn_id: TurnId) -> Turn | None:
        """One turn."""
        ...

    def running(self, session_id: SessionId) -> Turn | None:
        """The running turn of a session."""
        ...

    def newest(self, session_id: SessionId) -> Turn | None:
        """The turn of a session that was created last."""
        ...

    def of_input(self, input_id: InputId) -> Turn | None:
        """The turn that a prompt started."""
        ...

    def fence(self, turn_id: TurnId) -> bool:
        """Mark that a cancel was asked; False if the turn does not run."""
        ...

    def settle(self, turn: Turn, event: type) -> bool:
        """Move by *event* with the outcome fields of *turn*, if it runs under turn's host and epoch (I5)."""
        ...

    def left_running(self, host: HostFacts) -> tuple[Turn, ...]:
        """Running turns of earlier epochs of this host."""
        ...

    def running_here(self, host: HostFacts) -> tuple[Turn, ...]:
        """Running turns of this epoch."""
        ...


class Items(Protocol):
    """Transcripts."""

    def append(self, session_id: SessionId, turn_id: TurnId, items: Sequence[Item], now: int) -> tuple[int, ...]:
        """Write items at the end; returns their numbers."""
        ...

    def page(self, session_id: SessionId, after: int, limit: int) -> tuple[NumberedItem, ...]:
        """Items with numbers above *after*, in order."""
        ...


class Messages(Protocol):
    """The ledger proper."""

    def add(self, message: Message, into: tuple[TurnId, Joined] | None = None) -> None:
        """Write a queued message, or one that runs at once because it has joined a turn."""
        ...

    def get(self, message_id: MessageId) -> Message | None:
        """One message."""
        ...

    def move(
        self, message_id: MessageId, event: type, now: int, *, into: tuple[TurnId, Joined] | None = None
    ) -> Message | None:
        """Move one message by *event*, *into* a turn if it joins one; None if its state does not allow the event."""
        ...

    def settle_turn(self, turn: Turn, event: type, now: int) -> tuple[Message, ...]:
        """Give every unsettled message of *turn* the turn's outcome by *event*; returns them settled."""
        ...

    def sent_open(self, turn: Turn) -> tuple[Message, ...]:
        """Unsettled tasks and messages that a turn has sent."""
        ...

    def completion_of(self, message_id: MessageId) -> Message | None:
        """The completion that answers a message."""
        ...

    def inbound(self, session_id: SessionId, turn_id: TurnId | None) -> Message | None:
        """The newest message to a session, of one turn if given."""
        ...

    def sent_last(self, source: SessionId, target: SessionId) -> Message | None:
        """The newest message from *source* to *target*, among the last that *source* has sent."""
        ...

    def open_between(self, target: SessionId, source: SessionId | None) -> tuple[Message, ...]:
        """Unsettled tasks and messages to *target*, of one sender if given."""
        ...

    def recent(self, session_id: SessionId, limit: int) -> tuple[Message, ...]:
        """The newest messages from or to a session."""
        ...

    def of_chain(self, chain_id: ChainId, after: int, limit: int) -> tuple[tuple[int, Message], ...]:
        """Messages of a chain with their sequence numbers above *after*, in order."""
        ...

    def current(self, session_id: SessionId) -> Message | None:
        """The message that a session runs, else the first that it has queued, else the newest to it."""
        ...


class Chains(Protocol):
    """Chains and what they have used."""

    def add(self, chain: Chain) -> None:
        """Start a chain."""
        ...

    def get(self, chain_id: ChainId) -> Chain | None:
        """One chain, locked for the change that follows."""
        ...

    def charge(self, chain_id: ChainId, *, messages: int = 0, sessions: int = 0) -> None:
        """Add to what the chain has used."""
        ...


class Journal(Protocol):
    """What outlives an act: changes, idempotency keys and audit rows."""

    def changes(self, after: int, session_id: SessionId | None, limit: int) -> tuple[Change, ...]:
        """Changes after a position: of the session's own stream if given, else of the stream over all."""
        ...

    def last_change(self, session_id: SessionId | None) -> int:
        """The newest position of that stream; 0 if there is none."""
        ...

    def claim_key(self, scope: str, key: str, fingerprint: str, ref: str) -> tuple[str, str] | None:
        """Write the key, or return the fingerprint and ref of who was first."""
        ...

    def key_is_known(self, scope: str, key: str) -> bool:
        """Whether the key was claimed."""
        ...

    def set_ref(self, scope: str, key: str, ref: str) -> None:
        """Replace what the key answers with, in the transaction that claimed it."""
        ...

    def audit(self, row: AuditRow, now: int) -> None:
        """Write an audit row."""
        ...

    def violations(self) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
        """Check every invariant that rows can show; returns what was checked and what is broken."""
        ...


class Tx(Protocol):
    """One transaction. Reads see its own writes."""

    @property
    def host(self) -> HostFacts:
        """Who executes here."""
        ...

    hosts: Hosts
    sessions: Sessions
    inputs: Inputs
    turns: Turns
    items: Items
    messages: Messages
    chains: Chains
    journal: Journal

    def changed(self, session_id: SessionId, kind: str, ref: str) -> None:
        """Note a change of a session: raises its revision, refreshes its readiness and wakes its listeners."""
        ...

    def wake(self, topic: str) -> None:
        """Wake a topic after the commit."""
        ...


UseCase: TypeAlias = Callable[[Tx, C, int, NewId], R]
"""`(tx, command, now, new_id) -> result`; *now* is epoch milliseconds and never steps back."""
Query: TypeAlias = Callable[[Tx, C], R]
"""The same for reading: it must not write."""


class Store(Protocol):
    """Runs use cases."""

    async def run(self, use_case: UseCase[C, R], command: C) -> R:
        """Run in a transaction of its own and return after the commit (I4).

        Raises:
            HostError: What the use case raised; nothing was written.
            StorageError: The database refused; nothing was written.
            StorageUnknownError: The commit failed.
        """
        ...

    async def read(self, query: Query[C, R], command: C) -> R:
        """Run *query* on one snapshot."""
        ...
