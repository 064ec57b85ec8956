"""Opens PostgreSQL: settings that the promises rest on, migrations, and clear words when it is not ours to use."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import IsolationLevel, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8Dumper

from coterie.core.errors import DatabaseUnusableError, HostError, SchemaNewerError, StorageError
from coterie.storage.sql.statements import load, migrations
from coterie.storage.sql.transaction import STATEMENTS as SHARED

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

STATEMENTS: Final = SHARED | load("statements", package="coterie.storage.postgres")
"""The shared texts, and those in PostgreSQL's own words."""

TOKENS: Final = {
    "key": 'TEXT COLLATE "C"',
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    # Commits are not in the order of their beginning, so a change's number begins with its transaction's: what is below
    # the oldest transaction that still writes is complete, and a reader who has seen it misses nothing later.
    "position": "BIGINT PRIMARY KEY DEFAULT ("
    "(pg_current_xact_id()::text::bigint << 20) | (nextval('changes_order') & 1048575))",
    "int": "BIGINT",
    "clustered": "",
}
_BEFORE: Final = "CREATE SEQUENCE changes_order"
_OLDEST: Final = 150000
OPTIONS: Final[dict[str, Any]] = {
    "application_name": "coterie",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    # A server whose machine went away says nothing; without these its locks and ours would last for hours.
    "keepalives_idle": 20,
    "keepalives_interval": 20,
    "keepalives_count": 2,
    "tcp_user_timeout": 60_000,
}
"""How every connection of a host is made."""
_ADDRESS: Final = "the address in [store] url"
_SECRET: Final = frozenset({"password", "sslpassword"})
_NAMED: Final = re.compile(r"(?<![:\w]):(\w+)")


@lru_cache(maxsize=1024)
def spelled(sql: str) -> str:
    """A shared statement with its parameters as the driver spells them."""
    return _NAMED.sub(r"%(\1)s", sql.replace("%", "%%").replace("?", "%s"))


def shown(url: str) -> str:
    """The address without its password, for what people read."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return _ADDRESS
    if any("@" in str(parts.get(name)) for name in ("dbname", "host")):
        # A sign in a password that is not written as %2F or %40: what follows is taken for the host or the database.
        return _ADDRESS
    return make_conninfo("", **{name: value for name, value in parts.items() if name not in _SECRET})


def connect(url: str) -> Connection:
    """Open a connection that is in no transaction.

    Raises:
        StorageError: The server cannot be reached now.
    """
    try:
        connection = psycopg.connect(url, autocommit=True, **OPTIONS)
    except psycopg.Error as error:
        # What libpq says of an address that it cannot read quotes it, password and all.
        if isinstance(error, psycopg.ProgrammingError) or shown(url) == _ADDRESS:
            signs = "a sign such as /, @ or % in a password is written as %2F, %40 or %25"
            raise StorageError(f"The address in [store] url cannot be read or reached; {signs}.") from None
        raise StorageError(f"PostgreSQL cannot be reached now at {shown(url)}: {said(error)}.") from error
    # Whatever the server's default is: what is read after a lock must be what is true then.
    connection.isolation_level = IsolationLevel.READ_COMMITTED
    # One type for every number: each statement is prepared once.
    connection.adapters.register_dumper(int, Int8Dumper)
    # The texts are few and run often.
    connection.prepare_threshold = 1
    # A plan is kept from when the tables were empty, and reading all of an empty table looks cheap.
    connection.execute("SET enable_seqscan = off")
    return connection


@contextmanager
def explained(url: str) -> Generator[None]:
    """Turn what PostgreSQL says about a database that is not ours to use into a fault that a person can act on."""
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseUnusableError(
            f"The database at {shown(url)} cannot be used as a ledger ({said(error)}). Nothing was changed. "
            "Give its user the right to create tables in it, or name another one in [store] url."
        ) from error


def write_fault(error: psycopg.Error) -> HostError:
    """What PostgreSQL's refusal of a statement means to who asked for it."""
    return StorageError(f"The database refused this ({said(error)}); nothing of it was kept.")


def said(error: psycopg.Error) -> str:
    """The server's words in one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def migrate(connection: Connection, url: str) -> None:
    """Bring the schema up to this version, all or nothing.

    Raises:
        SchemaNewerError: A newer Coterie wrote it.
        DatabaseUnusableError: The server is too old, loses what it has acknowledged, or lets us create nothing.
    """
    with explained(url), connection.transaction():
        _refuse_unsafe(connection, url)
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('coterie schema', 0))")
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
        version = schema_version(connection)
        refuse_newer(url, version)
        for number, text in migrations(TOKENS):
            if number > version:
                for statement in [*([_BEFORE] if number == 1 else []), *text.split(";\n")]:
                    connection.execute(statement.encode())
                connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (number,))
        _renumber(connection)


def _renumber(connection: Connection) -> None:
    """Number the changes anew, below this server's transactions, if they come from another server that was ahead."""
    row = connection.execute(
        "SELECT COALESCE(MAX(number), 0) >> 20 >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint FROM changes"
    ).fetchone()
    if row is not None and row[0]:
        connection.execute("LOCK TABLE changes")
        # By way of numbers below 0, for a new number may be an old one's.
        connection.execute(
            "UPDATE changes SET number = -r.rank FROM (SELECT number, row_number() OVER (ORDER BY number DESC) AS rank "
            "FROM changes) r WHERE changes.number = r.number"
        )
        connection.execute("UPDATE changes SET number = number + (pg_current_xact_id()::text::bigint << 20)")


def refuse_newer(url: str, version: int) -> None:
    """Raise `SchemaNewerError` if the schema is from the future."""
    newest = migrations(TOKENS)[-1][0]
    if version > newest:
        raise SchemaNewerError(
            f"The database at {shown(url)} has schema {version}, this Coterie knows {newest}. "
            "Install the newer version that wrote it; nothing was changed."
        )


def schema_version(connection: Connection) -> int:
    """The version of the last migration that was applied; 0 if there is none."""
    try:
        with connection.transaction():
            row = connection.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetchone()
    except errors.UndefinedTable:
        return 0
    return row[0] if row else 0


def _refuse_unsafe(connection: Connection, url: str) -> None:
    if connection.info.server_version < _OLDEST:
        raise DatabaseUnusableError(
            f"{shown(url)} is PostgreSQL {connection.info.server_version // 10000}; Coterie needs 15 or newer."
        )
    row = connection.execute("SHOW server_encoding").fetchone()
    if row is not None and row[0] != "UTF8":
        raise DatabaseUnusableError(
            f"{shown(url)} has the encoding {row[0]}, which cannot hold every text. "
            "Make a database for Coterie: CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8'."
        )
    row = connection.execute("SHOW synchronous_commit").fetchone()
    if row is not None and row[0] == "off":
        raise DatabaseUnusableError(
            f"{shown(url)} has synchronous_commit = off, so what it acknowledges may be lost. "
            "Set it to on for this database: ALTER DATABASE … SET synchronous_commit = on."
        )
