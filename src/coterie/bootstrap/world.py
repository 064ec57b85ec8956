"""What a host stands in by its settings: where its ledger is, and how it hears of what others write."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from coterie.bootstrap.engine import HostStore, World
from coterie.bootstrap.system import RandomIds
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.settings import Settings
from coterie.storage.sqlite.feed import MemoryFeed


@asynccontextmanager
async def world_of(settings: Settings) -> AsyncGenerator[World]:
    """The world of a host inside the block.

    Raises:
        HostRunningError: Another host has the ledger.
        StorageError: Its server cannot be reached.
    """
    url = settings.postgres
    if url is None:
        yield World()
        return
    # An extra, and slow to load.
    from coterie.storage.postgres.feed import NotifyFeed
    from coterie.storage.postgres.lock import host_lock
    from coterie.storage.postgres.store import PostgresStore

    def open_store(path: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> HostStore:
        del path
        return PostgresStore(url, host, clock, ids, feed=feed)

    feed = NotifyFeed(url, MemoryFeed(), RandomIds().new("hst"))
    async with host_lock(url), feed.running():
        yield World(feed=feed, open_store=open_store)
