"""A feed that loses a share of its wake-ups, as feeds may."""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from tests.simulation.host.chance import Chance

from coterie.ports.feed import Delta


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
        if delta is not None:
            self._deltas.append(delta)
        self._woken.set()


class LossyFeed:
    """Implements `ports.feed.Feed`. All that it does it does in one order, whatever the order of a set is."""

    def __init__(self, chance: Chance, lost: float) -> None:
        self._chance = chance
        self.lost = lost
        """The share of wake-ups that nobody hears."""
        self._by_topic: dict[str | None, dict[_Listener, None]] = {}

    def wake(self, topics: Iterable[str]) -> None:
        """See the port."""
        for topic in sorted(topics):
            for listener in self._listening(topic):
                if not self._chance.happens(self.lost):
                    listener.wake()

    def publish(self, delta: Delta) -> None:
        """See the port."""
        for listener in self._listening(delta.session_id):
            listener.wake(delta)

    def _listening(self, topic: str) -> tuple[_Listener, ...]:
        return (*self._by_topic.get(topic, ()), *self._by_topic.get(None, ()))

    @contextmanager
    def listen(self, topics: Iterable[str] | None) -> Generator[_Listener]:
        """See the port."""
        listener = _Listener()
        keys: list[str | None] = [None] if topics is None else list(topics)
        for key in keys:
            self._by_topic.setdefault(key, {})[listener] = None
        try:
            yield listener
        finally:
            for key in keys:
                self._by_topic[key].pop(listener, None)
