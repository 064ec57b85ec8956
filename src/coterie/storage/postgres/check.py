"""Checks a ledger from outside: one snapshot, no lock, beside a running host."""

from coterie.core.errors import NotFoundError
from coterie.ports.rows import Violation
from coterie.storage.postgres.database import connect, explained, refuse_newer, schema_version, shown
from coterie.storage.postgres.driver import PostgresDriver
from coterie.storage.sql.journal import SqlJournal


def check(url: str) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
    """Return the names of the checks, and what is broken.

    Raises:
        NotFoundError: There is no ledger in the database.
        SchemaNewerError: A newer Coterie wrote it.
        StorageError: The server cannot be reached.
    """
    connection = connect(url)
    with connection, explained(url):
        version = schema_version(connection)
        if version == 0:
            raise NotFoundError("ledger", shown(url))
        refuse_newer(url, version)
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return SqlJournal(PostgresDriver(connection)).violations()
