"""What the verbs for worktrees answer."""

from coterie.core.session.worktree import Change
from coterie.operations.views.view import View


class ChangeSummary(View):
    """What a branch changes."""

    count: int
    """How many files."""
    files: list[str]
    """The first 50 of them."""
    insertions: int
    deletions: int

    @classmethod
    def of(cls, change: Change) -> "ChangeSummary":
        """Show a change."""
        return cls(
            count=change.count, files=list(change.files), insertions=change.insertions, deletions=change.deletions
        )


class DiffView(View):
    """The change of a session's branch."""

    branch: str
    base: str
    summary: ChangeSummary
    text: str
    """The difference; its middle is left out where it is long."""
    truncated: bool


class AppliedView(View):
    """The change is in the files of the project."""

    applied: bool
    summary: ChangeSummary | None = None
    replayed: bool | None = None


class DroppedView(View):
    """The worktree and its branch are gone."""

    dropped: bool
    replayed: bool | None = None
