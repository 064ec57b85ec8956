"""Kept outputs as files of a folder, each named by the SHA-256 of what it holds.

A file appears whole or not at all, and before the row that refers to it. One that no row refers to, because the host
died in between, is in nobody's way.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

_PIECE_CHARS: Final = 65_536


class FileOutputs:
    """Implements `ports.outputs.Outputs` and `Images`; the files are readable by their owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

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
        return ref

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
