"""A session's own copy of a project, on a branch of its own.

Pure module.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final

from coterie.core.ids import SessionId
from coterie.core.permission import Mode

FOLDER: Final = "worktrees"
"""Where worktrees are in the data directory."""
FILES_MAX: Final = 50
"""Changed files that a summary names."""
_SHORT_CHARS: Final = 12


@dataclass(frozen=True, slots=True)
class Origin:
    """What a worktree can be made of."""

    home: str
    """Folder that worktrees are in."""
    repository: str
    """Top folder of the creator's work tree."""
    inner: str
    """The project folder below it; empty where they are one."""
    base: str
    """The commit that it begins from."""
    prefix: str = "coterie/"
    """What the names of branches begin with."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """The worktree of one session."""

    path: str
    branch: str
    base: str
    repository: str
    inner: str

    @property
    def folder(self) -> str:
        """The folder that the session works in."""
        return f"{self.path}/{self.inner}" if self.inner else self.path

    def text(self) -> str:
        """As it is stored."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Change:
    """What a session has changed on its branch."""

    files: tuple[str, ...]
    """The first `FILES_MAX`, relative to the repository."""
    count: int
    insertions: int
    deletions: int


def worktree_of(text: str) -> Worktree:
    """Read what `Worktree.text` wrote."""
    return Worktree(**json.loads(text))


def worktree_for(origin: Origin, session_id: SessionId) -> Worktree:
    """The worktree of a session; its branch has the random end of the id, because the start tells the time."""
    branch = f"{origin.prefix}{session_id[-_SHORT_CHARS:]}"
    return Worktree(f"{origin.home}/{session_id}", branch, origin.base, origin.repository, origin.inner)


def wants_worktree(asked: str | None, mode: Mode) -> bool:
    """Whether a spawned session gets a worktree: as asked, else where it may edit without a person."""
    return mode is not Mode.ASK if asked is None else asked == "worktree"


def change_view(worktree: Worktree, change: Change) -> dict[str, object]:
    """What a completion tells of a worktree."""
    told: dict[str, object] = {"branch": worktree.branch, "base": worktree.base, "filesChanged": change.count}
    return told | {
        "files": list(change.files),
        "insertions": change.insertions,
        "deletions": change.deletions,
    }
