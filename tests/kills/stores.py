"""Where a host keeps its ledger, and how the driver reads that behind its back."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
from tests.postgres import PostgresServer

Row = tuple[Any, ...]


class LedgerStore(Protocol):
    """A ledger on a store of some kind."""

    name: str
    settings: str
    """What a configuration file says of it."""
    server: PostgresServer | None
    """What can be killed besides the host."""

    def rows(self, sql: str) -> list[Row]:
        """Read, beside a host, after its death or after its stop; nothing at all before the first start."""
        ...


class SqliteLedger:
    """The file in the data directory."""

    name = "sqlite"
    settings = ""
    server: PostgresServer | None = None

    def __init__(self, data: Path) -> None:
        self._path = data / "coterie.db"

    def rows(self, sql: str) -> list[Row]:
        """Read; the file is opened to be read only, so that this repairs nothing that a host should."""
        if not self._path.exists():
            return []
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()


class PostgresLedger:
    """A database of a server that can be killed."""

    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self.server: PostgresServer | None = server
        self._url = server.fresh("kills")
        self.settings = f'[store]\nurl = "{self._url}"\n'

    def rows(self, sql: str) -> list[Row]:
        """Read."""
        with psycopg.connect(self._url) as connection:
            if connection.execute("SELECT to_regclass('messages') IS NULL").fetchone() == (True,):
                return []
            return connection.execute(sql.encode()).fetchall()


@contextmanager
def sqlite(data: Path) -> Generator[LedgerStore]:
    """A ledger in the data directory."""
    yield SqliteLedger(data)


@contextmanager
def postgres(data: Path) -> Generator[LedgerStore]:
    """A ledger on a server of its own, which writes to the disk as in earnest."""
    del data
    with PostgresServer() as server:
        yield PostgresLedger(server)


STORES: Final = {"sqlite": sqlite, "postgres": postgres}
