"""Finding what a request names, or saying what is near."""

from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError, NotFoundError, RefusedError
from coterie.core.ids import MessageId, SessionId
from coterie.core.ledger.message import Message
from coterie.core.refusal import Refusal
from coterie.core.session.session import Held, Session
from coterie.core.text import flaw_of, is_blank
from coterie.ports.store import Tx

NEAR_MAX = 3


def session(tx: Tx, session_id: SessionId) -> Session:
    """The session, or `NotFoundError`."""
    found = tx.sessions.get(session_id)
    if found is None:
        raise no_session(session_id)
    return found


def known(tx: Tx, session_id: SessionId) -> Session:
    """The session that a request has made or changed: it is told again also if it was deleted since (I14)."""
    found = tx.sessions.known(session_id)
    assert found is not None, "the row of a session stays for who refers to it"
    return found


def locked(tx: Tx, session_id: SessionId) -> Session:
    """The session, locked for what follows, or `NotFoundError`."""
    found = tx.sessions.lock([session_id]).get(session_id)
    if found is None:
        raise no_session(session_id)
    return found


def open_target(sessions: dict[SessionId, Session], session_id: SessionId) -> Session:
    """The session that something is sent to, if it is there and takes anything.

    Raises:
        NotFoundError: It is not there.
        RefusedError: It is archived (`CONFLICT`).
    """
    found = sessions.get(session_id)
    if found is None:
        raise no_session(session_id)
    if found.held is Held.ARCHIVED:
        text = f"Session {session_id} is archived and takes no new messages; a person can release it."
        raise RefusedError(Refusal(Code.CONFLICT, text))
    return found


def no_session(session_id: SessionId) -> NotFoundError:
    """The fault of an id that names nothing; what is near is sought later, in a read, for it takes its time."""
    return NotFoundError("session", session_id)


def near_sessions(tx: Tx, text: str) -> tuple[str, ...]:
    """Up to three ids and titles of sessions that look like *text*."""
    return tx.directory.near(text, NEAR_MAX)


def message(tx: Tx, message_id: MessageId, reader: SessionId | None) -> Message:
    """The message, if *reader* sent or received it; None reads as a person, who may read all.

    Raises:
        NotFoundError: There is none, or it is not the reader's: the two look alike.
    """
    found = tx.messages.get(message_id)
    if found is None or (reader is not None and reader not in {found.source_session_id, found.target_session_id}):
        raise NotFoundError("message", message_id)
    return found


def content(text: str, chars_max: int, name: str) -> str:
    """Return *text* trimmed, if it says something and is fit to store.

    Raises:
        InvalidArgumentError: It is blank, or has a character that cannot be stored.
        RefusedError: It is longer than *chars_max* code points (`LIMIT_EXCEEDED`).
    """
    flaw = flaw_of(text)
    if flaw is not None:
        raise InvalidArgumentError(f"{name} has {flaw}, which cannot be stored; leave it out.")
    trimmed = text.strip()
    if is_blank(trimmed):
        raise InvalidArgumentError(f"{name} is empty; say what is to be done.")
    if len(trimmed) > chars_max:
        said = f"{name} has {len(trimmed)} characters; content_chars_max allows {chars_max}. Put the rest into a file."
        raise RefusedError(Refusal(Code.LIMIT_EXCEEDED, said, limit="content_chars_max", value=chars_max))
    return trimmed
