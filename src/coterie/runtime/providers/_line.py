"""A model at its vendor, with the connections that lead there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from pydantic_ai.models import Model
from pydantic_ai.profiles import ModelProfile

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


def profile(binding: Binding) -> ModelProfile:
    """Return what *binding* says of its model; the rest the library knows by the model's name, or assumes."""
    return ModelProfile(supports_thinking=True) if binding.reasoning else ModelProfile()
