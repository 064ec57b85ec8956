"""Whether a model answers, and how fast."""

from dataclasses import dataclass
from typing import Protocol

from coterie.core.model_ref import Binding
from coterie.core.turn.loop import ModelFailed, Replied


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of one request that belongs to no session."""

    outcome: Replied | ModelFailed
    latency_ms: int
    """Until the answer was whole, or the fault known."""


class ModelProbe(Protocol):
    """Asks a model for a word; implemented by the runtime."""

    async def probe(self, binding: Binding) -> Probed:
        """Send one request, once; a fault of the vendor is a value."""
        ...
