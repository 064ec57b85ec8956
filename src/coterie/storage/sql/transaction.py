"""The one implementation of the transaction, over a driver."""

from collections import defaultdict
from typing import Final

from coterie.core.ids import SessionId
from coterie.ports.feed import READY
from coterie.ports.reading import Directory, Exchanges
from coterie.ports.rows import HostFacts
from coterie.ports.store import Chains, Hosts, Inputs, Items, Journal, Locks, Marks, Messages, Pairs, Sessions, Turns
from coterie.storage.sql._locks import SqlLocks
from coterie.storage.sql._messages import SqlExchanges, SqlItems, SqlMessages
from coterie.storage.sql._pairs import SqlPairs
from coterie.storage.sql._queue import SqlInputs, SqlMarks, SqlTurns
from coterie.storage.sql._sessions import SqlChains, SqlDirectory, SqlHosts, SqlSessions
from coterie.storage.sql.driver import Driver
from coterie.storage.sql.journal import CHECKS, SqlJournal
from coterie.storage.sql.statements import load

STATEMENTS: Final = load("sessions", "queue", "messages", "pairs", "journal") | CHECKS


UPDATED_MS: Final = 1000
"""How exact `updated_at` is: it orders lists for people, and moving it in its index with every change is dear."""


class SqlTx:
    """Implements `ports.store.Tx`. A store makes one per use case and calls `finish` before the commit."""

    def __init__(self, driver: Driver, host: HostFacts, now: int) -> None:
        self._driver = driver
        self._now = now
        self._changes: defaultdict[SessionId, dict[tuple[str, str], None]] = defaultdict(dict)
        self.topics: set[str] = set()
        """What to wake after the commit."""
        self.host = host
        self.hosts: Hosts = SqlHosts(driver)
        sessions, turns = SqlSessions(driver), SqlTurns(driver)
        self.sessions: Sessions = sessions
        self.locks: Locks = SqlLocks(driver, sessions, turns)
        self.directory: Directory = SqlDirectory(driver)
        self.inputs: Inputs = SqlInputs(driver)
        self.marks: Marks = SqlMarks(driver)
        self.turns: Turns = turns
        self.items: Items = SqlItems(driver)
        self.messages: Messages = SqlMessages(driver)
        self.exchanges: Exchanges = SqlExchanges(driver)
        self.chains: Chains = SqlChains(driver)
        self.pairs: Pairs = SqlPairs(driver)
        self.journal: Journal = SqlJournal(driver)

    def changed(self, session_id: SessionId, kind: str, ref: str) -> None:
        """See the port."""
        self._changes[session_id][kind, ref] = None

    def wake(self, topic: str) -> None:
        """See the port."""
        self.topics.add(topic)

    def finish(self) -> None:
        """Write the collected changes: one revision each, and whether the session can start something now."""
        rows: list[tuple[object, ...]] = []
        for session_id in sorted(self._changes):
            changes = self._changes[session_id]
            row = self._driver.one("touch", id=session_id, changes=len(changes), now=self._now)
            assert row is not None
            revision, ready, updated_at = row
            if self._now - updated_at >= UPDATED_MS:
                self._driver.write("set_updated", id=session_id, now=self._now)
            first = revision - len(changes) + 1
            rows += [(session_id, number, kind, ref, self._now) for number, (kind, ref) in enumerate(changes, first)]
            self.topics.add(session_id)
            if ready is not None:
                self.topics.add(READY)
        if rows:
            self._driver.write("add_changes", rows=rows)
        self._changes.clear()
