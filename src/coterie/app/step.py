"""What the parts of one use case share."""

from dataclasses import dataclass

from coterie.core.ids import NewId
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction, its time and its ids."""

    tx: Tx
    now: int
    """Epoch milliseconds; never before what was written earlier."""
    new_id: NewId
