"""Processes of tests end with the tests, also when those are killed.

A shell holds one end of a pipe, and acts when the other end goes.
"""

import subprocess
from types import TracebackType
from typing import Final, Self

_WHEN_THE_PIPE_ENDS: Final = 'cat; kill -QUIT "$0"; sleep 1; kill -KILL "$0"; [ -z "$1" ] || rm -rf "$1"'


class Guard:
    """Ends a process, and removes a folder, if this process is gone before `release` was called.

    Args:
        pid: The process: asked by SIGQUIT, killed a second later.
        folder: What to remove behind it; nothing if empty.
        user: Whose rights that takes; one's own if None.
    """

    def __init__(self, pid: int, folder: str = "", *, user: str | None = None) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _WHEN_THE_PIPE_ENDS, str(pid), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            user=user,
        )

    def __enter__(self) -> Self:
        """Guard inside of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release."""
        self.release()

    def release(self) -> None:
        """Guard no more; do so before the process is waited for, as another one may get its number."""
        self._shell.kill()
        with self._shell:
            pass
