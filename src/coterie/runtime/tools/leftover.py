"""What a host that was killed has left running: each group of processes is on record while it runs.

A number alone says little, for the system gives it out again; and the first process of a group mostly ends with the
host, so when it began cannot be compared. So each command has a mark among its variables, which all that it starts
inherits, and a group is ended only if a process in it has the mark of the record. Without `/proc` none is ended.
"""

import contextlib
import os
import re
import secrets
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARK: Final = "COTERIE_COMMAND"
"""The variable."""
_RECORD: Final = re.compile(r"(\d{1,10})-([0-9a-f]{16})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one command."""

    folder: Path | None
    """Where records are; None keeps none."""
    text: str

    @classmethod
    def fresh(cls, folder: Path | None) -> "Mark":
        """A mark that nobody else has."""
        return cls(folder, secrets.token_hex(8))

    def on(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables of a marked command."""
        return dict(environment) if self.folder is None else {**environment, MARK: self.text}

    @contextmanager
    def recorded(self, group: int) -> Generator[None]:
        """Keep *group* on record inside the block."""
        if self.folder is None:
            yield
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        record = self.folder / f"{group}-{self.text}"
        record.touch(mode=0o600)
        try:
            yield
        finally:
            record.unlink(missing_ok=True)


def end_leftovers(folder: Path) -> int:
    """End the groups on record in *folder* that still run, and forget all; returns how many were ended.

    Called by who has the data directory to itself, so no group on record has a host that waits for it.
    """
    ended = 0
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for record in list(folder.iterdir()):
            known = _RECORD.fullmatch(record.name)
            if known is None:
                continue
            if _is_marked(int(known[1]), known[2]):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(int(known[1]), signal.SIGKILL)
                    ended += 1
            record.unlink(missing_ok=True)
    return ended


def _is_marked(group: int, text: str) -> bool:
    mark = f"{MARK}={text}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        # Each may be gone by now, or belong to somebody else.
        with contextlib.suppress(OSError):
            # The name in parentheses may hold anything; behind it are state, parent and group.
            told = (process / "stat").read_bytes().rpartition(b")")[2].split()
            if int(told[2]) == group and mark in (process / "environ").read_bytes().split(b"\0"):
                return True
    return False
