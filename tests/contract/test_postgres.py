"""The store contract on PostgreSQL, and what only this store promises."""

from uuid import uuid4

import pytest
from tests.postgres import server

from coterie.storage.postgres.store import PostgresStore
from coterie.testing.ledger import OpenedStore, OpenStore, World
from coterie.testing.store_contract import StoreContract


class TestPostgresStore(StoreContract):
    """Collected here; the tests are the contract's."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """A database of its own."""
        urls: dict[str, str] = {}

        def open_postgres(world: World) -> OpenedStore:
            name = str(world.path)
            if name not in urls:
                urls[name] = server().fresh(f"t{uuid4().hex}")
            return PostgresStore(urls[name], world.host, world.clock, world.ids, feed=world.feed)

        return open_postgres
