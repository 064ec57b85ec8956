"""The ledger on disk: a transaction with one part for each noun.

A use case is `(tx, command, now, new_id) -> result`; the store decides where it runs, commits it together with others,
and sends its wake-ups after the commit.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from coterie.core.admission import Heads, Places
from coterie.core.chain import Chain
from coterie.core.ids import ChainId, HostId, InputId, MessageId, NewId, SessionId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Joined, Message
from coterie.core.session.session import Held, Session
from coterie.core.turn.items import Item, Usage
from coterie.core.turn.turn import Turn
from coterie.ports.asking import Approvals, Pairs
from coterie.ports.reading import Directory, Exchanges
from coterie.ports.rows import (
    AuditRow,
    Change,
    Head,
    HostFacts,
    Input,
    NumberedItem,
    Violation,
)

C = TypeVar("C")
R = TypeVar("R")


class Hosts(Protocol):
    """Hosts and their epochs."""

    def begin_epoch(self, host_id: HostId, now: int) -> tuple[HostId, int]:
        """Return the id of this directory's host (the stored one, else *host_id*) and its new epoch."""
        ...


class Sessions(Protocol):
    """Sessions and who spawned them. A deleted one is found by `known` and `Directory.references` only."""

    def lock(self, ids: Sequence[SessionId]) -> dict[SessionId, Session]:
        """Lock the rows, ascending by id, then read them; ids that name nothing are missing."""
        ...

    def get(self, session_id: SessionId) -> Session | None:
        """One session, without a lock."""
        ...

    def known(self, session_id: SessionId) -> Session | None:
        """One session, also if it is deleted."""
        ...

    def add(self, session: Session, plugin: str | None = None) -> None:
        """Write a new session and its link to its creator, made through *plugin* if one spawned it."""
        ...

    def configure(self, session: Session) -> None:
        """Write what a person can set: title, model, permission mode, inbound policy, current-turn delivery."""
        ...

    def free(self, session_id: SessionId) -> None:
        """Let the queue move."""
        ...

    def hold(self, session_id: SessionId, held: Held) -> None:
        """Stop the queue, if it is not held already; a deleted session has none."""
        ...

    def archive(self, session_id: SessionId) -> None:
        """Put the session away, whatever else held it."""
        ...

    def set_streak(self, session_id: SessionId, streak: int) -> None:
        """Store how many human turns in a row there were."""
        ...

    def hold_waiting(self, held: Held, now: int) -> int:
        """Hold every session with a non-empty queue and note the change of each; returns how many."""
        ...

    def bury(self, session_id: SessionId, now: int) -> None:
        """Leave a tombstone of id and title."""
        ...


class Locks(Protocol):
    """Whatever decides is read under the locks of the sessions concerned; where one writer writes there are none."""

    def target(self, session_id: SessionId) -> tuple[Session, Places] | None:
        """Lock one session, and read it with what is taken of its queue."""
        ...

    def heads(self, session_id: SessionId) -> tuple[Session, Heads[Head]] | None:
        """Lock one session, and read it with what may start next; None where nothing may.

        A claim waits for nobody: nothing may start either in a session that somebody else has locked.
        """
        ...

    def ready(self, other_than: SessionId | None) -> SessionId | None:
        """Lock the session whose input has waited longest for nothing but a slot, of those that nobody has locked."""
        ...

    def involve(self, ids: Iterable[SessionId]) -> None:
        """Say that these are going to change: what was read of them before must have been read under their locks.

        Where that is not so the store begins the use case again, with their locks first.
        """
        ...

    def turn(self, turn_id: TurnId, *, shown: Sequence[MessageId] = (), parties: bool = False) -> Turn | None:
        """One turn, read when its session is locked.

        Args:
            turn_id: The turn.
            shown: The sessions that these messages went to are locked too.
            parties: And so are the senders of the turn's own messages.
        """
        ...


class Inputs(Protocol):
    """The queues."""

    def add(self, waiting: Input) -> None:
        """Append to the queue of the session, or to its promoted part."""
        ...

    def places(self, session_id: SessionId) -> Places:
        """What is taken."""
        ...

    def page(self, session_id: SessionId, limit: int) -> tuple[Input, ...]:
        """The queue in the order of its parts: promoted, prompts, messages."""
        ...

    def get(self, input_id: InputId) -> Input | None:
        """One input."""
        ...

    def remove(self, input_id: InputId) -> bool:
        """Take it out; False if it was not there."""
        ...

    def remove_message(self, message_id: MessageId) -> bool:
        """Take out the input of a message; False if it was not there."""
        ...

    def promote(self, input_id: InputId, *, first: bool = False) -> None:
        """Move it to the end of the promoted part, or before all; steering becomes a prompt."""
        ...

    def swap(self, one: InputId, other: InputId) -> None:
        """Exchange the places of two inputs of a session."""
        ...


class Marks(Protocol):
    """What keeps single inputs back, and what is meant for running turns."""

    def mark(self, input_id: InputId, waiting: Waiting | None) -> None:
        """Set why it waits, or let it go."""
        ...

    def mark_chain(self, chain_id: ChainId) -> tuple[SessionId, ...]:
        """Let every unmarked input of a spent chain wait for its budget; returns the sessions concerned."""
        ...

    def free_chain(self, chain_id: ChainId) -> tuple[SessionId, ...]:
        """Let go what waits for the chain's budget; returns the sessions concerned."""
        ...

    def marked(self, session_id: SessionId | None) -> tuple[Input, ...]:
        """Inputs of one session, or of all, that wait for a person."""
        ...

    def meant_for(self, turn_id: TurnId) -> tuple[Input, ...]:
        """Steering and offered messages of a turn, oldest first."""
        ...

    def withdraw(self, turn_id: TurnId, input_id: InputId | None = None) -> None:
        """End the offers of a turn, or one of them: the messages stay in the queue."""
        ...


class Turns(Protocol):
    """Turns."""

    def add(self, turn: Turn) -> bool:
        """Write a running turn; False if the session has one already (I1)."""
        ...

    def join(self, turn: Turn) -> None:
        """Write the hops and the chains of a turn that a message has joined (`Turn.joined_by`)."""
        ...

    def set_news(self, turn_id: TurnId, *, news: bool) -> None:
        """Say whether something waits for the turn's next model request."""
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

    def settle(self, turn: Turn, event: type, now: int) -> bool:
        """Move by *event* at *now* with the outcome fields of *turn*, if it runs under its host and epoch (I5)."""
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

    def checkpoint(self, session_id: SessionId) -> NumberedItem | None:
        """The newest checkpoint of a transcript."""
        ...

    def sizes(self, session_id: SessionId, after: int, before: int | None, limit: int) -> tuple[tuple[int, int], ...]:
        """Number and stored length of items above *after* and, if given, below *before*, newest first."""
        ...

    def names(self, session_id: SessionId, ref: str) -> bool:
        """Whether a tool result of the transcript refers to the kept output *ref*."""
        ...

    def named(self, refs: Sequence[str]) -> frozenset[str]:
        """Those of *refs* that some transcript refers to."""
        ...

    def usage(self, turn: Turn) -> tuple[Usage, ...]:
        """What the written replies and checkpoints of a turn have used."""
        ...

    def copy(self, source: SessionId, target: SessionId, up_to: int | None) -> int:
        """Copy a transcript, up to an item's number if given, into an empty one; returns how many items."""
        ...

    def purge(self, session_id: SessionId, limit: int) -> int:
        """Delete up to *limit* items of a deleted session; returns how many."""
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
        self,
        message_id: MessageId,
        event: type,
        now: int,
        *,
        into: tuple[TurnId, Joined] | None = None,
        error: str | None = None,
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

    def open_between(self, target: SessionId, source: SessionId | None) -> tuple[Message, ...]:
        """Unsettled tasks and messages to *target*, of one sender if given."""
        ...

    def accepted(self, turn_id: TurnId) -> int:
        """How many messages a turn has taken in."""
        ...

    def due(self, now: int, limit: int) -> tuple[Message, ...]:
        """Queued messages whose time is over, the oldest first."""
        ...


class Chains(Protocol):
    """Chains and what they have used."""

    def add(self, chain: Chain) -> None:
        """Start a chain."""
        ...

    def get(self, chain_id: ChainId) -> Chain | None:
        """One chain."""
        ...

    def lock(self, ids: Sequence[ChainId]) -> tuple[Chain, ...]:
        """Chains that are there, locked ascending by id, in the order of *ids*."""
        ...

    def charge(self, chain_id: ChainId, *, messages: int = 0, sessions: int = 0) -> None:
        """Add to what the chain has used."""
        ...

    def spend(self, chain_id: ChainId, *, cost: int, tokens: int) -> Chain:
        """Add what a turn has cost; returns the chain as it is now."""
        ...

    def grant(self, chain_id: ChainId, times: int) -> None:
        """Let it spend as much again, so many times."""
        ...


class Journal(Protocol):
    """What outlives an act: changes, idempotency keys and audit rows."""

    def changes(self, after: int, session_id: SessionId | None, limit: int) -> tuple[Change, ...]:
        """Changes after a position: of the session's own stream if given, else of the stream over all."""
        ...

    def last_change(self, session_id: SessionId | None) -> int:
        """The newest position of that stream; 0 if there is none."""
        ...

    def claim_key(
        self, scope: str, key: str, fingerprint: str, ref: str, *, kept_until: int | None
    ) -> tuple[str, str] | None:
        """Write the key, or return the fingerprint and ref of who was first."""
        ...

    def old_keys(self, now: int, limit: int) -> int:
        """How many keys may be forgotten, up to *limit*."""
        ...

    def forget_keys(self, now: int, limit: int) -> int:
        """Forget up to *limit* of them; returns how many."""
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
    locks: Locks
    directory: Directory
    inputs: Inputs
    marks: Marks
    turns: Turns
    items: Items
    messages: Messages
    exchanges: Exchanges
    chains: Chains
    pairs: Pairs
    approvals: Approvals
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

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """Run in a transaction of its own and return after the commit (I4).

        Args:
            use_case: What to do.
            command: What it is told.
            brief: It concerns few rows, whatever the ledger holds, so a change of thread may cost more than it does.

        Raises:
            HostError: What the use case raised; nothing was written.
            StorageError: The database refused; nothing was written.
            StorageUnknownError: The commit failed.
        """
        ...

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """Run *query* on one snapshot; *brief* as in `run`."""
        ...
