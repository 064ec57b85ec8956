"""Who performs an operation: it comes from the credential, never from a parameter (I10)."""

from dataclasses import dataclass
from typing import TypeAlias

from coterie.core.ids import SessionId
from coterie.ports.tool import Invocation


@dataclass(frozen=True, slots=True)
class Person:
    """The owner of the host."""

    @property
    def scope(self) -> str:
        """Namespace of idempotency keys."""
        return "person"

    @property
    def session_id(self) -> SessionId | None:
        """A person is no session."""
        return None


@dataclass(frozen=True, slots=True)
class Agent:
    """A running turn, by one of its live tool calls."""

    invocation: Invocation
    plugin: str | None = None
    """The plugin whose tool it is."""
    ships: bool = False
    """Whether that plugin ships with the host."""

    @property
    def scope(self) -> str:
        """Namespace of idempotency keys."""
        return f"session:{self.invocation.session_id}"

    @property
    def is_native(self) -> bool:
        """Whether it acts through nothing but what ships with the host."""
        return self.plugin is None or self.ships

    @property
    def session_id(self) -> SessionId | None:
        """The session that the turn belongs to."""
        return self.invocation.session_id


Caller: TypeAlias = Person | Agent
