"""The store on SQLite: one connection that commits many use cases at once, and readers beside it.

While one batch is flushed the next one gathers, so group commit needs no timer. Two changes of thread cost more than a
small use case and a quick disk together, so what is brief is written by the loop's own thread while the writer's has
nothing to do; whoever asks in the same round of the loop shares the commit.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, cast

from coterie.core.errors import HostUnavailableError
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.ports.store import C, Query, R, UseCase
from coterie.storage.sql.transaction import SqlNouns, SqlTx
from coterie.storage.sqlite.database import SqliteDriver, connect, write_fault
from coterie.storage.sqlite.writer import Answer, Job, SqliteWriter

BATCH_MAX: Final = 256
"""Use cases to one commit at most."""
HERE_MAX: Final = 32
"""Use cases to a commit on the loop's thread; more would keep everybody else waiting."""
QUICK_S: Final = 0.001
"""A disk whose flush takes longer is left to the writer's thread."""
TIDY_COMMITS: Final = 100
"""After so many commits the log is written back by the writer's thread, so that a commit on the loop seldom has to."""
READERS: Final = 4
"""Threads that read: one long check must not stop the reads of every worker."""


@dataclass(frozen=True, slots=True)
class _Asked:
    job: Job
    future: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Reader:
    connection: sqlite3.Connection
    nouns: SqlNouns


class _Order(Enum):
    TIDY = auto()
    STOP = auto()


class SqliteStore:
    """Implements `ports.store.Store`. Open it on the loop that uses it; close it there."""

    def __init__(self, path: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> None:
        """Open the file and bring its schema up to date.

        Raises:
            SchemaNewerError: A newer Coterie wrote the file.
            DatabaseCorruptError: It is no database, or damaged.
        """
        self.writer = SqliteWriter(path, host, clock, ids)
        self._path, self._feed = path, feed
        self._loop = asyncio.get_running_loop()
        self.quick_s = QUICK_S
        """How long a flush may take on the loop's thread; below 0 nothing is written there."""
        self._here: list[_Asked] = []
        """What the loop's thread is about to write."""
        self._away = 0
        """What the writer's thread was given and has not answered: above 0 the connection is its."""
        self._tidied = 0
        self._asked: SimpleQueue[_Asked | _Order] = SimpleQueue()
        self._closed = False
        self._local = threading.local()
        self._reading: list[sqlite3.Connection] = []
        self._readers = ThreadPoolExecutor(READERS, "coterie-reader")
        self._thread = threading.Thread(target=self._serve, name="coterie-writer", daemon=True)
        self._thread.start()

    @property
    def commits(self) -> int:
        """Commits that wrote something: what the budgets count."""
        return self.writer.commits

    @property
    def statements(self) -> int:
        """Statements that the writer ran, commits and savepoints not counted."""
        return self.writer.driver.statements

    def become(self, host: HostFacts) -> None:
        """Act as *host* from the next batch on: its epoch is known only after a first transaction."""
        self.writer.host = host

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        if self._closed:
            raise HostUnavailableError("The host is stopping.")
        asked = _Asked(Job(use_case, command), self._loop.create_future())
        if brief and self._away == 0 and self.writer.flush_s <= self.quick_s:
            if not self._here:
                self._loop.call_soon(self._write_here)
            self._here.append(asked)
        else:
            # What was asked before is done before.
            here, self._here = self._here, []
            self._hand_over([*here, asked])
        return await asked.future

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        if self._closed:
            raise HostUnavailableError("The host is stopping.")
        if brief:
            return self._read(query, command)
        return await self._loop.run_in_executor(self._readers, self._read, query, command)

    async def close(self) -> None:
        """Commit what was accepted, then close the file."""
        self._closed = True
        self._hand_over(self._here)
        self._here = []
        self._asked.put(_Order.STOP)
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._reading:
            connection.close()
        self.writer.close()

    def _hand_over(self, asked: Sequence[_Asked]) -> None:
        self._away += len(asked)
        for one in asked:
            self._asked.put(one)

    def _write_here(self) -> None:
        asked, self._here = self._here, []
        answers = None
        if asked and self._away == 0 and len(asked) <= HERE_MAX:
            answers = self.writer.try_write([one.job for one in asked])
        if answers is None:
            self._hand_over(asked)
            return
        self._answer(asked, answers)
        if self.writer.commits - self._tidied >= TIDY_COMMITS:
            self._tidied = self.writer.commits
            self._away += 1
            self._asked.put(_Order.TIDY)

    def _read(self, query: Query[C, R], command: C) -> R:
        reader = cast("_Reader | None", getattr(self._local, "reader", None))
        if reader is None:
            connection = connect(self._path, read_only=True)
            reader = self._local.reader = _Reader(connection, SqlNouns(SqliteDriver(connection)))
            self._reading.append(connection)
        try:
            reader.connection.execute("BEGIN")
            return query(SqlTx(reader.nouns, self.writer.host, self.writer.written_at), command)
        except sqlite3.Error as error:
            raise write_fault(self._path, error) from error
        finally:
            # A fault of the disk ends the transaction by itself.
            if reader.connection.in_transaction:
                reader.connection.execute("ROLLBACK")

    def _serve(self) -> None:
        stopping = False
        while not stopping:
            batch = [self._asked.get()]
            while len(batch) < BATCH_MAX:
                try:
                    batch.append(self._asked.get_nowait())
                except Empty:
                    break
            stopping = _Order.STOP in batch
            asked = [one for one in batch if isinstance(one, _Asked)]
            if asked:
                answers = self.writer.write([one.job for one in asked])
                self._loop.call_soon_threadsafe(self._came_back, len(asked), asked, answers)
            if _Order.TIDY in batch:
                self.writer.tidy()
                self._loop.call_soon_threadsafe(self._came_back, 1, (), ())

    def _came_back(self, count: int, asked: Sequence[_Asked], answers: Sequence[Answer]) -> None:
        self._away -= count
        self._answer(asked, answers)

    def _answer(self, asked: Sequence[_Asked], answers: Sequence[Answer]) -> None:
        topics: set[str] = set()
        for one, answer in zip(asked, answers, strict=True):
            topics |= answer.topics
            if one.future.cancelled():
                continue
            if answer.error is not None:
                one.future.set_exception(answer.error)
            else:
                one.future.set_result(answer.result)
        self._feed.wake(topics)
