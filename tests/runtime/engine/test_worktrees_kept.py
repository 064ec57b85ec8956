"""Worktrees in the hands of people, programs and crashes: nothing that was made in one is lost, nothing gets out."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.runtime.engine.conftest import SetStage, Stage
from tests.runtime.engine.test_worktrees import EDITS, FILE, git, is_there, make_project, spawn

from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.ids import SessionId
from coterie.core.session.worktree import worktree_for
from coterie.core.turn.states import TurnState
from coterie.runtime.tools.shell import can_confine
from coterie.runtime.worktrees import Worktrees

Worked = Callable[[], Awaitable[tuple[Stage, dict[str, Any], Path]]]
LINES: Final = "".join(f"{number}\n" for number in range(20))


@pytest.fixture
def worked(stage: SetStage) -> Worked:
    """A host with a session that has written `FILE` in its worktree, and that worktree."""

    async def make() -> tuple[Stage, dict[str, Any], Path]:
        host = await stage(EDITS)
        (host.project / "lines.txt").write_text(LINES, encoding="utf-8")
        make_project(host.project)
        lead = await host.session("lead", mode="auto", folder=True)
        receipt = await spawn(host, lead)
        await host.settled(receipt["messageId"])
        await host.idle(receipt["sessionId"])
        session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
        return host, session, Path(session["workspacePath"])

    return make


async def test_a_filter_that_git_runs_for_the_host_is_kept_out_of_its_folder(worked: Worked, tmp_path: Path) -> None:
    """A repository names programs in its configuration, where sessions may write, and git runs them by itself."""
    host, session, tree = await worked()
    secret, stolen = host.settings.data_dir / "token", tmp_path / "project" / "stolen"
    secret.write_text("the-secret", encoding="utf-8")
    git(host.project, "config", "filter.x.clean", f"cat {secret} > {stolen}; cat")
    (tree / ".gitattributes").write_text("* filter=x\n", encoding="utf-8")

    assert ".gitattributes" in (await host.ask("session.diff", sessionId=session["id"]))["summary"]["files"]
    assert ("the-secret" in stolen.read_text(encoding="utf-8")) is not host.engine.operations.host.confined


async def test_work_that_follows_what_was_applied_is_applied_alone(worked: Worked) -> None:
    """A person takes over a first part, asks for more, and takes that over too, also after changes of their own."""
    host, session, tree = await worked()
    await host.ask("session.apply", sessionId=session["id"])
    for name, mine in (("second", "worker\n"), ("third", "worker, and I\n")):
        (host.project / FILE).write_text(mine, encoding="utf-8")
        (tree / name).write_text(name, encoding="utf-8")
        await host.ask("session.apply", sessionId=session["id"])
        assert (host.project / name).read_text(encoding="utf-8") == name
        assert (host.project / FILE).read_text(encoding="utf-8") == mine
    git(host.project, "checkout", "--quiet", ".")
    git(host.project, "clean", "--quiet", "--force")
    await host.ask("session.apply", sessionId=session["id"])
    assert (host.project / FILE).read_text(encoding="utf-8") == "worker\n"
    assert is_there(host.project / "third")


async def test_what_was_undone_in_a_worktree_is_undone_by_applying_it(worked: Worked) -> None:
    """A session that takes back a part of its change must be able to take it back in the project."""
    host, session, tree = await worked()
    await host.ask("session.apply", sessionId=session["id"])
    (tree / FILE).write_text("first\n", encoding="utf-8")
    await host.ask("session.apply", sessionId=session["id"])
    assert (host.project / FILE).read_text(encoding="utf-8") == "first\n"


async def test_how_a_person_likes_to_see_changes_does_not_matter_to_applying_them(worked: Worked) -> None:
    """A patch without lines around it would fit nowhere."""
    host, session, tree = await worked()
    for name, value in (("context", "0"), ("noprefix", "true"), ("submodule", "log"), ("relative", "true")):
        git(host.project, "config", f"diff.{name}", value)
    (tree / "lines.txt").write_text(LINES.replace("10\n", "ten\n"), encoding="utf-8")
    await host.ask("session.apply", sessionId=session["id"])
    assert "ten\n" in (host.project / "lines.txt").read_text(encoding="utf-8")


async def test_files_that_git_is_told_not_to_mention_keep_a_worktree_from_being_dropped(worked: Worked) -> None:
    """`status.showUntrackedFiles` is a taste, and no leave to delete what nobody has seen."""
    host, session, tree = await worked()
    git(host.project, "config", "status.showUntrackedFiles", "no")
    (tree / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RefusedError, match="not committed"):
        await host.ask("session.drop", sessionId=session["id"])
    assert is_there(tree / "mine.txt")


@pytest.mark.parametrize("by", ["nobody", "the host", "the session"])
async def test_a_repository_in_a_worktree_hinders_nothing_and_is_not_dropped(worked: Worked, by: str) -> None:
    """Programs begin repositories for new projects; a commit can name one, but does not hold its files."""
    host, session, tree = await worked()
    inner = tree / "inner"
    inner.mkdir()
    (inner / "only here").write_text("x", encoding="utf-8")
    (tree / "beside.txt").write_text("x", encoding="utf-8")
    git(inner, "init", "--quiet")
    if by != "nobody":
        git(inner, "add", ".")
        git(inner, "commit", "--quiet", "-m", "inner")
    if by == "the session":
        git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "-m", "all")

    await host.ask("session.apply", sessionId=session["id"])
    assert is_there(host.project / "beside.txt")
    with pytest.raises(RefusedError, match="not committed"):
        await host.ask("session.drop", sessionId=session["id"])
    assert is_there(inner / "only here")
    await host.ask("session.drop", sessionId=session["id"], force=True)
    assert not is_there(tree)


@pytest.mark.parametrize("lock", ["worktrees/{id}/index.lock", "worktrees/{id}/HEAD.lock", "refs/heads/{branch}.lock"])
async def test_a_lock_of_a_git_that_was_killed_holds_nothing_up(worked: Worked, lock: str) -> None:
    """Commands are stopped at any moment, and git never takes back the lock of a dead one."""
    host, session, tree = await worked()
    (host.project / ".git" / lock.format(**session)).touch()
    (tree / "more.txt").write_text("more", encoding="utf-8")
    assert "more.txt" in (await host.ask("session.diff", sessionId=session["id"]))["summary"]["files"]


async def test_a_worktree_that_was_half_removed_is_not_taken_for_work(
    worked: Worked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the missing files would become a change, and applying it would remove them from the project."""
    host, session, tree = await worked()

    def stop(folder: Path) -> None:
        (folder / FILE).unlink()
        raise OSError(5, "stopped")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", stop)
        with pytest.raises(RefusedError, match="could not be removed: stopped") as refused:
            await host.ask("session.drop", sessionId=session["id"])
    assert (refused.value.code, is_there(tree / FILE)) == (Code.WORKER_NOT_READY, False)

    assert "-first" in (await host.ask("session.diff", sessionId=session["id"]))["text"]
    assert "+worker" in (await host.ask("session.diff", sessionId=session["id"]))["text"]
    await host.prompt(session["id"], "again")
    assert (await host.ended(session["id"])).state is TurnState.COMPLETED
    assert (tree / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_folders_that_are_read_only_are_dropped(worked: Worked) -> None:
    """Package caches are made so."""
    host, session, tree = await worked()
    (tree / "cache").mkdir()
    (tree / "cache" / "package").touch()
    (tree / "cache").chmod(0o500)
    await host.ask("session.drop", sessionId=session["id"], force=True)
    assert not is_there(tree)


async def test_a_worktree_without_its_repository_goes_only_by_force(worked: Worked) -> None:
    """It may be all that is left, and yet a person must be able to be rid of it."""
    host, session, tree = await worked()
    shutil.rmtree(host.project)
    with pytest.raises(RefusedError):
        await host.ask("session.drop", sessionId=session["id"])
    assert is_there(tree / FILE)
    await host.ask("session.drop", sessionId=session["id"], force=True)
    assert not is_there(tree)


async def test_who_stops_waiting_for_git_lets_nobody_else_at_the_repository(tmp_path: Path) -> None:
    """A thread goes on when its caller is cancelled, so the lock has to cover all of it."""
    for name in ("data", "project", "programs"):
        (tmp_path / name).mkdir()
    make_project(tmp_path / "project")
    gate, program = tmp_path / "gate", tmp_path / "programs" / "git"
    program.write_text(f'#!/bin/sh\n[ -p {gate} ] && cat {gate}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.defpath}"
    trees = Worktrees(tmp_path / "data", {"PATH": path}, confined=False)
    origin = await trees.origin(str(tmp_path / "project"))
    assert origin is not None
    os.mkfifo(gate)

    preparing = asyncio.ensure_future(trees.prepare(worktree_for(origin, SessionId("ses_1"))))
    # Open when git is there to read it.
    file = await asyncio.to_thread(gate.open, "w")
    gate.unlink()
    preparing.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not preparing.done()
    file.close()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert is_there(tmp_path / "data" / "worktrees" / "ses_1" / FILE)


async def _applied(folder: Path, project: Path) -> str:
    """What applying a new file says, for a project and a data directory in *folder*; its branch is dropped again."""
    trees = Worktrees(folder / "data", {"PATH": os.defpath}, confined=can_confine())
    origin = await trees.origin(str(project))
    if origin is None:
        return "no worktree"
    tree = worktree_for(origin, SessionId("ses_0123456789ab"))
    await trees.prepare(tree)
    (Path(tree.path) / "new.txt").write_text("new", encoding="utf-8")
    await trees.record(tree, "title")
    await trees.apply(tree)
    branch = git(project, "branch", "--list", "coterie*").strip(" +\n")
    await trees.drop(tree, force=False, branch=True)
    return f"{branch}: {(project / 'new.txt').read_text(encoding='utf-8')}"


async def test_a_change_is_applied_to_a_project_that_the_data_directory_lies_in(tmp_path: Path) -> None:
    """What is held can make no file there, so git does it alone, and runs no filter."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "token").write_text("the-secret", encoding="utf-8")
    (tmp_path / "part").mkdir()
    (tmp_path / ".gitattributes").write_text("* filter=x\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("data\n", encoding="utf-8")
    make_project(tmp_path)
    git(tmp_path, "config", "filter.x.smudge", f"cat {tmp_path}/data/token >> {tmp_path}/part/stolen; cat")
    assert await _applied(tmp_path, tmp_path) == "coterie/0123456789ab: new"
    stolen = tmp_path / "part" / "stolen"
    assert not can_confine() or "the-secret" not in stolen.read_text(encoding="utf-8")


async def test_a_branch_with_the_name_of_ours_leaves_room_for_them(tmp_path: Path) -> None:
    """Each spawned session of such a project would fail."""
    (tmp_path / "data").mkdir()
    (tmp_path / "project").mkdir()
    make_project(tmp_path / "project")
    git(tmp_path / "project", "branch", "coterie")
    assert "coterie-0123456789ab: new" in await _applied(tmp_path, tmp_path / "project")


async def test_a_project_whose_name_has_a_line_end_has_no_worktrees(tmp_path: Path) -> None:
    """Its sessions share the folder, instead of failing in one of another name."""
    (tmp_path / "data").mkdir()
    (tmp_path / "one\ntwo").mkdir()
    make_project(tmp_path / "one\ntwo")
    assert await _applied(tmp_path, tmp_path / "one\ntwo") == "no worktree"
