"""Slots without a worker: what is bound stays running, so that a test says itself how a turn ends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from coterie.core.ids import TurnId


class IdleSlots:
    """Implements `ports.slots.Slots`.

    Args:
        free: How many may be reserved; 0 lets everything wait in its queue.
    """

    def __init__(self, free: int = 0) -> None:
        self.free = free
        self.handed_over: list[TurnId] = []
        """The turns that were bound, in order."""
        self.parking: list[TurnId] = []
        """The turns that sleep now."""

    def reserve(self) -> bool:
        """See the port."""
        if self.free == 0:
            return False
        self.free -= 1
        return True

    def give_back(self) -> None:
        """See the port."""
        self.free += 1

    def hand_over(self, turn_id: TurnId) -> None:
        """See the port."""
        self.handed_over.append(turn_id)

    @asynccontextmanager
    async def parked(self, turn_id: TurnId) -> AsyncGenerator[None]:
        """See the port."""
        self.parking.append(turn_id)
        try:
            yield
        finally:
            self.parking.remove(turn_id)
