"""Time that passes only when nothing else is left to do: an event loop without waiting and without threads."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

from coterie.testing.clock import START_MS

T = TypeVar("T")


TURNS_MAX: Final = 200_000
"""Turns of a loop that no life needs."""


class StuckError(Exception):
    """Nothing is left that could ever happen, or all goes round in a circle."""


class _Leap(selectors.SelectSelector):
    """Waits for nobody: where the loop would sleep, the time is what it would be after that."""

    def __init__(self, now_s: float) -> None:
        super().__init__()
        self.now_s = now_s
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        if timeout is None or self._turns > TURNS_MAX:
            self._turns = 0
            raise StuckError
        self.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is its own; what would go to a thread is done at once, and told a turn later."""

    def __init__(self, now_s: float) -> None:
        self._leap = _Leap(now_s)
        super().__init__(self._leap)

    def time(self) -> float:
        """Virtual seconds since the beginning of the life."""
        return self._leap.now_s

    def run_in_executor(  # pyright: ignore[reportIncompatibleMethodOverride]  # typeshed asks for variadic generics
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call *func* now; its result is there in the next turn of the loop."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who asked
            future.set_exception(error)
        return future


class LoopClock:
    """Implements `ports.clock.Clock` on the time of a loop; the wall clock may be stepped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ahead_ms: int) -> None:
        self._loop = loop
        self.ahead_ms = ahead_ms
        """How far the wall clock is from where it would be without its steps."""

    def now_ms(self) -> int:
        """See the port."""
        return START_MS + round(self._loop.time() * 1000) + self.ahead_ms

    def monotonic(self) -> float:
        """See the port."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """See the port."""
        await asyncio.sleep(seconds)
