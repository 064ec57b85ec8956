"""A person's terminal: a pseudo-terminal with a command at its other end."""

import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from tests.host.program import BOUND_S, Seat

CTRL_C: Final = "\x03"
CTRL_D: Final = "\x04"
_AGAIN_S: Final = 0.5
_SIZE: Final = (50, 200)
# The terminal has to be the command's own, so that its Ctrl-C reaches it.
_LAUNCH: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "coterie", *sys.argv[1:]])
"""
_STYLES: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

_UNSEEN: Final = {ord(sign): None for sign in "\r\a"}


@dataclass
class Screen:
    """What a command has written on its terminal, and the keys that it is sent."""

    popen: subprocess.Popen[bytes]
    terminal: int
    shown: str = ""
    """All that has come, without styles and bells."""
    raw: bytes = b""
    _seen: int = 0

    @property
    def has_rung(self) -> bool:
        """Whether the bell was sounded."""
        return b"\a" in self.raw

    def until(self, text: str, *, press: str = "") -> str:
        """Wait for *text* behind what was waited for before; returns what came up to its end.

        Args:
            text: What has to come.
            press: Keys that are pressed until it does: line editors miss a Ctrl-C in the moment in which they begin.
        """
        end_s, ready = monotonic() + BOUND_S, False
        while (at := self.shown.find(text, self._seen)) < 0:
            if press and not ready:
                self.type(press)
            ready = self._ready(min(end_s, monotonic() + _AGAIN_S) if press else end_s)
            assert ready or monotonic() < end_s, f"{text!r} did not come within {BOUND_S} s; there is:\n{self.shown}"
            assert not ready or self._read(), f"it ended before {text!r}; there is:\n{self.shown}"
        found = self.shown[self._seen : at + len(text)]
        self._seen = at + len(text)
        return found

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.terminal, keys.encode())

    def enter(self, line: str) -> None:
        """Type a line."""
        self.type(f"{line}\n")

    def ended(self) -> int:
        """Wait for the command's end, and return its exit status."""
        end_s = monotonic() + BOUND_S
        while True:
            assert self._ready(end_s), f"it did not end within {BOUND_S} s; there is:\n{self.shown}"
            if not self._read():
                return self.popen.wait(BOUND_S)

    def _ready(self, end_s: float) -> bool:
        return bool(select.select([self.terminal], [], [], max(0.0, end_s - monotonic()))[0])

    def _read(self) -> bool:
        try:
            more = os.read(self.terminal, 65_536)
        except OSError:
            # Linux says so where nobody holds the other end any more.
            return False
        self.raw += more
        self.shown = _STYLES.sub("", self.raw.decode("utf-8", "replace")).translate(_UNSEEN)
        return bool(more)


@contextmanager
def screen(seat: Seat, *words: str | Path) -> Generator[Screen]:
    """Run a command on a terminal inside of the block; it is killed behind it if it has not ended."""
    own, other = pty.openpty()
    termios.tcsetwinsize(other, _SIZE)
    command = [sys.executable, "-c", _LAUNCH, *map(str, words)]
    environment = {**seat.environment(), "TERM": "xterm", "LANG": "C.UTF-8"}
    with subprocess.Popen(
        command,
        stdin=other,
        stdout=other,
        stderr=other,
        env=environment,
        cwd=seat.folder or seat.home,
        start_new_session=True,
    ) as popen:
        os.close(other)
        try:
            yield Screen(popen, own)
        finally:
            popen.kill()
            os.close(own)
