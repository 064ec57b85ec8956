"""A model at its vendor, with the connections that lead there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from pydantic_ai.models import Model

from coterie.core.model_ref import Binding

_NO_KEY: Final = "no-key"


@dataclass(frozen=True, slots=True)
class Line:
    """One client for one binding, open until it is closed."""

    model: Model
    close: Callable[[], Awaitable[None]]


def secret(binding: Binding) -> str:
    """Return the key of *binding*, or a text in its place: without one the SDKs would look in the environment."""
    return binding.api_key or _NO_KEY
