"""Kept outputs as files of a folder, each named by the SHA-256 of what it holds.

A file appears whole or not at all, and before the row that refers to it. One that no row refers to, because the host
died in between or the session was deleted, is removed when it is old.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from coterie.ports.clock import Clock

_PIECE_CHARS: Final = 65_536
_YOUNG_S: Final = 3_600.0
"""For so long a file may wait for its row."""


class FileOutputs:
    """Implements `ports.outputs.Outputs` and `Images`; the files are readable by their owner only."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock

    def keep(self, text: str) -> str:
        """See the port."""
        return self.keep_image(text.encode())

    def keep_image(self, data: bytes) -> str:
        """See the port."""
        ref = hashlib.sha256(data).hexdigest()
        path = self._folder / ref
        if not path.exists():
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._write(path, data)
        # Known again or for the first time: young, so that it stays until its row names it.
        now_s = self._clock.now_ms() / 1_000
        os.utime(path, (now_s, now_s))
        return ref

    def old(self) -> Sequence[str]:
        """See the port."""
        if not self._folder.is_dir():
            return ()
        until_s = self._clock.now_ms() / 1_000 - _YOUNG_S
        with os.scandir(self._folder) as found:
            # Also what a crash left half-written, under its own name.
            return [entry.name for entry in found if entry.stat(follow_symlinks=False).st_mtime < until_s]

    def forget(self, refs: Iterable[str]) -> None:
        """See the port."""
        for ref in refs:
            (self._folder / ref).unlink(missing_ok=True)

    def _write(self, path: Path, body: bytes) -> None:
        # Made for the owner alone, under a name that no other thread has.
        descriptor, beside = tempfile.mkstemp(dir=self._folder, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            Path(beside).replace(path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
        self._sync()

    def _sync(self) -> None:
        """Make the new name outlive a crash."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def image(self, ref: str) -> bytes:
        """See the port."""
        return (self._folder / ref).read_bytes()

    def piece(self, ref: str, offset: int, limit: int) -> tuple[str, bool]:
        """See the port."""
        # Line ends are left as they are: the numbers of characters count them.
        with (self._folder / ref).open(encoding="utf-8", newline="") as file:
            left = offset
            while left and (passed := file.read(min(left, _PIECE_CHARS))):
                left -= len(passed)
            return file.read(limit), bool(file.read(1))
