"""A session does a piece of work from its prompt to its report, with real tests, and asks where it has to."""

import io
import keyword
import re
import tokenize
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from tests.host.program import Seat, scripted
from tests.host.projects import CLOCK, REPAIR, SHOP, Project, commit, git, passes, worker_seat

PROJECTS: Final = {"shop": SHOP, "clock": CLOCK}
ASKS: Final = {"auto": [], "accept-edits": ["bash", "bash"], "ask": ["bash", "edit", "bash"]}
ENDS: Final = ("Repaired", "I could not")


@pytest.fixture(scope="module")
def seat(tmp_path_factory: pytest.TempPathFactory) -> Generator[Seat]:
    """A person with a host whose model repairs projects that it does not know."""
    with scripted(REPAIR.read_text("utf-8")) as models:
        seat = worker_seat(tmp_path_factory.mktemp("work") / "home", models)
        with seat.host(seat.data):
            yield seat


def words_of(project: Project) -> set[str]:
    """The names and numbers of a project."""
    found = set(re.findall(r"\w+", " ".join(project.files))) - {"py"}
    for text in (*project.files.values(), project.right):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in {tokenize.NAME, tokenize.NUMBER} and not keyword.iskeyword(token.string):
                found.add(token.string)
    return found


@pytest.mark.parametrize("name", PROJECTS)
def test_the_script_knows_nothing_of_a_project(name: str) -> None:
    """Else it would be a recording, and show nothing about an agent that has to look."""
    known = words_of(PROJECTS[name])
    assert len(known) > 8
    assert known.isdisjoint(re.findall(r"\w+", REPAIR.read_text("utf-8")))


@pytest.mark.parametrize("mode", ASKS)
@pytest.mark.parametrize("name", PROJECTS)
def test_a_failing_test_is_found_repaired_run_again_and_reported(
    seat: Seat, tmp_path: Path, name: str, mode: str
) -> None:
    """The mode decides what a person is asked, and nothing happens before they have said yes."""
    project, asked = PROJECTS[name], list[str]()
    folder = project.make(tmp_path / name)
    created = seat.run("session", "new", "--project", folder, "--mode", mode, "--json").json
    with seat.start("prompt", created["session"]["id"], "Repair the failing test.", "--wait") as prompt:
        while not (line := prompt.line()).startswith(ENDS):
            if line.startswith("req_"):
                if f": edit {project.path} " in line:
                    assert (folder / project.path).read_text("utf-8") == project.files[project.path]
                asked.append(seat.run("approve", line.split()[0], "--json").json["tool"])
    assert line == f"Repaired {project.path}: {project.tests} passed."
    assert asked == ASKS[mode]
    assert (folder / project.path).read_text("utf-8") == project.right
    assert passes(folder)


def repaired_by(seat: Seat, folder: Path, worker: str) -> str:
    """Let a lead give the repair of a committed project to a new *worker*; returns what it says in the end."""
    commit(folder, "first")
    words = ("session", "new", "--title", f"lead of {worker}", "--project", folder, "--mode", "auto", "--json")
    lead = seat.run(*words).json["session"]["id"]
    return seat.run("prompt", lead, f"Let {worker} repair the failing test.", "--wait").out


def test_what_a_worker_has_repaired_on_its_branch_is_seen_and_then_applied(seat: Seat, tmp_path: Path) -> None:
    """The lead hears of it, the person reads the change and takes it; before that their files are as they were."""
    folder = SHOP.make(tmp_path / "shop")
    assert repaired_by(seat, folder, "mender") == f"I am told: Repaired {SHOP.path}: 1 passed.\n"
    assert (folder / SHOP.path).read_text("utf-8") == SHOP.files[SHOP.path]

    shown = seat.run("session", "diff", "mender")
    assert "-    return euros * CENTS - cents\n+    return euros * CENTS + cents\n" in shown.out
    assert git(folder, "status", "--porcelain") == ""
    assert seat.run("session", "apply", "mender").out == "Applied: 1 file, 1 line added, 1 removed.\n"
    assert git(folder, "status", "--porcelain") == f" M {SHOP.path}\n"
    assert passes(folder)


def test_what_a_worker_has_repaired_is_dropped_with_its_branch(seat: Seat, tmp_path: Path) -> None:
    """The project is as if nobody had worked on it."""
    folder = CLOCK.make(tmp_path / "clock")
    assert repaired_by(seat, folder, "other") == f"I am told: Repaired {CLOCK.path}: 2 passed.\n"
    worktree = Path(seat.run("session", "show", "other", "--json").json["session"]["workspacePath"])
    assert (worktree / CLOCK.path).read_text("utf-8") == CLOCK.right
    assert seat.run("session", "drop", "other").out == "Dropped the worktree and its branch.\n"
    assert not worktree.exists()
    assert git(folder, "branch", "--list", "coterie/*") == ""
    assert len(git(folder, "worktree", "list").splitlines()) == 1
    assert git(folder, "status", "--porcelain") == ""
    assert (folder / CLOCK.path).read_text("utf-8") == CLOCK.files[CLOCK.path]
