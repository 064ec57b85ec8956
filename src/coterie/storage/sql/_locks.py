"""Locks over a driver, with what is read under them."""

from collections.abc import Iterable, Sequence
from typing import Final

from coterie.core.admission import Heads, Places
from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Head
from coterie.storage.sql._messages import message_of
from coterie.storage.sql._queue import SqlTurns, input_of, places_of
from coterie.storage.sql._sessions import WIDTH, session_of
from coterie.storage.sql.driver import Driver
from coterie.storage.sql.statements import COLUMNS

_ITS_MESSAGE: Final = WIDTH + len(COLUMNS["inputs"].split())
"""Where in a row of `heads` the message of its input begins."""


class SqlLocks:
    """Implements `ports.store.Locks`."""

    def __init__(self, driver: Driver, turns: SqlTurns) -> None:
        self._driver, self._turns = driver, turns

    def target(self, session_id: SessionId) -> tuple[Session, Places] | None:
        """See the port."""
        self._driver.lock_sessions([session_id])
        row = self._driver.one("target", id=session_id)
        return (session_of(row), places_of(row[WIDTH:])) if row else None

    def heads(self, session_id: SessionId) -> tuple[Session, Heads[Head]] | None:
        """See the port."""
        if not self._driver.take_session(session_id):
            return None
        rows = self._driver.all("heads", id=session_id)
        promoted = prompt = message = None
        for row in rows:
            message_row = row[_ITS_MESSAGE:]
            found = Head(input_of(row[WIDTH:_ITS_MESSAGE]), message_of(message_row) if message_row[0] else None)
            if found.input.promoted:
                promoted = found
            elif found.message is None:
                prompt = found
            else:
                message = found
        return (session_of(rows[0]), Heads(promoted, prompt, message)) if rows else None

    def ready(self, other_than: SessionId | None) -> SessionId | None:
        """See the port."""
        found = self._driver.take_ready(other_than or "")
        return SessionId(found) if found else None

    def involve(self, ids: Iterable[SessionId]) -> None:
        """See the port."""
        self._driver.involve(sorted(set(ids)))

    def turn(self, turn_id: TurnId, *, shown: Sequence[MessageId] = (), parties: bool = False) -> Turn | None:
        """See the port."""
        self._driver.lock_of_turn(turn_id, shown, parties=parties)
        return self._turns.get(turn_id)
