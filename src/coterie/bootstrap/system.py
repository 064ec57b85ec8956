"""The system's clock and randomness."""

import asyncio
import secrets
import time

from coterie.core.ids import RANDOM_BITS, Prefix, make_id


class SystemClock:
    """Implements `ports.clock.Clock`."""

    def now_ms(self) -> int:
        """See the port."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See the port."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """See the port. A fifth of jitter keeps clients that failed together from coming back together."""
        await asyncio.sleep(seconds * (1 + secrets.randbelow(200) / 1000))


class RandomIds:
    """Implements `ports.ids.IdSource`."""

    def new(self, prefix: Prefix) -> str:
        """See the port."""
        return make_id(prefix, time.time_ns() // 1_000_000, secrets.randbits(RANDOM_BITS))
