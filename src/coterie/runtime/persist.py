"""Writes that are worth some patience: what a turn has done is not thrown away for a database that is busy."""

from collections.abc import Awaitable, Callable
from typing import Final

from coterie.core.errors import StorageError, StorageUnknownError
from coterie.ports.clock import Clock
from coterie.ports.store import C, R, Store, UseCase

TRIES_S: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Waits before a write that the database refused for now is tried again."""


class Persist:
    """Runs use cases, again and again while the database refuses for now."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def __call__(
        self,
        use_case: UseCase[C, R],
        command: C,
        is_there: Callable[[], Awaitable[bool]] | None,
        *,
        brief: bool = True,
    ) -> R | bool:
        """Run a use case; returns what it returns, or true where *is_there* has told that it is written.

        Args:
            use_case: Writes what the worker has in hand.
            command: The same at each try.
            is_there: Tells after a commit of unknown end whether it is written; None where a second try does no harm.
            brief: See `ports.store.Store.run`.

        Raises:
            StorageError: The last try was refused too.
        """
        for wait_s in TRIES_S:
            try:
                return await self._store.run(use_case, command, brief=brief)
            except StorageUnknownError:
                await self._clock.sleep(wait_s)
                if is_there is not None and await is_there():
                    return True
            except StorageError:
                await self._clock.sleep(wait_s)
        return await self._store.run(use_case, command, brief=brief)
