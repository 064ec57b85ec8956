"""Opens a SQLite file: pragmas, migrations, and clear words when it is not ours to open."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from coterie.core.errors import DatabaseCorruptError, DatabaseUnusableError, HostError, SchemaNewerError, StorageError
from coterie.storage.sql.driver import Row
from coterie.storage.sql.statements import migrations, spread
from coterie.storage.sql.transaction import STATEMENTS

TOKENS: Final = {
    "key": "TEXT",
    "serial": "INTEGER PRIMARY KEY",
    "position": "INTEGER PRIMARY KEY",
    "int": "INTEGER",
    "clustered": "WITHOUT ROWID",
}
_BUSY_MS: Final = 5000
_WAL_PAGES: Final = 4000


class SqliteDriver:
    """Runs the shared statements on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.statements = 0
        """How many statements ran: what the budgets count."""

    def _run(self, name: str, params: dict[str, object]) -> sqlite3.Cursor:
        sql = STATEMENTS[name]
        if "..." in sql:
            sql, params = spread(sql, params)
        self.statements += 1
        return self.connection.execute(sql, params)

    def one(self, name: str, **params: object) -> Row | None:
        """See `Driver`."""
        rows = self._run(name, params).fetchall()
        return rows[0] if rows else None

    def all(self, name: str, **params: object) -> list[Row]:
        """See `Driver`."""
        return self._run(name, params).fetchall()

    def write(self, name: str, **params: object) -> None:
        """See `Driver`."""
        self._run(name, params)

    def move(self, name: str, **params: object) -> int:
        """See `Driver`."""
        return self._run(name, params).rowcount

    def lock(self, name: str, **params: object) -> None:
        """One writer needs no row locks."""

    def lock_sessions(self, ids: Sequence[str]) -> None:
        """One writer needs no row locks."""

    def take_session(self, id_: str) -> bool:
        """Nobody else has it."""
        del id_
        return True

    def involve(self, ids: Sequence[str]) -> None:
        """Nobody else can have changed them."""


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn what SQLite says about an unreadable file into a fault that a person can act on."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            remedy = "Close the program that writes to it" if busy else "Make the file and its folder writable"
            raise DatabaseUnusableError(
                f"{path} cannot be used as a ledger ({error}). Nothing was changed. "
                f"{remedy}, or name another directory with --data."
            ) from error
        raise DatabaseCorruptError(
            f"{path} is not a readable database ({error}). Nothing was changed. "
            "Move the file away and restore a copy, or start with another --data directory."
        ) from error


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection with the settings that the ledger's promises rest on."""
    mode = "ro" if read_only else "rwc"
    with explained(path):
        connection = sqlite3.connect(
            f"file:{_quoted(path)}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
        )
    try:
        with explained(path):
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            if read_only:
                connection.execute("PRAGMA query_only = 1")
            else:
                connection.execute("PRAGMA journal_mode = WAL")
                # FULL: an acknowledged commit has reached the disk (I4).
                connection.execute("PRAGMA synchronous = FULL")
                # Pages that many commits touch are written back once; the file beside grows to 16 MiB for it.
                connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
            # In memory, or each savepoint costs more than the use case in it.
            connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def schema_version(connection: sqlite3.Connection) -> int:
    """The version of the last migration that was applied; 0 for a new file."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone()
    return connection.execute("SELECT MAX(version) FROM schema_version").fetchone()[0] if known else 0


def newest_schema() -> int:
    """The schema version that this program knows."""
    return migrations(TOKENS)[-1][0]


def refuse_newer(path: Path, version: int, newest: int) -> None:
    """Raise `SchemaNewerError` if the file is from the future."""
    if version > newest:
        raise SchemaNewerError(
            f"{path} has schema {version}, this Coterie knows {newest}. "
            "Install the newer version that wrote it; nothing was changed."
        )


def _refuse_foreign(path: Path, connection: sqlite3.Connection, version: int) -> None:
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise DatabaseUnusableError(
            f"{path} is a database of another program. Nothing was changed. "
            "Move the file away, or name another directory with --data."
        )


def write_fault(path: Path, error: sqlite3.Error) -> HostError:
    """What SQLite's refusal of a statement means to who asked for it."""
    # Errors of the module itself carry no code.
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return DatabaseCorruptError(
            f"{path} is damaged ({error}). Stop the host and restore a copy; `coterie verify` tells how much is broken."
        )
    return StorageError(f"The database refused this ({error}); nothing of it was kept.")


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to this version, all or nothing.

    Raises:
        SchemaNewerError: A newer Coterie wrote the file.
        DatabaseCorruptError: It is no database, or damaged.
    """
    with explained(path):
        steps = migrations(TOKENS)
        newest = steps[-1][0]
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = schema_version(connection)
            refuse_newer(path, version, newest)
            _refuse_foreign(path, connection, version)
            connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
            for number, text in steps:
                if number > version:
                    for statement in text.split(";\n"):
                        connection.execute(statement)
                    connection.execute("INSERT INTO schema_version (version) VALUES (?)", (number,))
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
