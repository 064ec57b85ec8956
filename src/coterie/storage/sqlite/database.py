"""Opens a SQLite file: pragmas, migrations, and clear words when it is not ours to open."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from coterie.core.errors import DatabaseCorruptError, DatabaseUnusableError, HostError, SchemaNewerError, StorageError
from coterie.storage.sql.driver import Row
from coterie.storage.sql.statements import migrations, numbered, spread
from coterie.storage.sql.transaction import SPREAD, STATEMENTS

TOKENS: Final = {
    "key": "TEXT",
    "serial": "INTEGER PRIMARY KEY",
    "position": "INTEGER PRIMARY KEY",
    "int": "INTEGER",
    "clustered": "WITHOUT ROWID",
}
_NUMBERED: Final = {name: numbered(text) for name, text in STATEMENTS.items() if name not in SPREAD}
_BUSY_MS: Final = 5000
_WAL_PAGES: Final = 4000
_STATEMENTS_MAX: Final = 512
_REMEDIES: Final[dict[int | None, str]] = {
    sqlite3.SQLITE_BUSY: "Close the program that writes to it",
    sqlite3.SQLITE_FULL: "Make room on its disk",
}


class SqliteDriver:
    """Runs the shared statements on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.statements = 0
        """How many statements ran: what the budgets count."""

    def _run(self, name: str, params: dict[str, object]) -> sqlite3.Cursor:
        self.statements += 1
        if name in SPREAD:
            return self.connection.execute(*spread(STATEMENTS[name], params))
        text, ordered = _NUMBERED[name]
        return self.connection.execute(text, ordered(params))

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

    def write_rows(self, name: str, rows: Sequence[Row]) -> None:
        """See `Driver`."""
        self.statements += 1
        self.connection.executemany(STATEMENTS[name], rows)

    def move(self, name: str, **params: object) -> int:
        """See `Driver`."""
        return self._run(name, params).rowcount

    def lock(self, name: str, **params: object) -> None:
        """One writer needs no row locks."""

    def lock_sessions(self, ids: Sequence[str]) -> None:
        """One writer needs no row locks."""

    def lock_of_turn(self, turn_id: str, shown: Sequence[str], *, parties: bool) -> None:
        """One writer needs no row locks."""

    def take_session(self, id_: str) -> bool:
        """Nobody else has it."""
        del id_
        return True

    def take_ready(self, other_than: str) -> str | None:
        """See `Driver`."""
        row = self.one("oldest_ready", other=other_than)
        return row[0] if row else None

    def involve(self, ids: Sequence[str]) -> None:
        """Nobody else can have changed them."""


def error_code(error: BaseException) -> int | None:
    """SQLite's primary code; errors of Python's module itself carry none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_damage(error: sqlite3.Error) -> bool:
    code = error_code(error)
    # Text that is no UTF-8 is noticed by Python.
    return "decode" in str(error) if code is None else code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn what SQLite says about an unreadable file into a fault that a person can act on."""
    try:
        yield
    # Python cannot read the message either, if the message quotes a damaged schema.
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
            remedy = _REMEDIES.get(error_code(error), "Make the file and its folder writable")
            raise DatabaseUnusableError(
                f"{path} cannot be used as a ledger ({error}). Nothing was changed. "
                f"{remedy}, or name another directory with --data."
            ) from error
        raise DatabaseCorruptError(
            f"{path} is not a readable database ({error}). Nothing was changed. "
            "Move the file away and restore a copy, or start with another --data directory."
        ) from error


def connect(path: Path, *, read_only: bool = False, checks: bool = False) -> sqlite3.Connection:
    """Open a connection with the settings that the ledger's promises rest on.

    Args:
        path: The file; it is made if it is not there.
        read_only: Make nothing, and write nothing.
        checks: Know the CHECKs of the tables although nothing is written: SQLite does not parse them for a file that
            it may not write to, and `PRAGMA quick_check` passes them over.
    """
    _refuse_emptied(path)
    mode = ("rw" if checks else "ro") if read_only else "rwc"
    with explained(path):
        connection = sqlite3.connect(
            f"file:{_quoted(path)}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS_MAX,
        )
    try:
        with explained(path):
            be_patient(connection, patient=True)
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


def be_patient(connection: sqlite3.Connection, *, patient: bool) -> None:
    """Let the connection wait for another program that has the file, or not."""
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS if patient else 0}")


def write_back(connection: sqlite3.Connection) -> None:
    """Write all that is ahead of the file into it, and begin to write ahead anew.

    A commit whose sync failed can be read all the same, until the machine goes down. Syncing it again proves nothing,
    as the system tells of lost bytes only once; what is written again is on the disk when that is synced.

    Raises:
        sqlite3.Error: Not all of it could be written.
    """
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise sqlite3.OperationalError("another program reads it")
    # A write for its sync alone (nobody reads this number): until then what was ahead of the file may come back, and
    # go over what was written into it.
    connection.execute("PRAGMA user_version = 0")


def _refuse_emptied(path: Path) -> None:
    ahead = Path(f"{path}-wal")
    # SQLite would take the file for a new one, and throw away what was written ahead of it.
    if not _size(path) and _size(ahead):
        raise DatabaseCorruptError(
            f"{path} is empty or gone, but {ahead.name} beside it is not. Nothing was changed. "
            f"Restore a copy of both, or move {ahead.name} away to begin with nothing."
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def schema_version(connection: sqlite3.Connection) -> int:
    """The version of the last migration that was applied; 0 for a new file."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone()
    version = connection.execute("SELECT MAX(version) FROM schema_version").fetchone()[0] if known else 0
    if not isinstance(version, int):
        raise sqlite3.DatabaseError("its schema has no version")
    return version


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


def refuse_foreign(path: Path, connection: sqlite3.Connection, version: int) -> None:
    """Raise `DatabaseUnusableError` if somebody else's tables are in the file."""
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise DatabaseUnusableError(
            f"{path} is a database of another program. Nothing was changed. "
            "Move the file away, or name another directory with --data."
        )


def write_fault(path: Path, error: sqlite3.Error) -> HostError:
    """What SQLite's refusal of a statement means to who asked for it."""
    if _is_damage(error):
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
            refuse_foreign(path, connection, version)
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
