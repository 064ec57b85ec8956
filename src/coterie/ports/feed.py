"""Wake-ups and live text. May lose anything; the store loses nothing."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

READY: Final = "ready"
"""Topic that is woken when a session has an input that waits for nothing but a slot."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply that is being written, or of what a tool prints; its item replaces it."""

    session_id: str
    turn_id: str
    text: str
    call_id: str | None = None
    """The tool call that prints it; None is a reply."""


class Listener(Protocol):
    """One who sleeps."""

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until a topic was woken since the last wait; False when the time ran out."""
        ...

    def deltas(self) -> list[Delta]:
        """Live text since the last call."""
        ...


class Feed(Protocol):
    """Topics are ids of sessions and turns, and `READY`."""

    def wake(self, topics: Iterable[str]) -> None:
        """Wake all who listen to one of *topics*."""
        ...

    def publish(self, delta: Delta) -> None:
        """Show live text to who listens to its session."""
        ...

    def listen(self, topics: Iterable[str] | None) -> AbstractContextManager[Listener]:
        """Register before the first read, so that nothing is missed; None listens to everything."""
        ...
