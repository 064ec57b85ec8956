"""The writing side of SQLite: many use cases to one commit, a savepoint each.

Nothing here is concurrent: `SqliteStore` sees to it that only one thread is in it, a simulation runs it where it likes.
"""

import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from coterie.core.errors import DatabaseCorruptError, HostError, StorageError, StorageUnknownError
from coterie.ports.clock import Clock
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.ports.store import Tx
from coterie.storage.sql.transaction import SqlNouns, SqlTx, told_as
from coterie.storage.sqlite.database import (
    SqliteDriver,
    be_patient,
    connect,
    error_code,
    explained,
    migrate,
    write_back,
    write_fault,
)

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """A use case that waits for its transaction."""

    use_case: Callable[[Tx, Any, int, Any], Any]
    command: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a job, true once it is told."""

    result: Any
    error: BaseException | None
    topics: frozenset[str]
    """What to wake."""


class _TransactionEndedError(Exception):
    """SQLite ended the transaction of the batch by itself (disk full, interrupt): nothing of it was kept."""


class SqliteWriter:
    """The one connection that writes."""

    def __init__(self, path: Path, host: HostFacts, clock: Clock, ids: IdSource) -> None:
        """Open the file and bring its schema up to date.

        Raises:
            SchemaNewerError: A newer Coterie wrote the file.
            DatabaseCorruptError: It is no database, or damaged.
        """
        self._path, self._clock, self._ids = path, clock, ids
        self.host = host
        """Who acts from the next batch on."""
        self.driver = SqliteDriver(connect(path))
        self._nouns = SqlNouns(self.driver)
        self.commits = 0
        """Commits that wrote something: what the budgets count."""
        try:
            migrate(self.driver.connection, path)
            with explained(path):
                row = self.driver.one("last_written_at")
        except BaseException:
            self.driver.connection.close()
            raise
        self.written_at: int = row[0] if row else 0
        """The time of the last batch, which no later one goes behind."""
        self._flushes: deque[float] = deque(maxlen=5)
        self._waits = True
        """Whether the connection waits for other programs that have the file."""
        self._lost = False
        """The connection was closed after a commit that failed."""
        self._doubtful = False
        """A sync may have failed: what the next connection reads may not be on the disk."""

    def close(self) -> None:
        """Let go of the file."""
        self.driver.connection.close()

    def write(self, jobs: Sequence[Job]) -> list[Answer]:
        """Perform *jobs* in one transaction and commit it; the answers come in their order, whatever a job raises.

        Nothing is answered before the commit: not success, not a replay, not a refusal (I4).
        """
        try:
            return self._commit(jobs)
        except BaseException as error:  # noqa: BLE001 - the one writer must outlive whatever a use case raises
            return self._given_up(jobs, error)

    def try_write(self, jobs: Sequence[Job]) -> list[Answer] | None:
        """The same, but wait for nobody: None if another program has the file now, or it must be opened again."""
        if self._lost:
            return None
        try:
            self._wait_for_others(wait=False)
            self.driver.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return None
        try:
            return self._fill(jobs)
        except _TransactionEndedError:
            return None
        except BaseException as error:  # noqa: BLE001 - the one writer must outlive whatever a use case raises
            return self._given_up(jobs, error)

    @property
    def flush_s(self) -> float:
        """What a commit takes on this disk, in seconds: the median of the last ones that wrote something."""
        return median(self._flushes) if self._flushes else 0.0

    def tidy(self) -> None:
        """Write the log back into the file, as far as no reader needs it; what does not go now goes later."""
        with suppress(sqlite3.Error):
            self.driver.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _given_up(self, jobs: Sequence[Job], error: BaseException) -> list[Answer]:
        _LOG.error("a batch of the writer was given up", exc_info=error)
        self.driver.connection.close()
        self._lost = self._doubtful = True
        text = "The host failed in this write; repeat the request with the same idempotency key."
        return _all_failed(jobs, StorageUnknownError(text))

    def _wait_for_others(self, *, wait: bool) -> None:
        if wait is not self._waits:
            be_patient(self.driver.connection, patient=wait)
            self._waits = wait

    def _commit(self, jobs: Sequence[Job]) -> list[Answer]:
        try:
            connection = self._connection()
        except DatabaseCorruptError as error:
            return _all_failed(jobs, error)
        except (sqlite3.Error, HostError) as error:
            return _all_failed(jobs, StorageError(f"The database cannot be opened now: {error}."))
        try:
            self._wait_for_others(wait=True)
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            return _all_failed(jobs, StorageError(f"The database is not writable now: {error}."))
        try:
            return self._fill(jobs)
        except _TransactionEndedError:
            return [answer for job in jobs for answer in self._commit([job])]

    def _fill(self, jobs: Sequence[Job]) -> list[Answer]:
        """Perform *jobs* in the transaction that has begun, and commit it.

        Raises:
            _TransactionEndedError: Of several jobs; nothing of them is kept.
        """
        connection = self.driver.connection
        # Also a commit that is reported as failed may be kept, and nothing later may be dated before it.
        now = self.written_at = max(self._clock.now_ms(), self.written_at)
        before = connection.total_changes
        try:
            answers = [self._perform(job, now, alone=len(jobs) == 1) for job in jobs]
        except _TransactionEndedError as ended:
            if len(jobs) == 1:
                return _all_failed(jobs, StorageError(f"The database refused the write: {ended.__cause__}."))
            raise
        began = perf_counter()
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            # What the connection believes to have written is not known, so the next batch opens another one.
            connection.close()
            self._lost = True
            # A commit that found no room has not come as far as its sync.
            self._doubtful |= error_code(error) != sqlite3.SQLITE_FULL
            text = f"The commit failed ({error}); repeat the request with the same idempotency key."
            # Listeners look anew: what was to wake them may be written all the same.
            return [Answer(None, StorageUnknownError(text), answer.topics) for answer in answers]
        # What was rolled back is counted in `total_changes` too.
        if connection.total_changes != before and any(answer.error is None for answer in answers):
            self.commits += 1
            self._flushes.append(perf_counter() - began)
        return answers

    def _perform(self, job: Job, now: int, *, alone: bool) -> Answer:
        connection = self.driver.connection
        begin, undo, keep = (None, "ROLLBACK", None) if alone else ("SAVEPOINT one", "ROLLBACK TO one", "RELEASE one")
        try:
            if begin:
                connection.execute(begin)
            tx = SqlTx(self._nouns, self.host, now)
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
                fault = told_as(error)
            return Answer(None, fault, frozenset())
        return Answer(result, None, frozenset(tx.topics))

    def _connection(self) -> sqlite3.Connection:
        if self._lost:
            connection = connect(self._path)
            try:
                if self._doubtful:
                    write_back(connection)
            except BaseException:
                connection.close()
                raise
            self.driver.connection = connection
            self._waits = True
            self._lost = self._doubtful = False
        return self.driver.connection


def _all_failed(jobs: Sequence[Job], error: HostError) -> list[Answer]:
    return [Answer(None, type(error)(*error.args), frozenset()) for _ in jobs]
