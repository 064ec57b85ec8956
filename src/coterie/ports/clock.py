"""Time, as the host needs it."""

from typing import Protocol


class Clock(Protocol):
    """Wall time for rows, and sleeping."""

    def now_ms(self) -> int:
        """Epoch milliseconds. May step back; the ledger does not (`Tx.now_ms`)."""
        ...

    def monotonic(self) -> float:
        """Seconds that never step: for measuring how long something took."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after *seconds*."""
        ...
