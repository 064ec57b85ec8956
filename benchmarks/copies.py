"""Fills a ledger by copying rows that the product has written, with SQL: a million messages in a minute.

The copies come in the order in which the product would have written them, so the pages of the file are as full as its
own. Ids are made new, but for those of sessions that are the copy's own place in the ledger.
"""

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from coterie.core.ids import SessionId

Value: TypeAlias = str | int | None
_YEAR_2023_MS: Final = 1_700_000_000_000
_TABLES: Final = ("sessions", "chains", "turns", "messages", "inputs", "items", "changes", "idempotency", "audit")
_COUNTED: Final = {"items": "number", "changes": "revision"}
"""Columns that count within a session; every other `number` is the table's own."""
_ID: Final = re.compile(r"(?P<prefix>ses|turn|msg|inp|chn)_(?P<time>[0-9a-f]{12})(?P<random>[0-9a-f]{20})")
_SETTINGS: Final = ("synchronous = OFF", "journal_mode = OFF", "cache_size = -262144", "temp_store = MEMORY")
_AFTERWARDS: Final = (
    "UPDATE sessions SET revision = (SELECT MAX(c.revision) FROM changes c WHERE c.session_id = sessions.id)",
    "UPDATE sessions SET ready = (SELECT MIN(i.number) FROM inputs i WHERE i.session_id = id) WHERE ready IS NOT NULL",
)


@dataclass(frozen=True, slots=True)
class Original:
    """What is copied: all rows of the ledger, but for sessions that are only opened."""

    places: tuple[SessionId, SessionId]
    """Two sessions that are no part of a copy: each copy names two in their place."""
    own: SessionId | None = None
    """A session that is copied with its rows."""


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows of a table that are copied."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def copying(self, original: Original) -> str:
        """The statement that writes these rows once for each row of `copies`."""
        shown = [self._column(number, original) for number in range(len(self.columns))]
        numbers = ", ".join(f"({number})" for number in range(len(self.rows)))
        # A cross join is done in the order in which it is written.
        return (
            f"INSERT INTO {self.name} ({', '.join(self.columns)}) "
            f"WITH which(one) AS MATERIALIZED (VALUES {numbers}) "
            f"SELECT {', '.join(shown)} FROM copies CROSS JOIN which"
        )

    def _column(self, number: int, original: Original) -> str:
        shown = [_expression(row[number], original) for row in self.rows]
        if self.columns[number] == _COUNTED.get(self.name):
            sessions = list(self._sessions())
            steps = Counter(session_id for session_id in sessions if session_id in original.places)
            shown = [f"{value} + done * {steps[session]}" for value, session in zip(shown, sessions, strict=True)]
        if len(set(shown)) == 1:
            return shown[0]
        cases = " ".join(f"WHEN {number} THEN {text}" for number, text in enumerate(shown))
        return f"CASE which.one {cases} END"

    def _sessions(self) -> Iterator[str]:
        column = self.columns.index("session_id")
        return (str(row[column]) for row in self.rows)


def _expression(value: Value, original: Original) -> str:
    """What stands in SQL for a value: its ids are those of the copy."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    names = dict(zip(original.places, ("source", "target"), strict=True))

    def fresh(found: re.Match[str]) -> str:
        column = names.get(SessionId(found[0]))
        return f"' || {column} || '" if column else f"{found['prefix']}_' || stamp || '{found['random']}"

    quoted = value.replace("'", "''")
    return f"'{_ID.sub(fresh, quoted)}'"


def _table(connection: sqlite3.Connection, name: str, own: SessionId | None) -> _Table:
    known = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    columns = tuple(column for column in known if column != "number" or _COUNTED.get(name) == "number")
    # The first change of a session tells that it was opened.
    conditions = {"sessions": "WHERE id = :own", "changes": "WHERE revision > 1 OR session_id = :own"}
    order = "number" if "number" in known else "1"
    rows = connection.execute(
        f"SELECT {', '.join(columns)} FROM {name} {conditions.get(name, '')} ORDER BY {order}", {"own": own}
    )
    return _Table(name, columns, tuple(rows))


def copy(path: Path, original: Original, places: Sequence[tuple[SessionId, SessionId]]) -> None:
    """Copy the *original* of a closed ledger once for each of *places*, and let the file reach the disk.

    Args:
        path: The file.
        original: What is copied.
        places: The sessions of each copy; where they are those of the original, it continues what these have.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        tables = [_table(connection, name, original.own) for name in _TABLES]
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        connection.execute("CREATE TEMP TABLE copies (stamp TEXT, source TEXT, target TEXT, done INTEGER)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO copies VALUES (?, ?, ?, ?)", _places(original, places))
        for table in tables:
            if table.rows:
                connection.execute(table.copying(original))
        for statement in _AFTERWARDS:
            connection.execute(statement)
        connection.execute("COMMIT")
    # What the system has not written yet would be written while we measure.
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _places(
    original: Original, places: Sequence[tuple[SessionId, SessionId]]
) -> Iterator[tuple[str, SessionId, SessionId, int]]:
    done = Counter({original.places: 1})
    for number, pair in enumerate(places):
        yield f"{_YEAR_2023_MS + number:012x}", *pair, done[pair]
        done[pair] += 1
