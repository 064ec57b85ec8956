"""The five verbs that a database must offer; a dialect is a driver."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]
"""Column values; each reader states their types by building a dataclass of them."""


class Driver(Protocol):
    """Runs named statements (`statements.load`)."""

    def one(self, name: str, **params: object) -> Row | None:
        """The first row."""
        ...

    def all(self, name: str, **params: object) -> Sequence[Row]:
        """Every row."""
        ...

    def write(self, name: str, **params: object) -> None:
        """Change rows."""
        ...

    def move(self, name: str, **params: object) -> int:
        """Change rows under a guard; returns how many changed."""
        ...

    def write_rows(self, name: str, rows: Sequence[Row]) -> None:
        """Change rows, once for each of *rows*, whose values stand for the question marks of the statement."""
        ...

    def lock(self, name: str, **params: object) -> None:
        """Lock rows, in a statement that reads nothing else; nothing to do where there is one writer."""
        ...

    def lock_sessions(self, ids: Sequence[str]) -> None:
        """The same for rows of sessions, given in ascending order."""
        ...

    def lock_of_turn(self, turn_id: str, shown: Sequence[str], *, parties: bool) -> None:
        """The same for the sessions that `ports.store.Locks.turn` names."""
        ...

    def take_session(self, id_: str) -> bool:
        """The same for one session, unless somebody else has it: then False, and nothing was waited for."""
        ...

    def take_ready(self, other_than: str) -> str | None:
        """The same for the first session that is ready, of those that nobody else has; '' excepts none."""
        ...

    def involve(self, ids: Sequence[str]) -> None:
        """See `ports.store.Locks.involve`."""
        ...
