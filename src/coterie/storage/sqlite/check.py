"""Checks a ledger from outside: one snapshot, no lock, beside a running host."""

from contextlib import closing
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
    refuse_foreign,
    refuse_newer,
    schema_version,
)

FILE_CHECK: Final = "the pages of the file are whole"


def check(path: Path) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
    """Return the names of the checks, and what is broken.

    Raises:
        NotFoundError: There is no database, or nothing was ever written to it.
        DatabaseUnusableError: It belongs to another program.
        SchemaNewerError: A newer Coterie wrote it.
        DatabaseCorruptError: It is no database, or damaged.
    """
    if not path.exists():
        raise NotFoundError("database", str(path))
    connection = connect(path, read_only=True)
    try:
        with explained(path):
            connection.execute("BEGIN")
            version = schema_version(connection)
            refuse_newer(path, version, newest_schema())
            refuse_foreign(path, connection, version)
            if version == 0:
                raise NotFoundError("ledger", str(path))
            flaws = _flaws(path)
            if flaws != ["ok"]:
                # What rows say is not to be believed where pages are not whole.
                return (FILE_CHECK,), tuple(Violation(FILE_CHECK, flaw) for flaw in flaws)
            checked, broken = SqlJournal(SqliteDriver(connection)).violations()
            return (FILE_CHECK, *checked), broken
    finally:
        connection.close()


def _flaws(path: Path) -> list[str]:
    # While the caller's connection is open this one is not the last: closing it writes nothing back into the file.
    with closing(connect(path, read_only=True, checks=True)) as connection:
        return [row[0] for row in connection.execute("PRAGMA quick_check")]
