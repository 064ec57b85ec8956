"""Where worktrees are, what they are called, and who gets one."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.ids import SessionId
from coterie.core.permission import Mode
from coterie.core.session.worktree import (
    Change,
    Origin,
    Worktree,
    change_view,
    wants_worktree,
    worktree_for,
    worktree_of,
)

_TEXTS = st.text(max_size=20)


@given(st.builds(Worktree, _TEXTS, _TEXTS, _TEXTS, _TEXTS, _TEXTS))
def test_a_worktree_is_read_as_it_was_stored(worktree: Worktree) -> None:
    """Paths of people have all kinds of characters."""
    assert worktree_of(worktree.text()) == worktree


@pytest.mark.parametrize(("inner", "folder"), [("", "/trees/ses_1"), ("lib/a", "/trees/ses_1/lib/a")])
def test_a_session_works_at_the_same_place_of_its_own_copy(inner: str, folder: str) -> None:
    """A project may be a part of a repository."""
    found = worktree_for(Origin("/trees", "/code", inner, "base"), SessionId("ses_1"))
    assert (found.folder, found.repository, found.base) == (folder, "/code", "base")


def test_branches_of_sessions_of_one_moment_differ() -> None:
    """The beginning of an id tells the time, so a branch is named by its end."""
    one, other = (worktree_for(Origin("", "", "", ""), SessionId(f"ses_0123456789{end * 12}")) for end in "ab")
    assert (one.branch, other.branch) == ("coterie/aaaaaaaaaaaa", "coterie/bbbbbbbbbbbb")


@pytest.mark.parametrize(("asked", "mode"), list(product([None, "shared", "worktree"], Mode)))
def test_who_edits_without_a_person_gets_a_copy_unless_something_else_is_asked(asked: str | None, mode: Mode) -> None:
    """All nine cells."""
    edits = mode in (Mode.ACCEPT_EDITS, Mode.AUTO)
    assert wants_worktree(asked, mode) is (edits if asked is None else asked == "worktree")


def test_a_completion_tells_branch_base_and_what_has_changed() -> None:
    """Enough to ask for the rest."""
    worktree = Worktree("/p", "coterie/b", "base", "/code", "")
    assert change_view(worktree, Change(("a.txt",), 2, insertions=3, deletions=4)) == {
        "branch": "coterie/b",
        "base": "base",
        "filesChanged": 2,
        "files": ["a.txt"],
        "insertions": 3,
        "deletions": 4,
    }
