"""Worktrees without git: each has changed one line of one file."""

from collections.abc import Awaitable, Callable
from typing import Final

from coterie.core.session.worktree import Change, Origin, Worktree

CHANGE: Final = Change(("a.txt",), 1, insertions=1, deletions=1)
DIFF: Final = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


class PlainWorkspaces:
    """Implements `ports.workspaces.Workspaces`."""

    async def origin(self, folder: str) -> Origin | None:
        """See the port."""
        return Origin("/data/worktrees", folder, "", "0" * 40)

    async def prepare(self, worktree: Worktree) -> None:
        """See the port."""

    async def record(self, worktree: Worktree, title: str) -> Change:
        """See the port."""
        del worktree, title
        return CHANGE

    async def diff(self, worktree: Worktree) -> tuple[str, Change]:
        """See the port."""
        del worktree
        return DIFF, CHANGE

    async def apply(self, worktree: Worktree) -> Change:
        """See the port."""
        del worktree
        return CHANGE

    async def drop(
        self, worktree: Worktree, *, force: bool, branch: bool, may: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """See the port."""
        del worktree, force, branch
        if may is not None:
            await may()
