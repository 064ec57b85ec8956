"""Delegations: work that a running turn has given to subagents of its own session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from coterie.core.ids import SessionId, TurnId
from coterie.core.turn.items import Report, Usage
from coterie.ports.tool import Invocation


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What is known of a delegation while it runs: never what it has read or said."""

    id: str
    agent: str
    status: str
    """`running`, `completed`, `failed` or `stopped`."""
    elapsed_s: float
    requests: int
    """Model requests so far."""
    tool_calls: int
    last_tool: str | None
    report: str | None
    """What came of it, once it has ended."""


class Delegates(Protocol):
    """Runs delegations. They live in memory and end with their turn, so that nothing runs on unseen."""

    async def start(self, invocation: Invocation, prompt: str, agent: str | None) -> Heartbeat | str:
        """Begin one for the turn of *invocation*, by the definition *agent*; a text says why it cannot begin."""
        ...

    def known(self, turn_id: TurnId) -> tuple[Heartbeat, ...]:
        """The delegations of a turn, oldest first."""
        ...

    def of_session(self, session_id: SessionId) -> tuple[Heartbeat, ...]:
        """Those that run for a session now."""
        ...

    async def wait(
        self, turn_id: TurnId, ids: Sequence[str], mode: Literal["all", "any"], timeout_s: float | None = None
    ) -> tuple[Heartbeat, ...]:
        """Sleep until all, or any, of *ids* have ended (all of the turn's if none is named), or the time is up.

        Who reads a report here is not told it a second time.
        """
        ...

    async def stop(self, turn_id: TurnId, id_: str) -> bool:
        """End one, and all that it runs; False if the turn has none of that id that runs."""
        ...

    def open(self, turn_id: TurnId) -> int:
        """How many run for a turn, or have ended and the turn was not told."""
        ...

    async def news(self, turn_id: TurnId) -> None:
        """Sleep until one of the turn has ended that nobody was told of, or none runs any more."""
        ...

    def take(self, turn_id: TurnId) -> tuple[tuple[Report, ...], Usage]:
        """The reports that nobody was told of, told from now on, and what was used since the last call."""
        ...

    async def end(self, turn_id: TurnId) -> None:
        """Stop all that run for a turn, and return when nothing of them runs on."""
        ...

    def forget(self, turn_id: TurnId) -> None:
        """Drop what is known of a turn that has ended."""
        ...
