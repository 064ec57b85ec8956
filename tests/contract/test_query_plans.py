"""No statement of the ledger reads a whole table, so that age costs nothing.

A run on a small ledger would never show it; SQLite's own plan does. The checks of `coterie verify` read everything:
that is what they are for.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager

import pytest
from tests.contract.plans import BOUNDED, JUDGED, OPEN_ONLY, growing, plan, reads_more, scans, tables_built
from tests.guarantees import guarantee

from coterie.storage.sql.statements import migrations
from coterie.storage.sql.transaction import STATEMENTS
from coterie.storage.sqlite.database import TOKENS


@contextmanager
def _empty_ledger() -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, text in migrations(TOKENS):
            connection.executescript(text)
        yield connection


@pytest.fixture(scope="module")
def schema() -> Generator[sqlite3.Connection]:
    """An empty ledger without statistics, as every host has it."""
    with _empty_ledger() as connection:
        yield connection


@guarantee("I15")
@pytest.mark.parametrize("name", JUDGED)
def test_no_statement_reads_a_whole_table(schema: sqlite3.Connection, name: str) -> None:
    """Its cost would grow with the ledger."""
    assert not scans(schema, STATEMENTS[name])


@pytest.mark.parametrize("name", OPEN_ONLY)
def test_what_is_open_is_found_beside_any_history(schema: sqlite3.Connection, name: str) -> None:
    """An index of a session's whole history is no scan, and yet its cost grows with the session."""
    assert plan(schema, STATEMENTS[name])
    assert not reads_more(schema, name)


@pytest.mark.parametrize("name", BOUNDED)
def test_an_exception_is_still_needed(schema: sqlite3.Connection, name: str) -> None:
    """A list of exceptions that nobody needs would hide the next one."""
    assert scans(schema, STATEMENTS[name])


@pytest.mark.parametrize("name", ["add_message", "add_turn", "add_input", "add_session", "settle_turn.TurnCompleted"])
def test_what_is_written_is_checked_without_a_table_of_its_own(schema: sqlite3.Connection, name: str) -> None:
    """A CHECK with an IN of three words costs as much as the row."""
    assert tables_built(schema, STATEMENTS[name]) == 0


def test_a_table_that_is_built_is_counted(schema: sqlite3.Connection) -> None:
    """A check that was never seen to fail proves nothing."""
    assert tables_built(schema, "SELECT id FROM messages WHERE kind IN ('task', 'message', 'completion')") == 1


def test_the_check_finds_a_whole_table(schema: sqlite3.Connection) -> None:
    """A check that was never seen to fail proves nothing."""
    assert scans(schema, "SELECT id FROM messages WHERE content = :content") == ["SCAN messages"]
    assert not scans(schema, "SELECT id FROM messages WHERE id IN (:ids...)")


def test_a_statement_that_grows_is_named(schema: sqlite3.Connection) -> None:
    """The benchmarks ask the same of a large ledger, and tell only what this returns."""
    assert not growing(schema)
    assert list(growing(schema, ["held_sessions", "get_turn"])) == ["held_sessions"]
    # A connection of its own: SQLite keeps the plans that it was asked for.
    with _empty_ledger() as other:
        other.execute("DROP INDEX inputs_waiting")
        assert set(growing(other)) == {"marked_inputs", "marked_inputs_of"}
