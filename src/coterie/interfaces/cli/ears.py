"""What comes from the host and what a person types, heard in one place and in its order."""

import importlib
import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from coterie.core.errors import HostError
from coterie.interfaces.cli.follow import Followed, Opened, Start, follow

_LINE_BYTES_MAX: Final = 65_536
_WAKES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Typed:
    """A person has ended a line."""

    line: str | None
    """None is the end of all lines."""


Heard: TypeAlias = Followed | Typed


class Ears:
    """Follows a stream on a thread of its own, so that a wait for it is also a wait for the person."""

    def __init__(self, start: Start) -> None:
        self._come = deque[Followed | HostError]()
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._closed = threading.Event()
        self._hang_up: Callable[[], None] = self._closed.set
        threading.Thread(target=self._listen, args=(start,), name="ears", daemon=True).start()

    def next(self, *, typed: bool) -> Heard:
        """Wait for what comes next.

        Args:
            typed: Whether lines count; else they stay unread.

        Raises:
            HostError: The stream could not be opened, or was lost for good.
        """
        # Else a Ctrl-C just before a wait would be seen only after it.
        before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        try:
            while not self._come:
                waited = [self._wake, sys.stdin.fileno()] if typed else [self._wake]
                ready, _, _ = select.select(waited, [], [])
                if self._wake in ready:
                    os.read(self._wake, _WAKES_MAX)
                else:
                    line = os.read(sys.stdin.fileno(), _LINE_BYTES_MAX)
                    return Typed(line.decode("utf-8", "replace").strip() if line else None)
        finally:
            signal.set_wakeup_fd(before)
        come = self._come.popleft()
        if isinstance(come, HostError):
            raise come
        return come

    def close(self) -> None:
        """Hear no more: the connection ends, and the thread with it."""
        self._closed.set()
        self._hang_up()

    def _listen(self, start: Start) -> None:
        try:
            with closing(follow(start, pause=self._closed.wait)) as followed:
                for happened in followed:
                    if isinstance(happened, Opened):
                        self._hang_up = happened.hang_up
                    if self._closed.is_set():
                        return
                    self._put(happened)
        except HostError as error:
            self._put(error)
        finally:
            # Whoever waits may still be told of a fault by it.
            self._closed.wait()
            os.close(self._wake)
            os.close(self._waker)

    def _put(self, come: Followed | HostError) -> None:
        self._come.append(come)
        # A full pipe wakes as well as one byte more would.
        with suppress(BlockingIOError):
            os.write(self._waker, b".")


def forget_typed() -> None:
    """Drop what was typed before a question was seen, so that it does not answer it."""
    # Systems that have none have no such terminals either, but they have programs that import this.
    termios = importlib.import_module("termios")
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
