"""One host to a ledger: a lock that the server keeps for as long as the connection lives.

It keeps a second host from starting by mistake. What keeps a host from writing that was taken for dead is its epoch:
each turn that it begins or ends names it (`lock_host`, `settle_turn`).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import psycopg

from coterie.core.errors import HostRunningError, StorageError
from coterie.storage.postgres.database import connect, explained, shown

KEEP_S: Final = 3.0
"""How often a host looks whether it still has the lock: a server that starts again has forgotten it."""
_TAKE: Final = "SELECT pg_try_advisory_lock(hashtextextended('coterie host ' || COALESCE(current_schema(), ''), 0))"


class HostLock:
    """The lock, held or sought."""

    def __init__(self, url: str) -> None:
        """Take it.

        Raises:
            HostRunningError: Another host has it.
            StorageError: The server cannot be reached.
        """
        self._url = url
        self._connection = connect(url)
        self._take()

    def _take(self) -> None:
        with explained(self._url):
            row = self._connection.execute(_TAKE).fetchone()
        if row is None or not row[0]:
            self.release()
            raise HostRunningError(
                f"Another host has the ledger at {shown(self._url)}. "
                "Use it, stop it with `coterie down`, or name another database in [store] url."
            )

    def keep(self) -> None:
        """Take it again if the server has forgotten it; while the server is away this does nothing.

        Raises:
            HostRunningError: Another host was quicker.
        """
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self.release()
            try:
                self._connection = connect(self._url)
            except StorageError:
                return
            self._take()

    def release(self) -> None:
        """Give it back."""
        self._connection.close()


@asynccontextmanager
async def host_lock(url: str, keep_s: float = KEEP_S) -> AsyncGenerator[None]:
    """Own the ledger inside the block, and keep owning it; what `HostLock` raises ends the block."""
    lock = await asyncio.to_thread(HostLock, url)
    try:
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(_keep(lock, keep_s))
            try:
                yield
            finally:
                keeping.cancel()
    finally:
        lock.release()


async def _keep(lock: HostLock, keep_s: float) -> None:
    while True:
        await asyncio.sleep(keep_s)
        await asyncio.to_thread(lock.keep)
