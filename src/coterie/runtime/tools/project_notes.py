"""What a project tells agents who work in it: the `AGENTS.md` files from the root of its repository down to its folder.

They are text of the project and no right comes from them; still, one that leads out of the project is not followed, so
that a link in a foreign repository cannot carry another file of this machine to a model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coterie.core.text import mend
from coterie.core.turn.instructions import NOTES_CHARS_MAX, ProjectNote
from coterie.runtime.tools.arguments import UnfitError
from coterie.runtime.tools.ground import Ground, ground_of, open_file

FILE: Final = "AGENTS.md"
_BYTES_MAX: Final = 4 * NOTES_CHARS_MAX + 4
"""A character has four bytes at most; what is longer is cut anyway, and is seen to be."""


class ProjectNotes:
    """Reads the files of a project folder; blocks, so it is called in a thread.

    Args:
        closed: Folders closed to every tool.
    """

    def __init__(self, closed: Sequence[Path]) -> None:
        self._closed = tuple(closed)

    def __call__(self, folder: str) -> tuple[ProjectNote, ...]:
        """The notes for *folder*, the nearest last; without a repository only its own."""
        try:
            line = _line(Path(folder).resolve())
            ground = ground_of(str(line[0]), self._closed)
        except (UnfitError, OSError, RuntimeError):
            return ()
        found = ((step, _text(ground, step / FILE)) for step in line)
        return tuple(ProjectNote(_name(step, line[-1]), text) for step, text in found if text is not None)


def _line(folder: Path) -> list[Path]:
    """The folders from the root of the repository that *folder* is in down to it; alone where there is none."""
    for depth, step in enumerate((folder, *folder.parents), start=1):
        # A folder, or in a worktree a file.
        if (step / ".git").exists():
            return [folder, *folder.parents][:depth][::-1]
    return [folder]


def _text(ground: Ground, path: Path) -> str | None:
    try:
        real = path.resolve()
        if not ground.contains(real):
            return None
        with open_file(real, FILE) as file:
            return mend(file.read(_BYTES_MAX).decode("utf-8", "replace"))
    except (UnfitError, OSError, RuntimeError):
        return None


def _name(step: Path, folder: Path) -> str:
    """The path as it is from the project folder."""
    return "../" * (len(folder.parts) - len(step.parts)) + FILE
