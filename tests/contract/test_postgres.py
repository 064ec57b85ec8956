"""The store contract on PostgreSQL, and what only this store promises."""

import pytest
from tests.postgres import needs_postgres, server

from coterie.storage.postgres.store import PostgresStore
from coterie.testing.ledger import OpenedStore, OpenStore, World
from coterie.testing.store_contract import StoreContract

pytestmark = needs_postgres


class TestPostgresStore(StoreContract):
    """Collected here; the tests are the contract's."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """A database that is empty when a test begins."""
        urls: dict[str, str] = {}

        def open_postgres(world: World) -> OpenedStore:
            name = str(world.path)
            if name not in urls:
                urls[name] = server().ledger(f"contract{len(urls)}")
            return PostgresStore(urls[name], world.host, world.clock, world.ids, feed=world.feed)

        return open_postgres
