"""The feed of a host on PostgreSQL: its own wake-ups in memory, and those of others by LISTEN and NOTIFY.

A notification carries topics only: ids of sessions and turns. Live text stays on the host that writes it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias

import psycopg

from coterie.ports.feed import READY, Delta, Feed, Listener
from coterie.storage.postgres.database import OPTIONS

CHANNEL: Final = "coterie"
_OPTIONS: Final[dict[str, Any]] = OPTIONS | {"application_name": "coterie feed"}
PAYLOAD_MAX: Final = 7000
"""Characters of one notification; PostgreSQL takes less than 8,000 bytes."""
_AGAIN_S: Final = (0.1, 0.5, 2.0)
"""How long to wait before the next try to connect; the last one goes on."""
_LOG: Final = logging.getLogger(__name__)
_Connection: TypeAlias = "psycopg.AsyncConnection[tuple[Any, ...]]"


class NotifyFeed:
    """Implements `ports.feed.Feed` over the feed of this host. Use it as a context on the loop that listens."""

    def __init__(self, url: str, inner: Feed, name: str) -> None:
        """Take *name*, without blanks, as the mark of what this feed has sent itself."""
        self._url, self._inner, self._own = url, inner, name
        self._unsaid: dict[str, None] = {}
        self._more = asyncio.Event()

    def wake(self, topics: Iterable[str]) -> None:
        """See the port."""
        told = list(topics)
        self._inner.wake(told)
        self._unsaid.update(dict.fromkeys(told))
        self._more.set()

    def publish(self, delta: Delta) -> None:
        """See the port."""
        self._inner.publish(delta)

    def listen(self, topics: Iterable[str] | None) -> AbstractContextManager[Listener]:
        """See the port."""
        return self._inner.listen(topics)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Hear others, and let them hear, inside the block; a server that went away is tried again and again."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._for_ever(work)) for work in (self._hear, self._say)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def _for_ever(self, work: Callable[[_Connection], Awaitable[None]]) -> None:
        tries = 0
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, **_OPTIONS)
                async with connection:
                    tries = 0
                    await work(connection)
            except psycopg.Error as error:
                _LOG.info("the feed has no connection now", exc_info=error)
            await asyncio.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
            tries += 1

    async def _hear(self, connection: _Connection) -> None:
        await connection.execute(f"LISTEN {CHANNEL}".encode())
        # What was told while nobody listened is not told again.
        self._inner.wake([READY])
        async for notice in connection.notifies():
            own, *topics = notice.payload.split(" ")
            if own != self._own:
                self._inner.wake(topics)

    async def _say(self, connection: _Connection) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            unsaid, self._unsaid = self._unsaid, {}
            try:
                for payload in self._payloads(unsaid):
                    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except psycopg.Error:
                # That a server has gone shows only now: the next one is told, and to hear twice harms nobody.
                self._unsaid = unsaid | self._unsaid
                self._more.set()
                raise

    def _payloads(self, topics: Iterable[str]) -> list[str]:
        """What is to be said, in pieces that a notification can carry."""
        payloads = [self._own]
        for topic in topics:
            if len(payloads[-1]) + len(topic) >= PAYLOAD_MAX:
                payloads.append(self._own)
            payloads[-1] += f" {topic}"
        return payloads
