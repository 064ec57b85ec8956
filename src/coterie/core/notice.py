"""What a person is told who is not looking, and how often.

Pure module.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from coterie.core.inbound import Waiting
from coterie.core.turn.states import TurnState

GAP_S: Final = 5.0
"""From one notice of a session about one sort of event to the next."""
WINDOW_S: Final = 60.0
SENT_MAX: Final = 30
"""Notices of all sessions in one window."""


class Sort(StrEnum):
    """What there is to tell."""

    APPROVAL = "approval"
    """A question waits for a person."""
    FAILED = "failed"
    """A turn has failed, or a stop of the host has ended it."""
    FINISHED = "finished"
    """A turn is completed."""
    BUDGET = "budget"
    """Something waits because its chain has spent its budget."""
    HELD = "held"
    """A restart holds a queue, or a session holds back what another one sends."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Where notices go: to a command or to an address, one of the two."""

    command: tuple[str, ...] = ()
    url: str = ""
    sorts: frozenset[Sort] = frozenset(Sort)
    text: bool = False
    """Whether words of people, models and tools go along: titles, results, errors, what a call would do."""

    def __repr__(self) -> str:
        # Addresses of this kind are secrets.
        return f"Notify({self.command[:1]}, {'url' if self.url else 'no url'})"


_OF_TURN: Final = {
    TurnState.COMPLETED: Sort.FINISHED,
    TurnState.FAILED: Sort.FAILED,
    TurnState.INTERRUPTED: Sort.FAILED,
}


_OF_INPUT: Final = {Waiting.BUDGET: Sort.BUDGET, Waiting.POLICY: Sort.HELD}


def sort_of_input(waiting: Waiting | None) -> Sort | None:
    """What there is to tell of an input; for one across projects there is a question, which is told."""
    return None if waiting is None else _OF_INPUT.get(waiting)


def sort_of_turn(state: TurnState) -> Sort | None:
    """What there is to tell of a turn; nothing while it runs, or where somebody has cancelled it."""
    return _OF_TURN.get(state)


@dataclass(frozen=True, slots=True)
class Pace:
    """Which notices were sent of late, each with its second and what it was about."""

    sent: tuple[tuple[float, str], ...] = ()

    def after(self, about: str, now: float) -> "Pace | None":
        """The pace once one more is sent, or None where that is too soon.

        Args:
            about: Session and sort of the event.
            now: Seconds of a clock that never steps back.
        """
        recent = tuple(one for one in self.sent if one[0] > now - WINDOW_S)
        if len(recent) >= SENT_MAX or any(at > now - GAP_S for at, other in recent if other == about):
            return None
        return Pace((*recent, (now, about)))
