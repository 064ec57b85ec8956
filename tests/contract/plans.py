"""Judges SQLite's plan of each statement: what reads a whole table, so that its cost would grow with the ledger."""

import re
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from coterie.storage.sql.statements import spread
from coterie.storage.sql.transaction import CHECKS, STATEMENTS

BOUNDED: Final = {
    "this_host": "one row for each host that the directory ever had; once a start",
    "held_sessions": "what is held is sought in all sessions; once a start, and once a release of everything",
    "pending_pairs": "the first rows by their key, up to a limit; a person's answer takes a row away",
    "live_grants": "one row for each pair of sessions that a person ever granted; a list for people",
    "call_grants": "one row for each call that a person ever let a session repeat; a list for people",
    "last_written_at": "the last row by its key; once a start",
}
"""Statements that the judgement would refuse and that may stay, and why."""

OPEN_ONLY: Final = {
    "first_open": "inputs_queue turns_one_runner",
    "open_to": "inputs_queue turns_one_runner",
    "running_turn": "turns_one_runner",
    "running_here": "turns_one_runner",
    "left_running": "turns_one_runner",
    "due_messages": "messages_expiry",
    "old_keys": "idempotency_old",
    "marked_inputs": "inputs_waiting",
    "marked_inputs_of": "inputs_waiting",
    "oldest_ready": "sessions_ready",
}
"""Statements that seek what is open or ready, and the indexes that hold nothing else."""
_OF_THESE: Final = frozenset({"sqlite_autoindex_messages_1", "messages_turn"})
"""Where the messages of what was found so are: few rows each."""

JUDGED: Final = tuple(name for name in STATEMENTS if name not in CHECKS and name not in BOUNDED)
"""The statements that may read no whole table. The checks of `coterie verify` read everything: that is what they do."""

# An index that holds only some rows, or one that is left at a limit, is no whole table.
_SCAN: Final = re.compile(r"SCAN (?P<table>\w+)(?! USING (?:COVERING )?INDEX)\b")
# Rows that an inner statement has just found by index (`sent_last`), and the row of counts.
_NO_TABLES: Final = frozenset({"p", "v", "a", "sent", "inbound", "CONSTANT"})
NAMES: Final = re.compile(r":(\w+)")
_LISTS: Final[dict[str, object]] = {"ids": ["a", "b"], "rows": [("", 0, "", "", 0)]}


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    """How SQLite would run *sql*, but for the sorting of what was found."""
    params: Any = {name: _LISTS.get(name, "") for name in NAMES.findall(sql)} or ("",) * sql.count("?")
    if "..." in sql:
        sql, params = spread(sql, params)
    lines = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
    return [line for line in lines if line.startswith(("SEARCH", "SCAN"))]


def scans(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The lines of the plan of *sql* that read a table from end to end."""
    matches = [(line, _SCAN.match(line)) for line in plan(connection, sql)]
    return [line for line, match in matches if match is not None and match["table"] not in _NO_TABLES]


def tables_built(connection: sqlite3.Connection, sql: str) -> int:
    """How many tables SQLite builds, and throws away, each time it runs *sql*."""
    params = dict.fromkeys(NAMES.findall(sql), "")
    return sum(row[1] == "OpenEphemeral" for row in connection.execute(f"EXPLAIN {sql}", params))


def reads_more(connection: sqlite3.Connection, name: str) -> list[str]:
    """The lines of the plan of a statement of `OPEN_ONLY` that read more than what is open."""
    allowed = _OF_THESE.union(OPEN_ONLY[name].split())
    return [line for line in plan(connection, STATEMENTS[name]) if allowed.isdisjoint(line.split())]


def growing(connection: sqlite3.Connection, names: Iterable[str] = JUDGED) -> dict[str, list[str]]:
    """The statements of *names* whose cost would grow with the ledger, and the lines of their plans that say so."""
    found = {name: scans(connection, STATEMENTS[name]) for name in names}
    for name in OPEN_ONLY:
        if name in found:
            found[name] += reads_more(connection, name)
    return {name: lines for name, lines in found.items() if lines}
