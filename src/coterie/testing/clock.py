"""A clock that a test moves by hand."""

import asyncio

START_MS = 1_700_000_000_000


class FakeClock:
    """Implements `ports.clock.Clock`. Sleeping moves it and takes no time."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0
        self.slept: list[float] = []
        """How long each sleep was, in order."""

    def now_ms(self) -> int:
        """See the port."""
        return self._now_ms

    def monotonic(self) -> float:
        """See the port."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """See the port; other tasks get their turn."""
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self._now_ms += round(seconds * 1000)
        self._monotonic += seconds

    def set_back(self, seconds: float) -> None:
        """Step the wall clock back, as clocks do; monotonic time goes on."""
        self._now_ms -= round(seconds * 1000)
