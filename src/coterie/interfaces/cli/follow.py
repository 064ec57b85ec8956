"""A stream of events that survives its connection: it goes on behind the last event that came."""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from coterie.core.errors import HostUnavailableError
from coterie.interfaces.cli.dial import Dial, Event

BACKOFF_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before the tries to connect again; the last one repeats."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The stream is open: what changes from here on will come."""

    again: bool
    """It was open before, so what has no id may have been missed."""
    hang_up: Callable[[], None] = field(compare=False)
    """Ends the connection from another thread."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke; the next try comes after a pause."""

    reason: str
    pause_s: float


Followed: TypeAlias = Opened | Event | Lost


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin, and how long to hope."""

    data: Path
    """The data directory; it is read at each try, for a host that starts again may have another address."""
    session_id: str | None
    after: str | None = None
    """Id of the last known event; None begins now."""
    tries_max: int | None = None
    """Vain tries in a row after which the fault is raised; None never gives up."""


def follow(start: Start, *, pause: Callable[[float], object] = time.sleep) -> Generator[Followed]:
    """Yield what happens, from *start* on, without end.

    Args:
        start: Where to begin.
        pause: Sleeps for some seconds.

    Raises:
        AnswerError: The host refused the stream.
        HostUnavailableError: It did not answer at first, or too often in a row.
    """
    after, opened, tries = start.after, False, 0
    while True:
        try:
            with Dial.to(start.data).events(start.session_id, after) as stream:
                yield Opened(opened, stream.hang_up)
                opened = True
                for event in stream:
                    after, tries = event.id or after, 0
                    yield event
            reason = "The host ended the stream."
        except HostUnavailableError as error:
            if not opened or (start.tries_max is not None and tries >= start.tries_max):
                raise
            reason = str(error)
        pause_s = BACKOFF_S[min(tries, len(BACKOFF_S) - 1)]
        tries += 1
        yield Lost(reason, pause_s)
        pause(pause_s)
