"""The baselines: the same four facts, each committed by itself, by nothing but a database's own module."""

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.measure import Block, Lap, since_ms

PAYLOAD: Final = "x" * 200
"""The content of every message, here and beside it."""
COLUMNS: Final = "source TEXT, target TEXT, state TEXT, payload TEXT, result TEXT"


class Raw(ABC):
    """One table of messages on one connection that flushes each commit."""

    @abstractmethod
    def insert(self) -> int:
        """Commit one message; returns its number."""

    @abstractmethod
    def round_trip(self) -> None:
        """Send, bind, settle, completion: four commits."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    def round_trips(self, count: int) -> Block:
        """A block of round trips, one lap each."""

        async def block() -> list[Lap]:
            return [self._lap() for _ in range(count)]

        return block

    def _lap(self) -> Lap:
        start = time.perf_counter_ns()
        self.round_trip()
        return {"answered": since_ms(start)}

    def rates(self, count: int, *, inserts: bool) -> Block:
        """A block of one lap that tells how many round trips, or inserts, went into a second."""
        act = self.insert if inserts else self.round_trip

        async def block() -> list[Lap]:
            start = time.perf_counter_ns()
            for _ in range(count):
                act()
            return [{"rate": count / since_ms(start) * 1000}]

        return block


class RawSqlite(Raw):
    """The baseline on SQLite."""

    def __init__(self, path: Path) -> None:
        # No transaction is opened for us, so each statement is a commit.
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(f"CREATE TABLE messages (id INTEGER PRIMARY KEY, {COLUMNS}, reply_to INTEGER)")

    def insert(self) -> int:
        """See `Raw`."""
        number = self._connection.execute(
            "INSERT INTO messages (source, target, state, payload) VALUES ('a', 'b', 'queued', ?)", (PAYLOAD,)
        ).lastrowid
        assert number is not None, "a row was inserted"
        return number

    def round_trip(self) -> None:
        """See `Raw`."""
        number = self.insert()
        run = self._connection.execute
        run("UPDATE messages SET state = 'running' WHERE id = ?", (number,))
        run("UPDATE messages SET state = 'completed', result = ? WHERE id = ?", (PAYLOAD, number))
        run(
            "INSERT INTO messages (source, target, state, payload, reply_to) VALUES ('b', 'a', 'queued', ?, ?)",
            (PAYLOAD, number),
        )

    def close(self) -> None:
        """See `Raw`."""
        self._connection.close()


@contextmanager
def raw_sqlite(folder: Path) -> Generator[Raw]:
    """A fresh baseline on SQLite."""
    raw = RawSqlite(folder / "raw.db")
    try:
        yield raw
    finally:
        raw.close()
