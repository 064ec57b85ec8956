"""On what the product is measured: the store, the baseline beside it, and the budgets that hold there."""

import importlib
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks import budgets
from benchmarks.budgets import Budget
from benchmarks.raw import Raw, raw_sqlite
from coterie.bootstrap.files import DATABASE
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.ledger import OpenedStore


class OpenStore(Protocol):
    """Opens the ledger that belongs to a folder."""

    def __call__(self, folder: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> OpenedStore:
        """Open it, or make it new."""
        ...


@dataclass(frozen=True, slots=True)
class Ground:
    """A database that runs."""

    name: str
    open_store: OpenStore
    raw: Callable[[Path], AbstractContextManager[Raw]]
    """The baseline beside a product that works in the folder."""
    kept: Mapping[Budget, Budget] | None = None
    """What holds here in place of the usual budgets; None is the usual ones."""

    def budget(self, usual: Budget | None) -> Budget | None:
        """The budget that holds here."""
        return usual if self.kept is None or usual is None else self.kept.get(usual)


def open_sqlite(folder: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> OpenedStore:
    """See `OpenStore`: a file in the folder."""
    return SqliteStore(folder / DATABASE, host, clock, ids, feed=feed)


SQLITE: Final = Ground("SQLite", open_sqlite, raw_sqlite)
_COUNTS: Final = (budgets.COMMITS_FUSED, budgets.COMMITS_FUSED_READ, budgets.COMMITS_QUEUED)
_KEPT_ON_POSTGRES: Final = {budget: budget for budget in _COUNTS} | {budgets.FUSED: budgets.FUSED_ON_POSTGRES}


@contextmanager
def sqlite() -> Generator[Ground]:
    """Files in the folder of the run."""
    yield SQLITE


@contextmanager
def postgres() -> Generator[Ground]:
    """A server of its own, with a database for each folder.

    Raises:
        ImportError: What it needs is not installed.
    """
    # By name: who measures SQLite needs neither driver nor server.
    opened = importlib.import_module("coterie.storage.postgres.store").PostgresStore
    raw_postgres = importlib.import_module("benchmarks.raw_postgres").raw_postgres
    with importlib.import_module("tests.postgres").PostgresServer(tends=True) as server:
        urls: dict[Path, str] = {}

        def open_store(folder: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> OpenedStore:
            if folder not in urls:
                urls[folder] = server.fresh(f"ledger{len(urls)}")
            return opened(urls[folder], host, clock, ids, feed=feed)

        yield Ground("PostgreSQL", open_store, lambda _: raw_postgres(server), _KEPT_ON_POSTGRES)


GROUNDS: Final[Mapping[str, Callable[[], AbstractContextManager[Ground]]]] = {"sqlite": sqlite, "postgres": postgres}
