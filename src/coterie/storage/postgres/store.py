"""The store on PostgreSQL: threads with a connection each, a transaction of its own for every use case."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import errors

from coterie.core.errors import HostUnavailableError, StorageError, StorageUnknownError
from coterie.core.ids import SessionId
from coterie.ports.clock import Clock
from coterie.ports.feed import READY, Feed
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.ports.store import C, Query, R, Tx, UseCase
from coterie.storage.postgres.database import connect, migrate, said, write_fault
from coterie.storage.postgres.driver import PostgresDriver, SessionsGrew
from coterie.storage.sql.transaction import SqlNouns, SqlTx, told_as

WRITERS: Final = 8
"""Transactions at once; each has a connection."""
READERS: Final = 4
"""Reads at once: one long check must not stop the reads of every worker."""
TRIES_MAX: Final = 5
"""How often a use case runs whose transaction collided with another one."""
GROWN_MAX: Final = 64
"""How often one begins again because it needed more sessions: a cascade finds them level by level."""
CHANGES: Final = "changes"
"""Wakes who reads the stream of all changes, which tells nothing before what began earlier has ended."""
_COLLIDED: Final = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)


class PostgresTx(SqlTx):
    """A transaction that has locked whatever session it changes."""

    def __init__(self, nouns: SqlNouns, host: HostFacts, now: int, *, rows: PostgresDriver) -> None:
        super().__init__(nouns, host, now)
        self._rows = rows

    def changed(self, session_id: SessionId, kind: str, ref: str) -> None:
        """See the port."""
        self._rows.touch([session_id])
        super().changed(session_id, kind, ref)


class PostgresStore:
    """Implements `ports.store.Store`. Open it on the loop that uses it; close it there."""

    def __init__(self, url: str, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> None:
        """Connect and bring the schema up to date.

        Raises:
            SchemaNewerError: A newer Coterie wrote the schema.
            DatabaseUnusableError: The database is not fit for a ledger.
            StorageError: The server cannot be reached.
        """
        self._url, self._host, self._clock, self._ids, self._feed = url, host, clock, ids, feed
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        """Guards what the threads share: the clock's last reading, the counts, the connections."""
        self.commits = 0
        """Commits that wrote something: what the budgets count."""
        self.collisions = 0
        """Transactions that the database ended for another one's sake, and that began again."""
        self._statements = 0
        self._closed = False
        self._open = 0
        """Transactions that may write, now."""
        self._ends = 0
        """How many have ended."""
        self._behind: set[str] = set()
        """What to wake when those that are open now have ended."""
        self._drivers: set[PostgresDriver] = set()
        self._own = threading.local()
        self._written_at = self._opened()
        self._writers = ThreadPoolExecutor(WRITERS, "coterie-writer")
        self._readers = ThreadPoolExecutor(READERS, "coterie-reader")

    def _opened(self) -> int:
        connection = connect(self._url)
        try:
            migrate(connection, self._url)
            row = PostgresDriver(connection).one("last_written_at")
        except psycopg.Error as error:
            raise write_fault(error) from error
        finally:
            connection.close()
        return row[0] if row else 0

    @property
    def statements(self) -> int:
        """Statements that use cases ran, locks included, commits not."""
        return self._statements

    def become(self, host: HostFacts) -> None:
        """Act as *host* from the next use case on: its epoch is known only after a first transaction."""
        self._host = host

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port; every statement waits for the server, so none is brief enough for the loop."""
        del brief
        if self._closed:
            raise HostUnavailableError("The host is stopping.")
        return await self._loop.run_in_executor(self._writers, self._perform, use_case, command)

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port; every statement waits for the server, so none is brief enough for the loop."""
        del brief
        if self._closed:
            raise HostUnavailableError("The host is stopping.")
        return await self._loop.run_in_executor(self._readers, self._look, query, command)

    async def close(self) -> None:
        """Commit what was accepted, then let go of the connections."""
        self._closed = True
        for pool in (self._writers, self._readers):
            await asyncio.to_thread(pool.shutdown)
        for driver in self._drivers:
            driver.connection.close()

    def _perform(self, use_case: Callable[[Tx, Any, int, Any], Any], command: Any) -> Any:
        first: frozenset[str] = frozenset()
        chains: frozenset[str] = frozenset()
        collided = grown = 0
        while True:
            try:
                return self._once(use_case, command, first, chains)
            except SessionsGrew as more:
                grown += 1
                if grown > GROWN_MAX:
                    raise StorageError("This concerns more sessions than one transaction can lock.") from more
                first, chains = first | more.ids, chains | more.chains
            except _COLLIDED as error:
                collided += 1
                with self._lock:
                    self.collisions += 1
                if collided >= TRIES_MAX:
                    raise StorageError(f"The database ended this {collided} times for others; try again.") from error

    def _once(
        self,
        use_case: Callable[[Tx, Any, int, Any], Any],
        command: Any,
        first: frozenset[str],
        chains: frozenset[str],
    ) -> Any:
        driver = self._begun("BEGIN ISOLATION LEVEL READ COMMITTED")
        driver.begin(first, chains)
        with self._lock:
            self._open += 1
            ends = self._ends
            now = self._written_at = max(self._clock.now_ms(), self._written_at)
        tx, topics = PostgresTx(driver.nouns, self._host, now, rows=driver), set[str]()
        try:
            result = use_case(tx, command, now, self._ids.new)
            tx.finish()
            # Listeners look anew after a commit that failed, too: what was to wake them may be written all the same.
            topics = tx.topics
            self._commit(driver)
        except BaseException as error:
            self._roll_back(driver)
            if isinstance(error, psycopg.Error) and not isinstance(error, _COLLIDED):
                raise write_fault(error) from error
            if isinstance(error, StopIteration):
                raise told_as(error) from error
            raise
        finally:
            self._ended(driver, topics, ends)
        return result

    def _ended(self, driver: PostgresDriver, topics: set[str], ends: int) -> None:
        """Wake who waits for what this transaction did, or for its end; *ends* others had ended when it began."""
        with self._lock:
            self._open -= 1
            if driver.skipped and ends != self._ends:
                # Who had what was passed over may have let go of it since.
                topics = {*topics, READY}
            self._ends += 1
            self._statements += driver.statements
            if self._open and topics:
                self._behind.add(CHANGES)
            if self._open and driver.skipped:
                self._behind.add(READY)
            woken = topics | self._behind
            if not self._open:
                self._behind.clear()
        if woken:
            with suppress(RuntimeError):  # the loop has ended, and so has whoever listened
                self._loop.call_soon_threadsafe(self._feed.wake, woken)

    def _look(self, query: Callable[[Tx, Any], Any], command: Any) -> Any:
        driver = self._begun("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        driver.begin()
        try:
            return query(PostgresTx(driver.nouns, self._host, self._written_at, rows=driver), command)
        except psycopg.Error as error:
            raise write_fault(error) from error
        finally:
            self._roll_back(driver)

    def _begun(self, begin: str) -> PostgresDriver:
        """This thread's connection, in a transaction; a server that was started again since gets a new one."""
        driver = self._driver()
        try:
            driver.connection.execute(begin.encode())
        except psycopg.OperationalError:
            self._drop(driver)
            driver = self._driver()
            try:
                driver.connection.execute(begin.encode())
            except psycopg.Error as error:
                self._drop(driver)
                raise write_fault(error) from error
        return driver

    def _commit(self, driver: PostgresDriver) -> None:
        try:
            driver.connection.execute("COMMIT")
        except psycopg.Error as error:
            self._drop(driver)
            text = f"The commit failed ({said(error)}); repeat the request with the same idempotency key."
            raise StorageUnknownError(text) from error
        if driver.wrote:
            with self._lock:
                self.commits += 1

    def _roll_back(self, driver: PostgresDriver) -> None:
        if driver.connection.closed:
            return
        try:
            driver.connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop(driver)

    def _driver(self) -> PostgresDriver:
        driver: PostgresDriver | None = getattr(self._own, "driver", None)
        if driver is None:
            driver = self._own.driver = PostgresDriver(connect(self._url))
            with self._lock:
                self._drivers.add(driver)
        return driver

    def _drop(self, driver: PostgresDriver) -> None:
        driver.connection.close()
        self._own.driver = None
        with self._lock:
            self._drivers.discard(driver)
