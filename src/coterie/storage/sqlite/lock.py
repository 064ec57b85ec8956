"""One process per data directory: an OS lock that a crash cannot leave behind."""

import fcntl
import os
from pathlib import Path

from coterie.core.errors import HostRunningError


class DataLock:
    """Holds `lock` in the data directory for as long as the process lives."""

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            HostRunningError: Another process has it.
        """
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 64, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise HostRunningError(
                f"Another host (process {holder}) has the data directory {folder}. "
                "Use it, stop it with `coterie down`, or name another directory with --data."
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._file)
