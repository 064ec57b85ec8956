"""How much a model thinks before it answers.

Pure module.
"""

from enum import StrEnum

from coterie.core.model_ref import Binding


class Thinking(StrEnum):
    """A level that a person sets for a session; each wire has its own parameter for it."""

    OFF = "off"
    """As little as the model allows."""
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def applied(level: Thinking | None, binding: Binding) -> Thinking | None:
    """Return the level that a request to *binding* carries: none where its model does not reason."""
    return level if binding.reasoning else None
