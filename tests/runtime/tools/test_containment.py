"""Tools stay in the project folder and out of what is closed, and answer whatever a model writes with text."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from coterie.core.ids import SessionId, TurnId
from coterie.core.permission import Risk
from coterie.ports.tool import Invocation, Tool, ToolOutput
from coterie.runtime.tools.catalogue import native_tools

ENVIRONMENT = {"PATH": os.defpath}
FITTING: Mapping[str, Mapping[str, object]] = {
    "read": {"path": "a.txt"},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "x"},
    "write": {"path": "a.txt", "content": "x"},
    "edit": {"path": "a.txt", "old": "a", "new": "b"},
    "bash": {"command": "true"},
}
WITH_PATH = ("read", "glob", "grep", "write", "edit")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "host-data").mkdir(parents=True)
    (folder / "host-data" / "ledger.db").write_text("secret")
    (folder / "a.txt").write_text("a\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def tools(project: Path) -> Mapping[str, Tool]:
    made = native_tools(closed=(project / "host-data",), environment=ENVIRONMENT)
    return {tool.spec.name: tool for tool in made}


def _invocation(workspace: Path | None) -> Invocation:
    where = None if workspace is None else str(workspace)
    return Invocation("inv_1", SessionId("ses_1"), TurnId("turn_1"), "call_1", where)


async def call(tool: Tool, workspace: Path | None, arguments: Mapping[str, object]) -> ToolOutput:
    return await tool.run(_invocation(workspace), arguments)


@pytest.mark.parametrize("name", WITH_PATH)
@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", "way-out/secret.txt", "link.txt", "/etc/passwd", "a/../../x"]
)
async def test_what_leads_outside_is_refused(project: Path, tools: Mapping[str, Tool], name: str, path: str) -> None:
    """Where a path really leads counts, not how it is written."""
    (project / "way-out").symlink_to(project.parent / "outside")
    (project / "link.txt").symlink_to(project.parent / "outside" / "secret.txt")
    output = await call(tools[name], project, {**FITTING[name], "path": path})
    assert output.error
    assert "outside the project folder" in output.text
    assert (project.parent / "outside" / "secret.txt").read_text() == "secret"
    assert sorted(entry.name for entry in project.parent.iterdir()) == ["outside", "project"]


@pytest.mark.parametrize("name", WITH_PATH)
@pytest.mark.parametrize("path", ["host-data", "host-data/ledger.db", "host-data/new/file", "door/ledger.db"])
async def test_a_closed_folder_inside_the_project_is_refused(
    project: Path, tools: Mapping[str, Tool], name: str, path: str
) -> None:
    """The host's own data must not be read or changed even where it lies in a project."""
    (project / "door").symlink_to(project / "host-data")
    output = await call(tools[name], project, {**FITTING[name], "path": path})
    assert output.error
    assert "closed to tools" in output.text
    assert [entry.name for entry in (project / "host-data").iterdir()] == ["ledger.db"]


async def test_searches_pass_over_closed_folders_and_links_that_lead_out(
    project: Path, tools: Mapping[str, Tool]
) -> None:
    """A search without a path must not show what a path could not name."""
    (project / "link.txt").symlink_to(project.parent / "outside" / "secret.txt")
    (project / "closed.txt").symlink_to(project / "host-data" / "ledger.db")
    (project / "same.txt").symlink_to("a.txt")
    assert (await call(tools["glob"], project, {"pattern": "**"})).text == "a.txt\t2\nsame.txt\t2"
    assert "No line matches" in (await call(tools["grep"], project, {"pattern": "secret"})).text


@pytest.mark.parametrize("name", list(FITTING))
async def test_a_project_in_a_closed_folder_is_refused(project: Path, tools: Mapping[str, Tool], name: str) -> None:
    """Commands start in the project folder, so it must not be the host's."""
    output = await call(tools[name], project / "host-data", FITTING[name])
    assert output.error
    assert "closed to tools" in output.text


@pytest.mark.parametrize("name", list(FITTING))
async def test_a_session_without_a_project_folder_is_told_so(tools: Mapping[str, Tool], name: str) -> None:
    """The model can then say it to the person instead of trying other paths."""
    output = await call(tools[name], None, FITTING[name])
    assert output.error
    assert "has no project folder" in output.text


@pytest.mark.parametrize("name", list(FITTING))
async def test_a_project_folder_that_is_gone_is_told(project: Path, tools: Mapping[str, Tool], name: str) -> None:
    """Folders are moved and removed while sessions live."""
    output = await call(tools[name], project / "gone", FITTING[name])
    assert output.error
    assert "does not exist" in output.text


@pytest.mark.parametrize("name", list(FITTING))
@pytest.mark.parametrize("oddity", [None, 7, ["a"], {"a": 1}, True, "a\0b", "\ud800", ""])
async def test_odd_arguments_are_answered_with_what_is_right(
    project: Path, tools: Mapping[str, Tool], name: str, oddity: object
) -> None:
    """A model writes anything; it must get a text that it can use, never a fault."""
    first = next(iter(FITTING[name]))
    output = await call(tools[name], project, {**FITTING[name], first: oddity})
    assert output.error
    assert f"This tool takes one object with: {first}" in output.text
    output.text.encode()


@pytest.mark.parametrize("name", list(FITTING))
async def test_missing_and_unknown_arguments_are_named(project: Path, tools: Mapping[str, Tool], name: str) -> None:
    """A misspelt name that is passed over would do something that nobody asked for."""
    first = next(iter(FITTING[name]))
    assert f"{first}: Field required" in (await call(tools[name], project, {})).text
    output = await call(tools[name], project, {**FITTING[name], "colour": 1})
    assert output.error
    assert "colour: Extra inputs are not permitted" in output.text
    assert (await call(tools[name], project, {**FITTING[name], "\ud800": 1})).error


@pytest.mark.parametrize("path", ["x" * 5_000, "loop", "a.txt/below", "~/x", "$HOME", "-"])
@pytest.mark.parametrize("name", WITH_PATH)
async def test_paths_that_the_system_refuses_are_answered(
    project: Path, tools: Mapping[str, Tool], name: str, path: str
) -> None:
    """Faults of the file system are for the model to read, too."""
    (project / "loop").symlink_to("loop")
    output = await call(tools[name], project, {**FITTING[name], "path": path})
    assert output.error or name == "write"
    assert output.text


@pytest.mark.parametrize("name", ["read", "grep", "edit"])
async def test_a_pipe_in_the_project_holds_nothing_up(project: Path, tools: Mapping[str, Tool], name: str) -> None:
    """To open a pipe without a writer blocks for ever."""
    os.mkfifo(project / "pipe")
    async with asyncio.timeout(5):
        output = await call(tools[name], project, {**FITTING[name], "path": "pipe"})
    assert output.error or name == "grep"


async def test_an_absolute_path_inside_the_project_is_fine(project: Path, tools: Mapping[str, Tool]) -> None:
    """Models often repeat the path that a command printed."""
    assert not (await call(tools["read"], project, {"path": str(project / "a.txt")})).error


async def test_a_project_folder_that_is_a_link_works(project: Path, tools: Mapping[str, Tool]) -> None:
    """Temporary folders are links on some systems."""
    alias = project.parent / "alias"
    alias.symlink_to(project)
    assert not (await call(tools["read"], alias, {"path": "a.txt"})).error
    assert not (await call(tools["read"], alias, {"path": str(alias / "a.txt")})).error


def test_each_tool_has_its_risk_and_a_schema_of_one_object(tools: Mapping[str, Tool]) -> None:
    """The gate and the model both judge by what a tool says of itself."""
    risks = {name: tool.risk({}) for name, tool in tools.items()}
    low = dict.fromkeys(("read", "glob", "grep"), Risk.LOW)
    assert risks == {**low, "write": Risk.EDIT, "edit": Risk.EDIT, "bash": Risk.HIGH}
    for name, tool in tools.items():
        assert tool.spec.parameters["type"] == "object"
        assert tool.spec.parameters["additionalProperties"] is False
        assert tool.spec.parameters["required"] == list(FITTING[name])
        assert tool.spec.description


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "inner/.git", ".GIT/config", "door/config"])
async def test_a_repository_is_not_edited_as_files(project: Path, tools: Mapping[str, Tool], path: str) -> None:
    """Git runs hooks, filters and aliases, so who may only edit could have a command run by whoever uses git next."""
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("a\n")
    (project / "door").symlink_to(".git")
    for name, given in (("write", {"content": "x"}), ("edit", {"old": "a", "new": "b"})):
        output = await call(tools[name], project, {"path": path, **given})
        assert output.error
        assert "belongs to git" in output.text
        told = await tools[name].about(_invocation(project), {"path": path, **given})
        assert isinstance(told, ToolOutput)
    assert [entry.name for entry in (project / ".git").iterdir()] == ["config"]
    assert (project / ".git" / "config").read_text() == "a\n"


async def test_what_only_looks_like_a_repository_is_edited(project: Path, tools: Mapping[str, Tool]) -> None:
    """Projects have files for git that hold no programs."""
    for path in (".gitignore", ".github/ci.yml", "a.git/x"):
        assert not (await call(tools["write"], project, {"path": path, "content": "x"})).error
