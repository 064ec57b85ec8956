"""No statement of the ledger reads a whole table, so that age costs nothing.

A run on a small ledger would never show it; SQLite's own plan does. The checks of `coterie verify` read everything:
that is what they are for.
"""

import re
import sqlite3
from collections.abc import Generator
from contextlib import closing
from typing import Final

import pytest
from tests.guarantees import guarantee

from coterie.storage.sql.statements import migrations, spread
from coterie.storage.sql.transaction import CHECKS, STATEMENTS
from coterie.storage.sqlite.database import TOKENS

BOUNDED: Final = {
    "this_host": "one row for each host that the directory ever had; once a start",
    "held_sessions": "what is held is sought in all sessions; once a start, and once a release of everything",
    "pending_pairs": "the first rows by their key, up to a limit; a person's answer takes a row away",
    "live_grants": "one row for each pair of sessions that a person ever granted; a list for people",
    "last_written_at": "the last row by its key; once a start",
}
"""Statements that the check would refuse and that may stay, and why."""

OPEN_ONLY: Final = {
    "first_open": "messages_open",
    "open_to": "messages_open",
    "running_turn": "turns_one_runner",
    "running_here": "turns_one_runner",
    "left_running": "turns_one_runner",
    "due_messages": "messages_expiry",
    "old_keys": "idempotency_old",
    "marked_inputs": "inputs_waiting",
    "marked_inputs_of": "inputs_waiting",
    "oldest_ready": "sessions_ready",
    "oldest_ready_other": "sessions_ready",
}
"""Statements that seek what is open or ready, and the index that holds nothing else."""

# An index that holds only some rows, or one that is left at a limit, is no whole table.
_SCAN: Final = re.compile(r"SCAN (?P<table>\w+)(?! USING (?:COVERING )?INDEX)\b")
# Rows that an inner statement has just found by index (`heads`, `sent_last`), and the row of counts.
_NO_TABLES: Final = frozenset({"f", "p", "m", "a", "sent", "inbound", "CONSTANT"})
_NAME: Final = re.compile(r":(\w+)")
_LISTS: Final[dict[str, object]] = {"ids": ["a", "b"], "rows": [("", 0, "", "", 0)]}


@pytest.fixture(scope="module")
def schema() -> Generator[sqlite3.Connection]:
    """An empty ledger without statistics, as every host has it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, text in migrations(TOKENS):
            connection.executescript(text)
        yield connection


def _plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    """How SQLite would run *sql*, but for the sorting of what was found."""
    sql, params = spread(sql, {name: _LISTS.get(name, "") for name in _NAME.findall(sql)})
    lines = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
    return [line for line in lines if not line.startswith("USE TEMP B-TREE")]


def _scans(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The lines of the plan of *sql* that read a table from end to end."""
    matches = [(line, _SCAN.match(line)) for line in _plan(connection, sql)]
    return [line for line, match in matches if match is not None and match["table"] not in _NO_TABLES]


@guarantee("I15")
@pytest.mark.parametrize("name", [name for name in STATEMENTS if name not in CHECKS and name not in BOUNDED])
def test_no_statement_reads_a_whole_table(schema: sqlite3.Connection, name: str) -> None:
    """Its cost would grow with the ledger."""
    assert not _scans(schema, STATEMENTS[name])


@pytest.mark.parametrize(("name", "index"), OPEN_ONLY.items())
def test_what_is_open_is_found_beside_any_history(schema: sqlite3.Connection, name: str, index: str) -> None:
    """An index of a session's whole history is no scan, and yet its cost grows with the session."""
    (line,) = _plan(schema, STATEMENTS[name])
    assert f" {index} " in f"{line} "


@pytest.mark.parametrize("name", BOUNDED)
def test_an_exception_is_still_needed(schema: sqlite3.Connection, name: str) -> None:
    """A list of exceptions that nobody needs would hide the next one."""
    assert _scans(schema, STATEMENTS[name])


def test_the_check_finds_a_whole_table(schema: sqlite3.Connection) -> None:
    """A check that was never seen to fail proves nothing."""
    assert _scans(schema, "SELECT id FROM messages WHERE content = :content") == ["SCAN messages"]
    assert not _scans(schema, "SELECT id FROM messages WHERE id IN (:ids...)")
