"""The store on SQLite: one writer thread that commits many use cases at once, and readers beside it.

While one batch is flushed the next one gathers, so group commit needs no timer. Nothing is answered before the commit
of its batch: not success, not a replay, not a refusal (I4).
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, cast

from coterie.core.errors import HostError, HostUnavailableError, StorageError, StorageUnknownError
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.ports.store import C, Query, R, Tx, UseCase
from coterie.storage.sql.transaction import SqlTx
from coterie.storage.sqlite.database import SqliteDriver, connect, migrate, write_fault

BATCH_MAX: Final = 256
"""Use cases to one commit at most."""
READERS: Final = 4
"""Threads that read: one long check must not stop the reads of every worker."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    use_case: Callable[[Tx, Any, int, Any], Any]
    command: Any
    future: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Answer:
    job: _Job
    result: Any
    error: BaseException | None
    topics: frozenset[str]


class _TransactionEndedError(Exception):
    """SQLite ended the transaction of the batch by itself (disk full, interrupt): nothing of it was kept."""


class SqliteStore:
    """Implements `ports.store.Store`. Open it on the loop that uses it; close it there."""

    def __init__(self, path: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> None:
        """Open the file and bring its schema up to date.

        Raises:
            SchemaNewerError: A newer Coterie wrote the file.
            DatabaseCorruptError: It is no database, or damaged.
        """
        self._path, self._clock, self._ids, self._feed = path, clock, ids, feed
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._driver = SqliteDriver(connect(path))
        self.commits = 0
        """Commits that wrote something: what the budgets count."""
        try:
            migrate(self._driver.connection, path)
            row = self._driver.one("last_written_at")
        except BaseException:
            self._driver.connection.close()
            raise
        self._written_at: int = row[0] if row else 0
        self._closed = False
        self._lost = False
        """The connection was closed after a commit that failed."""
        self._local = threading.local()
        self._reading: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(READERS, "coterie-reader")
        self._writer = threading.Thread(target=self._serve, name="coterie-writer", daemon=True)
        self._writer.start()

    @property
    def statements(self) -> int:
        """Statements that the writer ran, commits and savepoints not counted."""
        return self._driver.statements

    def become(self, host: HostFacts) -> None:
        """Act as *host* from the next batch on: its epoch is known only after a first transaction."""
        self._host = host

    async def run(self, use_case: UseCase[C, R], command: C) -> R:
        """See the port."""
        if self._closed:
            raise HostUnavailableError("The host is stopping.")
        future: asyncio.Future[R] = self._loop.create_future()
        self._jobs.put(_Job(use_case, command, future))
        return await future

    async def read(self, query: Query[C, R], command: C) -> R:
        """See the port."""
        if self._closed:
            raise HostUnavailableError("The host is stopping.")
        return await self._loop.run_in_executor(self._readers, self._read, query, command)

    async def close(self) -> None:
        """Commit what was accepted, then close the file."""
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for connection in (*self._reading, self._driver.connection):
            connection.close()

    def _read(self, query: Query[C, R], command: C) -> R:
        driver = cast("SqliteDriver | None", getattr(self._local, "driver", None))
        if driver is None:
            connection = connect(self._path, read_only=True)
            self._reading.append(connection)
            driver = self._local.driver = SqliteDriver(connection)
        try:
            driver.connection.execute("BEGIN")
            return query(SqlTx(driver, self._host, self._written_at), command)
        except sqlite3.Error as error:
            raise write_fault(self._path, error) from error
        finally:
            # A fault of the disk ends the transaction by itself.
            if driver.connection.in_transaction:
                driver.connection.execute("ROLLBACK")

    def _serve(self) -> None:
        stopping = False
        while not stopping:
            batch = [self._jobs.get()]
            while len(batch) < BATCH_MAX:
                try:
                    batch.append(self._jobs.get_nowait())
                except Empty:
                    break
            stopping = None in batch
            jobs = [job for job in batch if job is not None]
            if jobs:
                try:
                    answers = self._commit(jobs)
                except BaseException as error:  # noqa: BLE001 - the one writer must outlive whatever a use case raises
                    answers = self._given_up(jobs, error)
                self._loop.call_soon_threadsafe(self._answer, answers)

    def _answer(self, answers: Sequence[_Answer]) -> None:
        topics: set[str] = set()
        for answer in answers:
            topics |= answer.topics
            future = answer.job.future
            if future.cancelled():
                continue
            if answer.error is not None:
                future.set_exception(answer.error)
            else:
                future.set_result(answer.result)
        self._feed.wake(topics)

    def _commit(self, jobs: Sequence[_Job]) -> list[_Answer]:
        try:
            connection = self._connection()
        except (sqlite3.Error, HostError) as error:
            return _all_failed(jobs, StorageError(f"The database cannot be opened now: {error}."))
        now = max(self._clock.now_ms(), self._written_at)
        before = connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            return _all_failed(jobs, StorageError(f"The database is not writable now: {error}."))
        try:
            answers = [self._perform(job, now, alone=len(jobs) == 1) for job in jobs]
        except _TransactionEndedError as ended:
            if len(jobs) == 1:
                return _all_failed(jobs, StorageError(f"The database refused the write: {ended.__cause__}."))
            return [answer for job in jobs for answer in self._commit([job])]
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            # What the connection believes to have written is not known, so the next batch opens another one.
            connection.close()
            self._lost = True
            text = f"The commit failed ({error}); repeat the request with the same idempotency key."
            # Listeners look anew: what was to wake them may be written all the same.
            return [
                _Answer(job, None, StorageUnknownError(text), answer.topics)
                for job, answer in zip(jobs, answers, strict=True)
            ]
        # What was rolled back is counted in `total_changes` too.
        if connection.total_changes != before and any(answer.error is None for answer in answers):
            self.commits += 1
            self._written_at = now
        return answers

    def _perform(self, job: _Job, now: int, *, alone: bool) -> _Answer:
        connection = self._driver.connection
        begin, undo, keep = (None, "ROLLBACK", None) if alone else ("SAVEPOINT one", "ROLLBACK TO one", "RELEASE one")
        try:
            if begin:
                connection.execute(begin)
            tx = SqlTx(self._driver, self._host, now)
            result = job.use_case(tx, job.command, now, self._ids.new)
            tx.finish()
            if keep:
                connection.execute(keep)
        except Exception as error:  # the batch goes on whatever one use case does
            if not connection.in_transaction:
                raise _TransactionEndedError from error
            try:
                connection.execute(undo)
                if keep:
                    connection.execute(keep)
            except sqlite3.Error as worse:
                if connection.in_transaction:
                    connection.rollback()
                raise _TransactionEndedError from worse
            if isinstance(error, sqlite3.Error):
                fault: BaseException = write_fault(self._path, error)
                fault.__cause__ = error
            else:
                fault = error
            return _Answer(job, None, fault, frozenset())
        return _Answer(job, result, None, frozenset(tx.topics))

    def _given_up(self, jobs: Sequence[_Job], error: BaseException) -> list[_Answer]:
        _LOG.error("a batch of the writer was given up", exc_info=error)
        self._driver.connection.close()
        self._lost = True
        text = "The host failed in this write; repeat the request with the same idempotency key."
        return _all_failed(jobs, StorageUnknownError(text))

    def _connection(self) -> sqlite3.Connection:
        if self._lost:
            self._driver.connection = connect(self._path)
            self._lost = False
        return self._driver.connection


def _all_failed(jobs: Sequence[_Job], error: HostError) -> list[_Answer]:
    return [_Answer(job, None, type(error)(*error.args), frozenset()) for job in jobs]
