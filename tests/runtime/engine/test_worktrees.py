"""Sessions that edit on branches of their own: real git, and nothing of the project changes until a person says so."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.runtime.engine.conftest import SetStage, Stage

from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError, RefusedError
from coterie.core.turn.states import TurnState

EDITS: Final = """
  - when: {model: worker, requests_since_user: 0}
    reply: {calls: [{tool: write, arguments: {path: "a file ä.txt", content: "worker\\n"}}]}
  - when: {model: other, requests_since_user: 0}
    reply: {calls: [{tool: write, arguments: {path: "a file ä.txt", content: "other\\n"}}]}
  - when: {requests_since_user: 1}
    reply: {text: "done"}
  - when: {model: lead}
    reply: {text: "heard"}
"""
FILE: Final = "a file ä.txt"


def git(folder: Path, *words: str) -> str:
    """Run git as the person who owns the project."""
    environment = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C.UTF-8"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "Person", f"GIT_{role}_EMAIL": "person@example.org"}
    line = ["git", "-c", "core.quotePath=false", *words]
    return subprocess.run(line, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def make_project(folder: Path) -> None:
    """Put a project with one commit into *folder*."""
    git(folder, "init", "--quiet")
    (folder / FILE).write_text("first\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")


def is_there(folder: Path) -> bool:
    """Whether a folder exists."""
    return folder.exists()


async def spawn(host: Stage, lead: str, model: str = "worker", **params: Any) -> dict[str, Any]:
    """Spawn a session as a person who speaks for *lead*."""
    return await host.ask("collaboration.spawn", asSessionId=lead, content="edit", model=model, title=model, **params)


async def test_two_workers_edit_one_file_at_once_and_the_second_apply_names_the_conflict(stage: SetStage) -> None:
    """Work of agents side by side must reach the project only by a person's word, and never half."""
    host = await stage(EDITS)
    make_project(host.project)
    (host.project / "own.txt").write_text("not committed\n", encoding="utf-8")
    lead = await host.session("lead", mode="auto", folder=True)
    receipts = [await spawn(host, lead, model) for model in ("worker", "other")]
    await host.settled(*(one["messageId"] for one in receipts))
    first, second = (one["sessionId"] for one in receipts)

    assert [one["uncommittedCarried"] for one in receipts] == [False, False]
    assert (host.project / FILE).read_text(encoding="utf-8") == "first\n"
    told = json.loads((await host.completion(receipts[0]["messageId"]))["content"])["workspace"]
    shown = (await host.ask("session.get", sessionId=first))["session"]
    assert (told["branch"], told["base"]) == (shown["branch"], shown["base"])
    assert (told["files"], told["insertions"], told["deletions"]) == ([FILE], 1, 1)
    assert git(host.project, "log", "-1", "--format=%an", shown["branch"]) == "Coterie session worker\n"
    assert "+worker" in (await host.ask("session.diff", sessionId=first))["text"]

    applied = await host.ask("session.apply", sessionId=first, idempotencyKey="a")
    assert applied["summary"]["files"] == [FILE]
    assert (await host.ask("session.apply", sessionId=first, idempotencyKey="a"))["replayed"]
    with pytest.raises(RefusedError, match=FILE) as refused:
        await host.ask("session.apply", sessionId=second)
    assert refused.value.code is Code.CONFLICT
    assert (host.project / FILE).read_text(encoding="utf-8") == "worker\n"
    assert (host.project / "own.txt").read_text(encoding="utf-8") == "not committed\n"
    assert git(host.project, "log", "--format=%s") == "first\n"


async def test_a_worktree_is_asked_for_in_vain_where_there_is_no_git(stage: SetStage) -> None:
    """A worker that edits the shared folder although a worktree was asked for would break a promise silently."""
    host = await stage(EDITS)
    lead = await host.session("lead", mode="auto", folder=True)
    with pytest.raises(InvalidArgumentError, match="worktree"):
        await spawn(host, lead, workspace="worktree")
    shared = await spawn(host, lead)
    await host.settled(shared["messageId"])
    assert "uncommittedCarried" not in shared
    assert (host.project / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_a_session_that_has_to_ask_shares_the_folder_unless_it_is_told_otherwise(stage: SetStage) -> None:
    """The default follows the permission mode, and a word of the caller goes before it."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    shared = await spawn(host, lead, workspace="shared")
    await host.settled(shared["messageId"])
    assert (await host.ask("session.get", sessionId=shared["sessionId"]))["session"]["workspace"] == "shared"
    assert (host.project / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_a_worktree_that_was_removed_by_hand_comes_back_from_its_branch(stage: SetStage) -> None:
    """What was committed is not lost with a folder."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.settled(receipt["messageId"])
    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    folder = Path(session["workspacePath"])
    shutil.rmtree(folder)

    await host.prompt(session["id"], "again")

    assert (await host.ended(session["id"])).state is TurnState.COMPLETED
    assert (folder / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_drop_spares_what_is_not_committed_until_it_is_forced(stage: SetStage) -> None:
    """A person's work in a worktree must not go by mistake."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.settled(receipt["messageId"])
    await host.idle(receipt["sessionId"])
    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    folder = Path(session["workspacePath"])
    (folder / "mine.txt").write_text("mine", encoding="utf-8")

    with pytest.raises(RefusedError, match="not committed") as refused:
        await host.ask("session.drop", sessionId=session["id"])
    assert (refused.value.code, is_there(folder)) == (Code.CONFLICT, True)
    await host.ask("session.drop", sessionId=session["id"], force=True)
    assert not is_there(folder)
    assert session["branch"] not in git(host.project, "branch")


async def test_a_worktree_that_a_crash_left_half_made_is_made_anew(stage: SetStage) -> None:
    """The row is written before git runs, so every stop in between must heal at the next turn."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.settled(receipt["messageId"])
    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    (host.project / ".git" / "worktrees" / session["id"] / "locked").write_text("initializing", encoding="utf-8")
    (Path(session["workspacePath"]) / FILE).unlink()
    await host.restart()

    await host.prompt(session["id"], "again")

    assert (await host.ended(session["id"])).state is TurnState.COMPLETED
    assert (Path(session["workspacePath"]) / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_a_turn_fails_with_the_words_of_git_where_it_refuses(stage: SetStage) -> None:
    """A worker that cannot have its worktree must not edit somewhere else."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.settled(receipt["messageId"])
    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    shutil.move(host.project / ".git", host.project / "moved")

    await host.prompt(session["id"], "again")

    turn = await host.ended(session["id"])
    assert (turn.state, turn.error_code) == (TurnState.FAILED, Code.WORKER_NOT_READY.value)
    assert "git rev-parse was refused" in (turn.error or "")
    assert (host.project / FILE).read_text(encoding="utf-8") == "first\n"


async def test_a_session_of_a_linked_subfolder_works_in_the_same_subfolder(stage: SetStage, tmp_path: Path) -> None:
    """A project is often a part of its repository, and its path is often a link."""
    host = await stage(EDITS)
    (host.project / "part").mkdir()
    (host.project / "part" / "kept.txt").write_text("kept\n", encoding="utf-8")
    make_project(host.project)
    link = tmp_path / "link"
    link.symlink_to(host.project / "part")
    made = await host.ask("session.create", title="lead", model="lead", permissionMode="auto", projectPath=str(link))
    receipt = await spawn(host, made["session"]["id"])
    await host.settled(receipt["messageId"])

    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    assert session["workspacePath"].endswith(f"/{session['id']}/part")
    assert (await host.ask("session.diff", sessionId=session["id"]))["summary"]["files"] == [f"part/{FILE}"]
    await host.ask("session.apply", sessionId=session["id"])
    assert (host.project / "part" / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_without_git_sessions_share_the_folder(stage: SetStage) -> None:
    """A missing program must not keep work from being given away."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    host.settings = replace(host.settings, shell_environment={"PATH": str(host.project)})
    await host.restart()
    with pytest.raises(InvalidArgumentError, match="git is not installed"):
        await spawn(host, lead, workspace="worktree")
    shared = await spawn(host, lead)
    await host.settled(shared["messageId"])
    assert (await host.ask("session.get", sessionId=shared["sessionId"]))["session"]["workspace"] == "shared"
    assert (host.project / FILE).read_text(encoding="utf-8") == "worker\n"


async def test_who_has_to_ask_for_every_edit_shares_the_folder(stage: SetStage) -> None:
    """A person sees each of its changes, so they happen where the person works."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="ask", folder=True)
    receipt = await spawn(host, lead)
    assert "uncommittedCarried" not in receipt
    assert (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]["workspace"] == "shared"


SLOW: Final = """
  - when: {model: worker, requests_since_user: 0}
    reply: {calls: [{tool: write, arguments: {path: new.txt, content: "half\\n"}}]}
  - when: {model: worker}
    reply: {hang: true}
"""


async def worker_in_mid_turn(host: Stage) -> dict[str, Any]:
    """A session that has written a file, and waits for its model."""
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.until(lambda server: len(server.requests) == 2)
    session: dict[str, Any] = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    return session


async def test_what_a_turn_left_that_ended_with_its_host_is_shown_and_applied(stage: SetStage) -> None:
    """Nobody was there to commit it at its end."""
    host = await stage(SLOW)
    session = await worker_in_mid_turn(host)
    assert not (await host.ask("session.diff", sessionId=session["id"]))["text"]
    await host.restart()

    assert "+half" in (await host.ask("session.diff", sessionId=session["id"]))["text"]
    await host.ask("session.apply", sessionId=session["id"])
    assert (host.project / "new.txt").read_text(encoding="utf-8") == "half\n"


async def test_a_worktree_is_not_dropped_while_a_turn_runs_in_it(stage: SetStage) -> None:
    """Not even by force: the turn would go on in nothing."""
    host = await stage(SLOW)
    session = await worker_in_mid_turn(host)
    with pytest.raises(RefusedError, match="interrupt it") as refused:
        await host.ask("session.drop", sessionId=session["id"], force=True)
    assert refused.value.code is Code.CONFLICT
    assert is_there(Path(session["workspacePath"]))


@pytest.mark.parametrize("clean", [True, False])
async def test_a_deleted_session_leaves_its_branch_and_what_is_not_committed(stage: SetStage, *, clean: bool) -> None:
    """Work is never lost with a conversation."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.settled(receipt["messageId"])
    await host.idle(receipt["sessionId"])
    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    folder = Path(session["workspacePath"])
    if not clean:
        (folder / "mine.txt").write_text("mine", encoding="utf-8")

    await host.ask("session.delete", sessionId=session["id"])

    assert is_there(folder) is not clean
    assert session["branch"] in git(host.project, "branch", "--all")


SHELL: Final = """
  - when: {model: worker, requests_since_user: 0}
    reply: {calls: [{tool: bash, arguments: {command: "echo work > made.txt; git status --porcelain; cat %s/token"}}]}
  - when: {model: worker}
    reply: {text: "${tool}"}
  - when: {model: lead}
    reply: {text: "heard"}
"""


async def test_commands_work_in_a_worktree_and_reach_nothing_else_of_the_host(stage: SetStage, tmp_path: Path) -> None:
    """The worktree lies in the data directory, which is closed to commands."""
    (tmp_path / "data-0").mkdir(mode=0o700)
    (tmp_path / "data-0" / "token").write_text("the-secret", encoding="utf-8")
    host = await stage(SHELL % (tmp_path / "data-0"))
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    (told,) = await host.settled(receipt["messageId"])

    assert "?? made.txt" in told["result"]
    assert ("the-secret" in told["result"]) is not host.engine.operations.host.confined
    assert (await host.ask("session.diff", sessionId=receipt["sessionId"]))["summary"]["files"] == ["made.txt"]


async def test_a_difference_of_many_megabytes_is_shown_by_its_ends(stage: SetStage) -> None:
    """And apply takes all of it."""
    host = await stage(EDITS)
    make_project(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    receipt = await spawn(host, lead)
    await host.settled(receipt["messageId"])
    session = (await host.ask("session.get", sessionId=receipt["sessionId"]))["session"]
    (Path(session["workspacePath"]) / "big.txt").write_text("0123456789\n" * 900_000, encoding="utf-8")

    shown = await host.ask("session.diff", sessionId=session["id"])
    assert shown["truncated"]
    assert len(shown["text"]) < 101_000
    assert f"git diff {session['base']} refs/heads/{session['branch']}" in shown["text"]
    await host.ask("session.apply", sessionId=session["id"])
    assert (host.project / "big.txt").stat().st_size == 9_900_000
