"""Several stores on one PostgreSQL database, as several processes of one host would have them, and a hand beside them.

The hand is a connection of a test's own: it holds what the stores wait for, and sees that they wait.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import psycopg

from coterie.core.ids import SessionId
from coterie.core.limits import Limits
from coterie.ports.feed import Feed
from coterie.storage.postgres.store import PostgresStore
from coterie.testing.ledger import Ledger, OpenStore, World

T = TypeVar("T")
Hand: TypeAlias = "psycopg.AsyncConnection[tuple[Any, ...]]"

BOUND_S: Final = 20.0
"""No wait of a test is longer."""
_WAITING: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'coterie'
"""


def opening(url: str, feed: Feed | None = None) -> OpenStore:
    """Opens stores on one database, with *feed* in place of the world's."""

    def open_store(world: World) -> PostgresStore:
        return PostgresStore(url, world.host, world.clock, world.ids, feed=feed or world.feed)

    return open_store


def store_of(ledger: Ledger) -> PostgresStore:
    """The store, as what it is."""
    return cast("PostgresStore", ledger.store)


@asynccontextmanager
async def started(url: str, limits: Limits | None = None, seed: int = 0) -> AsyncGenerator[Ledger]:
    """A host of its own inside the block: it has begun an epoch."""
    ledger = Ledger(opening(url), Path(), limits, seed)
    await ledger.start()
    try:
        yield ledger
    finally:
        await ledger.store.close()


@asynccontextmanager
async def processes(url: str, count: int, **limits: int) -> AsyncGenerator[list[Ledger]]:
    """Stores on one database that all act as the host that the first has begun."""
    async with started(url, replace(Limits(), **limits)) as first:
        others = [Ledger(opening(url), Path(), first.host.limits, seed) for seed in range(1, count)]
        for one in others:
            one.store = opening(url)(World(Path(), first.host, first.clock, one.ids, one.feed))
            one.host, one.clock = first.host, first.clock
        try:
            yield [first, *others]
        finally:
            for one in others:
                await one.store.close()


@asynccontextmanager
async def hand(url: str) -> AsyncGenerator[Hand]:
    """A connection in which each statement is a transaction, unless a test begins one."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, application_name="hand") as connection:
        yield connection


async def hold(hand: Hand, *sessions: SessionId) -> None:
    """Begin a transaction that has the locks of these sessions."""
    await hand.execute("BEGIN")
    for session in sessions:
        await hand.execute("SELECT id FROM sessions WHERE id = %s FOR NO KEY UPDATE", [session])


async def one(hand: Hand, sql: str, params: Sequence[object] = ()) -> Any:
    """The first column of the first row."""
    row = await (await hand.execute(sql.encode(), params)).fetchone()
    assert row is not None, sql
    return row[0]


async def until_waiting(watch: Hand, count: int = 1) -> None:
    """Wait until so many transactions of stores wait for locks; there is nothing that tells when they begin to."""
    async with asyncio.timeout(BOUND_S):
        while await one(watch, _WAITING) < count:
            pass


async def soon(doing: Awaitable[T]) -> T:
    """Wait for what must not wait for anybody."""
    async with asyncio.timeout(BOUND_S):
        return await doing
