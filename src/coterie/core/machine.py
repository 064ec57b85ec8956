"""A state machine as a table of rows (source, event, target).

Pure module. The rule, the guard of the SQL move, the diagram in the docs and the grid of the tests all come from the
same rows, so they cannot disagree.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S", bound=StrEnum)


class StateTable(Generic[S]):
    """The moves that exist; whatever is not in a row cannot happen."""

    def __init__(self, initial: Iterable[S], rows: Sequence[tuple[S, type, S]]) -> None:
        self.initial = tuple(initial)
        self.rows = tuple(rows)
        self.events = tuple(dict.fromkeys(event for _, event, _ in rows))
        states = dict.fromkeys([*self.initial, *(state for source, _, target in rows for state in (source, target))])
        self.states = tuple(states)
        self.terminal = frozenset(self.states) - {source for source, _, _ in rows}
        for event in self.events:
            assert len({target for _, e, target in rows if e is event}) == 1, f"{event.__name__} has several targets"

    def sources(self, event: type) -> tuple[S, ...]:
        """The states that *event* may leave: the guard of its move."""
        return tuple(source for source, e, _ in self.rows if e is event)

    def target(self, event: type) -> S:
        """The state that *event* leads to, from wherever it may happen."""
        return next(target for _, e, target in self.rows if e is event)

    def after(self, state: S, event: type) -> S | None:
        """The state after *event* in *state*, or None if it cannot happen there."""
        return next((target for source, e, target in self.rows if source == state and e is event), None)

    def diagram(self) -> str:
        """The table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", *(f"    [*] --> {state}" for state in self.initial)]
        lines += [f"    {source} --> {target}: {event.__name__}" for source, event, target in self.rows]
        lines += [f"    {state} --> [*]" for state in self.states if state in self.terminal]
        return "\n".join(lines)
