"""The feed of a single host: in memory, on the event loop."""

import asyncio
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from coterie.ports.feed import Delta

DELTAS_MAX: Final = 1000
"""Pieces of live text kept for one listener; more are lost, and the item replaces them anyway."""


class _Listener:
    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._deltas: list[Delta] = []

    async def wait(self, timeout_s: float | None = None) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    def deltas(self) -> list[Delta]:
        found, self._deltas = self._deltas, []
        return found

    def wake(self, delta: Delta | None = None) -> None:
        if delta is not None and len(self._deltas) < DELTAS_MAX:
            self._deltas.append(delta)
        self._woken.set()


class MemoryFeed:
    """Implements `ports.feed.Feed`. Not thread-safe: the store wakes it on the loop."""

    def __init__(self) -> None:
        self._by_topic: defaultdict[str | None, set[_Listener]] = defaultdict(set)

    def wake(self, topics: Iterable[str]) -> None:
        """See the port."""
        everything = self._by_topic.get(None, ())
        for topic in topics:
            for listener in (*self._by_topic.get(topic, ()), *everything):
                listener.wake()

    def publish(self, delta: Delta) -> None:
        """See the port."""
        for listener in (*self._by_topic.get(delta.session_id, ()), *self._by_topic.get(None, ())):
            listener.wake(delta)

    @contextmanager
    def listen(self, topics: Iterable[str] | None) -> Generator[_Listener]:
        """See the port."""
        listener = _Listener()
        keys: list[str | None] = [None] if topics is None else list(topics)
        for key in keys:
            self._by_topic[key].add(listener)
        try:
            yield listener
        finally:
            for key in keys:
                self._by_topic[key].discard(listener)
                if not self._by_topic[key]:
                    del self._by_topic[key]
