"""The ground that file tools stand on: one project folder, less the folders that are closed.

A path is judged by where it really leads. The judgement and the use are two steps, so a program that swaps a folder for
a link in between can win the race; confinement of programs is not the business of this module.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from coterie.core.session.worktree import FOLDER
from coterie.core.text import cut, mend
from coterie.runtime.tools.arguments import UnfitError

_NAME_CHARS_MAX: Final = 300
_SNIFF_BYTES: Final = 8_192


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a session's file tools may go."""

    root: Path
    """The project folder, links resolved."""
    closed: frozenset[Path]
    """Folders that no tool may enter, links resolved."""
    closed_ids: frozenset[tuple[int, int]]
    """Device and inode of each that exists: a path in other letter case, or a bind mount, is the same folder."""
    opened: Path | None = None
    """The worktree in a closed folder that the project folder is, or is in."""

    def locate(self, text: str) -> Path:
        """Return the real path that *text* means.

        Raises:
            UnfitError: It leads out of the project folder or into a closed one.
        """
        try:
            path = (self.root / text).resolve()
        except RuntimeError as error:  # Python before 3.13 tells a loop of links in this way.
            raise UnfitError(f"{named(text)} is a loop of symbolic links.") from error
        if not path.is_relative_to(self.root):
            raise UnfitError(f"{named(text)} is outside the project folder; give a path inside it.")
        if self.is_closed(path):
            raise UnfitError(f"{named(text)} is closed to tools: it belongs to the host.")
        return path

    def is_closed(self, path: Path) -> bool:
        """Whether *path*, links resolved, is a closed folder or lies in one."""
        line = (path, *path.parents)
        return any(step in self.closed for step in line) or any(_id_of(step) in self.closed_ids for step in line)

    def contains(self, path: Path) -> bool:
        """Whether *path*, links resolved, is inside the project folder and not closed."""
        return path.is_relative_to(self.root) and not self.is_closed(path)

    def name(self, path: Path) -> str:
        """The path as tools show it: relative to the project folder, forward slashes, one line."""
        return mend(path.relative_to(self.root).as_posix()).replace("\n", "\ufffd")


def ground_of(workspace: str | None, closed: Sequence[Path]) -> Ground:
    """Return the ground of a session.

    Args:
        workspace: Absolute path of the project folder, if the session has one.
        closed: Folders closed to every tool.

    Raises:
        UnfitError: There is no folder to work in.
    """
    if workspace is None:
        raise UnfitError("This session has no project folder, so tools for files and commands do not work in it.")
    root = Path(workspace)
    if not root.is_absolute() or not root.is_dir():
        raise UnfitError("The project folder of this session does not exist.")
    root = root.resolve()
    folders = [one.resolve() for one in closed]
    opened = next((tree for tree in (worktree_at(root, folder) for folder in folders) if tree is not None), None)
    # Nothing else of a closed folder is in reach of a worktree in it.
    shut = frozenset(folder for folder in folders if opened is None or not opened.is_relative_to(folder))
    ids = frozenset(identity for folder in shut if (identity := _id_of(folder)) is not None)
    ground = Ground(root, shut, ids, opened)
    if ground.is_closed(ground.root):
        raise UnfitError("The project folder of this session is closed to tools: it belongs to the host.")
    return ground


def worktree_at(root: Path, closed: Path) -> Path | None:
    """The worktree in a closed folder that *root* is, or is in."""
    home = closed / FOLDER
    return home / root.relative_to(home).parts[0] if root != home and root.is_relative_to(home) else None


def named(text: str) -> str:
    """The path that the model wrote, quoted and not too long."""
    return repr(cut(text, _NAME_CHARS_MAX)[0])


def open_file(path: Path, name: str) -> BufferedReader:
    """Open a regular file to read.

    Not blocking, because a pipe without a writer would hold the thread for ever; not following, because *path* was
    resolved before and a link there now is a new one.

    Raises:
        UnfitError: It is something else, or not there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UnfitError(f"{name} does not exist.") from error
    file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is not None:
        return file
    os.close(descriptor)
    if path.is_dir():
        raise UnfitError(f"{name} is a folder; glob lists what is in it.")
    raise UnfitError(f"{name} is not a regular file.")


def looks_binary(file: BufferedReader) -> bool:
    """Whether a NUL is near the start; the position is at the start afterwards."""
    start = file.read(_SNIFF_BYTES)
    file.seek(0)
    return b"\0" in start


def _id_of(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
