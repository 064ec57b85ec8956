"""Worktrees of sessions: what is asked of git."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from coterie.core.session.worktree import Change, Origin, Worktree


class Workspaces(Protocol):
    """Makes, reads and removes worktrees. What git refuses is a `RefusedError` with its words."""

    async def origin(self, folder: str) -> Origin | None:
        """What a worktree of *folder* begins from; None where it is in no git project that has a commit."""
        ...

    async def prepare(self, worktree: Worktree) -> None:
        """Make the worktree if it is not there, from its branch if that is there."""
        ...

    async def record(self, worktree: Worktree, title: str) -> Change:
        """Commit all that the session *title* has changed to its branch; without a worktree only tell what is on it."""
        ...

    async def diff(self, worktree: Worktree) -> tuple[str, Change]:
        """What the branch changes, as text and in numbers; of a text of many megabytes only the start."""
        ...

    async def apply(self, worktree: Worktree) -> Change:
        """Put the change into the files of the creator's project: all of it or, at a conflict, nothing."""
        ...

    async def drop(
        self, worktree: Worktree, *, force: bool, branch: bool, may: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """Remove the worktree, if it has nothing that is not committed, and its branch where that is asked.

        Args:
            worktree: Which.
            force: Remove it with what is not committed.
            branch: Remove the branch too.
            may: Asked when nobody else can prepare the worktree; raises where it must stay.
        """
        ...
