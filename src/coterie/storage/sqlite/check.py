"""Checks a ledger from outside: one snapshot, no lock, beside a running host."""

from pathlib import Path
from typing import Final

from coterie.core.errors import NotFoundError
from coterie.ports.rows import Violation
from coterie.storage.sql.journal import SqlJournal
from coterie.storage.sqlite.database import (
    SqliteDriver,
    connect,
    explained,
    newest_schema,
    refuse_newer,
    schema_version,
)

FILE_CHECK: Final = "the pages of the file are whole"


def check(path: Path) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
    """Return the names of the checks, and what is broken.

    Raises:
        NotFoundError: There is no database.
        SchemaNewerError: A newer Coterie wrote it.
        DatabaseCorruptError: It is no database, or damaged.
    """
    if not path.exists():
        raise NotFoundError("database", str(path))
    connection = connect(path, read_only=True)
    try:
        with explained(path):
            connection.execute("BEGIN")
            refuse_newer(path, schema_version(connection), newest_schema())
            flaws = [row[0] for row in connection.execute("PRAGMA quick_check")]
            if flaws != ["ok"]:
                # What rows say is not to be believed where pages are not whole.
                return (FILE_CHECK,), tuple(Violation(FILE_CHECK, flaw) for flaw in flaws)
            checked, broken = SqlJournal(SqliteDriver(connection)).violations()
            return (FILE_CHECK, *checked), broken
    finally:
        connection.close()
