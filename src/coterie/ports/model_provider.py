"""The world's models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from coterie.core.model_ref import Binding
from coterie.core.thinking import Thinking
from coterie.core.turn.context import Shown
from coterie.core.turn.loop import ModelFailed, Replied


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told about a tool."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema of one object."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to one model."""

    binding: Binding
    instructions: str
    """System instructions of this request alone."""
    context: tuple[Shown, ...]
    tools: tuple[ToolSpec, ...]
    thinking: Thinking | None = None
    """How much to think first; None leaves it to the vendor."""
    images: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """The bytes of each image in the context, by its reference."""


class ModelProvider(Protocol):
    """Speaks a vendor's wire protocol."""

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """Send one request, once, and return what came of it; faults of the vendor are values.

        Args:
            request: What to ask.
            on_text: Called with each piece of visible text as it arrives.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
