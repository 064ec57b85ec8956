"""The store contract on SQLite, and what only this store promises."""

import pytest

from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.ledger import OpenedStore, OpenStore, World
from coterie.testing.store_contract import StoreContract


def open_sqlite(world: World) -> OpenedStore:
    """Open the store of the embedded host."""
    return SqliteStore(world.path, world.host, world.clock, world.ids, feed=world.feed)


class TestSqliteStore(StoreContract):
    """Collected here; the tests are the contract's."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """SQLite in a file."""
        return open_sqlite
