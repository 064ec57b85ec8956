"""Places to run turns in."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from coterie.core.ids import TurnId


class Slots(Protocol):
    """Bounds how many turns run at once (`turns_max`); implemented by the runtime."""

    def reserve(self) -> bool:
        """Take a slot for a turn that may be bound now; False if all are taken or somebody waits for one."""
        ...

    def give_back(self) -> None:
        """Return a reserved slot that no turn was bound to."""
        ...

    def hand_over(self, turn_id: TurnId) -> None:
        """Give a reserved slot to the turn that was bound, and start its worker."""
        ...

    def parked(self, turn_id: TurnId) -> AbstractAsyncContextManager[None]:
        """Free the turn's slot inside the block and take one again, ahead of new claims, at its end."""
        ...
