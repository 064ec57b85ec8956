"""What a person sees of the worktree of a session."""

from tests.interfaces.cli.conftest import Live

from coterie.app.open_session import OpenSession, open_session
from coterie.core.permission import StoredMode
from coterie.testing.workspaces import DIFF, PlainWorkspaces


async def worker(live: Live) -> str:
    """A session with a worktree; returns its branch."""
    origin = await PlainWorkspaces().origin("/project")
    opening = OpenSession("worker", "/project", None, StoredMode.INHERIT, origin=origin)
    session, _ = await live.host.parts.store.run(open_session, opening)
    assert session.worktree is not None
    return session.worktree.branch


async def test_a_change_is_shown_applied_and_dropped(live: Live) -> None:
    """The text alone goes to the output, so that it can be piped into other programs."""
    branch, line = await worker(live), live.line
    shown = await line.beside("session", "diff", "worker")
    assert (shown.exit_code, shown.stdout) == (0, DIFF)
    assert f"{branch}: 1 file, 1 line added, 1 removed." in shown.stderr
    assert (await line.json("session", "diff", "worker"))["text"] == DIFF

    assert (await line.beside("session", "apply", "worker")).stdout == "Applied: 1 file, 1 line added, 1 removed.\n"
    assert (await line.json("session", "apply", "worker"))["applied"]
    assert (await line.beside("session", "drop", "worker")).stdout == "Dropped the worktree and its branch.\n"
    assert (await line.json("session", "drop", "worker", "--force"))["dropped"]


async def test_a_session_without_a_worktree_says_where_it_works(live: Live) -> None:
    """Whoever asks for its change looks in the wrong place."""
    await live.host.new_session("lead")
    found = await live.line.beside("session", "diff", "lead")
    assert found.exit_code == 1
    assert found.stderr.startswith("CONFLICT: The session 'lead' works in the folder")
