"""The one implementation of the transaction, over a driver."""

from collections import defaultdict
from typing import Final

from coterie.core.ids import SessionId
from coterie.ports.asking import Approvals, Pairs
from coterie.ports.feed import READY
from coterie.ports.reading import Directory, Exchanges
from coterie.ports.rows import HostFacts
from coterie.ports.store import (
    Chains,
    Hosts,
    Inputs,
    Items,
    Journal,
    Locks,
    Marks,
    Messages,
    Sessions,
    Turns,
)
from coterie.storage.sql._approvals import SqlApprovals
from coterie.storage.sql._locks import SqlLocks
from coterie.storage.sql._messages import SqlExchanges, SqlItems, SqlMessages
from coterie.storage.sql._pairs import SqlPairs
from coterie.storage.sql._queue import SqlInputs, SqlMarks, SqlTurns
from coterie.storage.sql._sessions import SqlChains, SqlDirectory, SqlHosts, SqlSessions
from coterie.storage.sql.driver import Driver
from coterie.storage.sql.journal import CHECKS, SqlJournal
from coterie.storage.sql.statements import load

STATEMENTS: Final = load("sessions", "queue", "messages", "pairs", "approvals", "journal") | CHECKS
SPREAD: Final = frozenset(name for name, text in STATEMENTS.items() if "..." in text)
"""Those that take a list."""

UPDATED_MS: Final = 1000
"""How exact `updated_at` is: it orders lists for people, and moving it in its index with every change is dear."""


TOUCHED_MAX: Final = 64
"""Sessions that one statement touches."""


class SqlNouns:
    """The parts of a transaction; they keep nothing but the driver, so one set serves all of a connection's."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.hosts = SqlHosts(driver)
        self.sessions = SqlSessions(driver)
        self.directory = SqlDirectory(driver)
        self.inputs = SqlInputs(driver)
        self.marks = SqlMarks(driver)
        self.turns = SqlTurns(driver)
        self.locks = SqlLocks(driver, self.turns)
        self.items = SqlItems(driver)
        self.messages = SqlMessages(driver)
        self.exchanges = SqlExchanges(driver)
        self.chains = SqlChains(driver)
        self.pairs = SqlPairs(driver)
        self.approvals = SqlApprovals(driver)
        self.journal = SqlJournal(driver)


class SqlTx:
    """Implements `ports.store.Tx`. A store makes one per use case and calls `finish` before the commit."""

    def __init__(self, nouns: SqlNouns, host: HostFacts, now: int) -> None:
        self._driver = nouns.driver
        self._now = now
        self._changes: defaultdict[SessionId, dict[tuple[str, str], None]] = defaultdict(dict)
        self.topics: set[str] = set()
        """What to wake after the commit."""
        self.host = host
        self.hosts: Hosts = nouns.hosts
        self.sessions: Sessions = nouns.sessions
        self.locks: Locks = nouns.locks
        self.directory: Directory = nouns.directory
        self.inputs: Inputs = nouns.inputs
        self.marks: Marks = nouns.marks
        self.turns: Turns = nouns.turns
        self.items: Items = nouns.items
        self.messages: Messages = nouns.messages
        self.exchanges: Exchanges = nouns.exchanges
        self.chains: Chains = nouns.chains
        self.pairs: Pairs = nouns.pairs
        self.approvals: Approvals = nouns.approvals
        self.journal: Journal = nouns.journal

    def changed(self, session_id: SessionId, kind: str, ref: str) -> None:
        """See the port."""
        self._changes[session_id][kind, ref] = None

    def wake(self, topic: str) -> None:
        """See the port."""
        self.topics.add(topic)

    def finish(self) -> None:
        """Write the collected changes: one revision each, and whether the session can start something now."""
        touched = [(session_id, len(self._changes[session_id])) for session_id in sorted(self._changes)]
        rows: list[tuple[object, ...]] = []
        for at in range(0, len(touched), TOUCHED_MAX):
            for session_id, revision, ready, updated_at in self._driver.all(
                "touch", rows=touched[at : at + TOUCHED_MAX]
            ):
                if self._now - updated_at >= UPDATED_MS:
                    self._driver.write("set_updated", id=session_id, now=self._now)
                changes = self._changes[session_id]
                first = revision - len(changes) + 1
                rows += [(session_id, at, kind, ref, self._now) for at, (kind, ref) in enumerate(changes, first)]
                self.topics.add(session_id)
                if ready is not None:
                    self.topics.add(READY)
        if rows:
            self._driver.write_rows("add_changes", rows)
        self._changes.clear()


def told_as(error: Exception) -> Exception:
    """The error as its caller gets it: a future takes no `StopIteration`, and its neighbours would wait for ever."""
    if not isinstance(error, StopIteration):
        return error
    fault = RuntimeError("a use case ended an iteration that is not its own")
    fault.__cause__ = error
    return fault
