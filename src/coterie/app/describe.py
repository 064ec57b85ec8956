"""What a person or an agent can read: bounded, whatever the ledger holds (I15)."""

from dataclasses import dataclass

from coterie.app import find
from coterie.core.errors import NotFoundError
from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Message
from coterie.core.ledger.states import SETTLED
from coterie.core.session.session import Session, status_of
from coterie.core.turn.items import Item
from coterie.core.turn.turn import Turn
from coterie.ports.store import Change, NumberedItem, Tx, Violation

CREATED_MAX = 8
EXCHANGES_MAX = 4
PAGE_MAX = 512


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
    """The bounded summary of one session."""

    session: Session
    status: str
    """`idle`, `queued`, or the state of the newest turn or message."""
    current: Message | None
    turn: Turn | None
    exchanges: tuple[Message, ...]
    created: tuple[tuple[SessionId, str], ...]
    creator: Session | None
    waiting: int
    """Inputs in the queue."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A turn with what its worker needs to run it."""

    turn: Turn
    session: Session
    items: tuple[Item, ...]


def result(tx: Tx, which: WhichResult) -> tuple[bool, Message | None]:
    """Whether the message has settled, and the message; None when the session never got one."""
    find.session(tx, which.session_id)
    if which.message_id is not None:
        named = find.message(tx, which.message_id, which.reader)
        if named.target_session_id != which.session_id:
            raise NotFoundError("message", which.message_id)
        return named.state in SETTLED, named
    if which.turn_id is None and which.reader not in (None, which.session_id):
        found = tx.messages.sent_last(which.reader, which.session_id)
    else:
        found = tx.messages.inbound(which.session_id, which.turn_id)
    if found is not None and which.reader not in (None, found.source_session_id, found.target_session_id):
        found = None
    return (found is not None and found.state in SETTLED), found


def messages(tx: Tx, which: tuple[tuple[MessageId, ...], SessionId | None]) -> tuple[Message, ...]:
    """The named messages, in order, as far as the reader may know them."""
    ids, reader = which
    return tuple(find.message(tx, message_id, reader) for message_id in ids)


def status(tx: Tx, session_id: SessionId) -> Status:
    """The summary of a session; its status says what runs or waits, else how the newest work ended."""
    session = find.session(tx, session_id)
    places = tx.inputs.places(session_id)
    turn, current = tx.turns.newest(session_id), tx.messages.current(session_id)
    newest = turn.state.value if turn else None
    state = status_of(running=places.running, waiting=places.waiting > 0, newest=newest)
    return Status(
        session,
        state,
        current,
        turn,
        tx.messages.recent(session_id, EXCHANGES_MAX),
        tx.sessions.created_by(session_id, CREATED_MAX),
        tx.sessions.get(session.created_by) if session.created_by else None,
        waiting=places.waiting,
    )


def sessions(tx: Tx, page: tuple[tuple[int, int] | None, int]) -> tuple[tuple[Session, int, str], ...]:
    """Sessions, most recently updated first, each with its number and its status."""
    before, limit = page
    return tx.sessions.page(before, limit)


def session(tx: Tx, session_id: SessionId) -> Session:
    """One session."""
    return find.session(tx, session_id)


def items(tx: Tx, page: Page) -> tuple[NumberedItem, ...]:
    """A page of a transcript."""
    assert page.session_id is not None
    find.session(tx, page.session_id)
    return tx.items.page(page.session_id, page.after, page.limit)


def chain(
    tx: Tx, which: tuple[ChainId | None, MessageId | None, SessionId | None, int]
) -> tuple[ChainId, tuple[tuple[int, Message], ...], int]:
    """A page of a chain's messages with their numbers, and how many messages it has used.

    Raises:
        NotFoundError: Neither names anything that the reader may know.
    """
    chain_id, message_id, reader, after = which
    if message_id is not None:
        chain_id = find.message(tx, message_id, reader).chain_id
    used = tx.chains.get(chain_id) if chain_id is not None else None
    if used is None:
        raise NotFoundError("chain", chain_id or "")
    found = tx.messages.of_chain(used.id, after, PAGE_MAX)
    if reader is not None:
        found = tuple((n, m) for n, m in found if reader in {m.source_session_id, m.target_session_id})
    return used.id, found, used.messages


def whole_turn(tx: Tx, turn_id: TurnId) -> Whole | None:
    """A turn, its session and the whole transcript."""
    turn = tx.turns.get(turn_id)
    if turn is None:
        return None
    found: list[Item] = []
    after = 0
    while page := tx.items.page(turn.session_id, after, PAGE_MAX):
        found += [numbered.item for numbered in page]
        after = page[-1].number
    return Whole(turn, find.session(tx, turn.session_id), tuple(found))


def turn_now(tx: Tx, turn_id: TurnId) -> tuple[Turn, Session] | None:
    """A turn and its session as they are now: what a worker re-reads before each effect."""
    turn = tx.turns.get(turn_id)
    return (turn, find.session(tx, turn.session_id)) if turn else None


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
