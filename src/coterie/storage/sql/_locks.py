"""Locks over a driver, with what is read under them."""

from collections.abc import Iterable, Sequence

from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.storage.sql._queue import SqlTurns
from coterie.storage.sql._sessions import SqlSessions
from coterie.storage.sql.driver import Driver


class SqlLocks:
    """Implements `ports.store.Locks`."""

    def __init__(self, driver: Driver, sessions: SqlSessions, turns: SqlTurns) -> None:
        self._driver, self._sessions, self._turns = driver, sessions, turns

    def session(self, session_id: SessionId) -> Session | None:
        """See the port."""
        return self._sessions.get(session_id) if self._driver.take_session(session_id) else None

    def ready(self, other_than: SessionId | None) -> Session | None:
        """See the port."""
        found = self._driver.take_ready(other_than or "")
        return self._sessions.get(SessionId(found)) if found else None

    def involve(self, ids: Iterable[SessionId]) -> None:
        """See the port."""
        self._driver.involve(sorted(set(ids)))

    def turn(self, turn_id: TurnId, *, shown: Sequence[MessageId] = (), parties: bool = False) -> Turn | None:
        """See the port."""
        self._driver.lock_of_turn(turn_id, shown, parties=parties)
        return self._turns.get(turn_id)
