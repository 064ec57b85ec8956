"""What a person or an agent can read: bounded, whatever the ledger holds (I15)."""

from dataclasses import dataclass

from coterie.app import find
from coterie.core.chain import Chain
from coterie.core.errors import NotFoundError
from coterie.core.ids import ChainId, MessageId, RequestId, SessionId, TurnId
from coterie.core.ledger.message import Message
from coterie.core.ledger.states import SETTLED
from coterie.core.session.session import Session, status_of
from coterie.core.turn.turn import Turn
from coterie.ports.rows import (
    Acceptance,
    CallGrant,
    CallRequest,
    Change,
    Input,
    NumberedItem,
    PairGrant,
    PairRequest,
    Reference,
    Used,
    Violation,
)
from coterie.ports.store import Tx

CREATED_MAX = 8
EXCHANGES_MAX = 4
PAGE_MAX = 512
QUEUE_MAX = 100
"""Inputs that a list of a queue shows."""
PENDING_MAX = 100
"""Questions, and grants, that a list shows."""


@dataclass(frozen=True, slots=True)
class Page:
    """Where to read on, and how much."""

    after: int
    limit: int
    session_id: SessionId | None = None


@dataclass(frozen=True, slots=True)
class WhichResult:
    """One message, or the newest one of a turn or of a session."""

    session_id: SessionId
    message_id: MessageId | None
    turn_id: TurnId | None
    reader: SessionId | None


@dataclass(frozen=True, slots=True)
class Status:
    """The bounded summary of one session (ADR 0239, the projection)."""

    session: Session
    status: str
    """`idle`, `queued`, or the state of the newest turn or message."""
    current: Message | None
    """What it runs or has queued, or what its newest turn ran."""
    delivered: Message | None
    """The task or message to it that settled last."""
    turn: Turn | None
    exchanges: tuple[Message, ...]
    created: tuple[Reference, ...]
    creator: Reference | None
    references: dict[SessionId, Reference]
    """The sessions that are mentioned."""
    waiting: int
    """Inputs in the queue."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits for a session, in the order of its parts."""

    session: Session
    running: Turn | None
    waiting: int
    inputs: tuple[tuple[Input, Message | None], ...]
    """The first of them, each with its message."""


def result(tx: Tx, which: WhichResult) -> tuple[bool, Message | None]:
    """Whether the message has settled, and the message; None when there never was one.

    A message outlives the session that it went to.

    Raises:
        NotFoundError: Session, message or turn is not there, or the reader has no part in it.
    """
    if which.message_id is not None:
        named = find.message(tx, which.message_id, which.reader)
        if named.target_session_id != which.session_id:
            raise NotFoundError("message", which.message_id)
        return named.state in SETTLED, named
    if which.turn_id is not None:
        found = _of_turn(tx, which, which.turn_id)
    else:
        find.session(tx, which.session_id)
        found = _newest(tx, which)
    return (found is not None and found.state in SETTLED), found


def _of_turn(tx: Tx, which: WhichResult, turn_id: TurnId) -> Message | None:
    turn = tx.turns.get(turn_id)
    found = tx.exchanges.of_turn(turn_id, which.reader)
    if turn is None or turn.session_id != which.session_id or (which.reader is not None and found is None):
        raise NotFoundError("turn", turn_id)
    return found


def _newest(tx: Tx, which: WhichResult) -> Message | None:
    if which.reader in (None, which.session_id):
        return tx.exchanges.inbound(which.session_id)
    # What is open is found however much was sent since; what has settled, among the last that the reader sent.
    unsettled = tx.messages.open_between(which.session_id, which.reader)
    return unsettled[-1] if unsettled else tx.exchanges.sent_last(which.reader, which.session_id)


def messages(tx: Tx, which: tuple[tuple[MessageId, ...], SessionId | None]) -> tuple[Message, ...]:
    """The named messages, in order, as far as the reader may know them."""
    ids, reader = which
    return tuple(find.message(tx, message_id, reader) for message_id in ids)


def status(tx: Tx, session_id: SessionId) -> Status:
    """The summary of a session; its status says what runs or waits, else how the newest work ended."""
    session = find.session(tx, session_id)
    places = tx.inputs.places(session_id)
    turn, open_ = tx.turns.newest(session_id), tx.exchanges.current(session_id)
    delivered, exchanges = tx.exchanges.delivered(session_id), tx.exchanges.recent(session_id, EXCHANGES_MAX)
    current = open_
    if current is None and delivered is not None and turn is not None and delivered.turn_id == turn.id:
        current = delivered
    newest = turn.state.value if turn else None
    mentioned = [*exchanges, *([current] if current else []), *([delivered] if delivered else [])]
    ids = {id_ for message in mentioned for id_ in (message.source_session_id, message.target_session_id)}
    references = tx.directory.references([*ids, *([session.created_by] if session.created_by else [])])
    return Status(
        session,
        status_of(running=places.running, waiting=places.waiting > 0, newest=newest),
        current,
        delivered,
        turn,
        exchanges,
        tx.directory.created_by(session_id, CREATED_MAX),
        references.get(session.created_by) if session.created_by else None,
        references,
        waiting=places.waiting,
    )


def queue(tx: Tx, session_id: SessionId) -> Queue:
    """What waits for a session."""
    session = find.session(tx, session_id)
    inputs = tx.inputs.page(session_id, QUEUE_MAX)
    named = tuple((one, tx.messages.get(one.message_id) if one.message_id else None) for one in inputs)
    return Queue(session, tx.turns.running(session_id), tx.inputs.places(session_id).waiting, named)


def marked(tx: Tx, session_id: SessionId) -> tuple[Session, tuple[Input, ...]]:
    """A session, and what in its queue waits for a person."""
    return find.session(tx, session_id), tx.marks.marked(session_id)


def message(tx: Tx, which: tuple[MessageId, SessionId | None]) -> tuple[Message, Acceptance | None]:
    """One message, as far as the reader may know it, and the note about its result."""
    found = find.message(tx, *which)
    return found, tx.exchanges.acceptance(found.id)


def pending(tx: Tx, command: None) -> tuple[tuple[PairRequest, Reference, Reference, int], ...]:
    """Questions that wait for a person: who wants to write to whom, and how many messages wait for that."""
    del command
    asked = tx.pairs.pending(PENDING_MAX)
    named = tx.directory.references([id_ for one in asked for id_ in (one.source_session_id, one.target_session_id)])
    return tuple((one, named[one.source_session_id], named[one.target_session_id], _waiting(tx, one)) for one in asked)


def _waiting(tx: Tx, asked: PairRequest) -> int:
    return len(tx.pairs.waiting(asked.source_session_id, asked.target_session_id))


def call_request(tx: Tx, request_id: RequestId) -> CallRequest | None:
    """One question about a tool call, open or not."""
    return tx.approvals.request(request_id)


def calls_asked(tx: Tx, command: None) -> tuple[tuple[CallRequest, Reference, Reference | None], ...]:
    """Tool calls that wait for a person: with the session, and with the one that keeps it below its mode."""
    del command
    asked = tx.approvals.pending(PENDING_MAX)
    named = tx.directory.references([id_ for one in asked for id_ in (one.session_id, one.clamped_by) if id_])
    return tuple((one, named[one.session_id], named[one.clamped_by] if one.clamped_by else None) for one in asked)


def call_grants(tx: Tx, command: None) -> tuple[tuple[CallGrant, Reference], ...]:
    """What sessions may do without asking again, newest first."""
    del command
    found = tx.approvals.grants(PENDING_MAX)
    named = tx.directory.references([one.session_id for one in found])
    return tuple((one, named[one.session_id]) for one in found)


def grants(tx: Tx, now: int) -> tuple[tuple[PairGrant, Reference, Reference], ...]:
    """The grants that hold at *now*, epoch milliseconds."""
    found = tx.pairs.grants(now, PENDING_MAX)
    named = tx.directory.references([id_ for one in found for id_ in (one.source_session_id, one.target_session_id)])
    return tuple((one, named[one.source_session_id], named[one.target_session_id]) for one in found)


def sessions(tx: Tx, page: tuple[tuple[int, int] | None, int]) -> tuple[tuple[Session, int, str], ...]:
    """Sessions, most recently updated first, each with its number and its status."""
    before, limit = page
    return tx.directory.page(before, limit)


def session(tx: Tx, session_id: SessionId) -> Session:
    """One session."""
    return find.session(tx, session_id)


def session_used(tx: Tx, session_id: SessionId) -> tuple[Session, Used]:
    """One session, and what its turns have used."""
    return find.session(tx, session_id), tx.directory.used(session_id)


def items(tx: Tx, page: Page) -> tuple[NumberedItem, ...]:
    """A page of a transcript."""
    assert page.session_id is not None
    find.session(tx, page.session_id)
    return tx.items.page(page.session_id, page.after, page.limit)


def chain(
    tx: Tx, which: tuple[ChainId | None, MessageId | None, SessionId | None, int]
) -> tuple[Chain, tuple[tuple[int, Message], ...]]:
    """A chain and a page of its messages with their numbers.

    Raises:
        NotFoundError: Neither names anything that the reader may know.
    """
    chain_id, message_id, reader, after = which
    if message_id is not None:
        chain_id = find.message(tx, message_id, reader).chain_id
    used = tx.chains.get(chain_id) if chain_id is not None else None
    if used is None:
        raise NotFoundError("chain", chain_id or "")
    found = tx.exchanges.of_chain(used.id, after, PAGE_MAX, reader)
    if reader is not None and not found and not after:
        raise NotFoundError("chain", used.id)
    return used, found


def turn_now(tx: Tx, turn_id: TurnId) -> tuple[Turn, Session] | None:
    """A turn and its session as they are now: what a worker re-reads before each effect; None once it is deleted."""
    turn = tx.turns.get(turn_id)
    session = tx.sessions.get(turn.session_id) if turn else None
    return (turn, session) if turn and session else None


def running_here(tx: Tx, command: None) -> tuple[int, int]:
    """This host's epoch, and how many turns it runs, parked ones included."""
    del command
    return tx.host.epoch, len(tx.turns.running_here(tx.host))


def changes(tx: Tx, page: Page) -> tuple[Change, ...]:
    """Changes after a position."""
    return tx.journal.changes(page.after, page.session_id, page.limit)


def newest_change(tx: Tx, session_id: SessionId | None) -> int:
    """The newest position of the stream."""
    return tx.journal.last_change(session_id)


def verify(tx: Tx, command: None) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
    """Check the whole ledger; returns the names of the checks and what is broken."""
    del command
    return tx.journal.violations()
