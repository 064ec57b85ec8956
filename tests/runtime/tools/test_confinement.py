"""Commands and what is closed: nothing reaches it where the machine can confine, and everything else is as ever."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from coterie.core.ids import SessionId, TurnId
from coterie.core.session.worktree import FOLDER
from coterie.ports.tool import Invocation, Tool, ToolOutput
from coterie.runtime.tools import _confined
from coterie.runtime.tools.catalogue import native_tools
from coterie.runtime.tools.shell import can_confine

confining = pytest.mark.skipif(not can_confine(), reason="the kernel has no Landlock of this age")
SECRETS = ("token", "coterie.db")
PYTHON = shlex.quote(sys.executable)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a door to the data directory beside it."""
    (tmp_path / "data").mkdir()
    for name in SECRETS:
        (tmp_path / "data" / name).write_text("the-secret")
    (tmp_path / "home" / ".cache").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "door").symlink_to("../data")
    for name in SECRETS:
        (tmp_path / "project" / f"my-{name}").symlink_to(tmp_path / "data" / name)
    return tmp_path / "project"


def bash_of(project: Path, *, confined: bool) -> Tool:
    """The tool of a host with its data beside *project*."""
    environment = {"PATH": os.defpath, "HOME": str(project.parent / "home")}
    return native_tools(closed=(project.parent / "data",), environment=environment, confined=confined)[-1]


async def run(bash: Tool, project: Path, command: str) -> ToolOutput:
    """Run a command in *project*."""
    invocation = Invocation("inv_1", SessionId("ses_1"), TurnId("turn_1"), "call_1", str(project))
    arguments: Mapping[str, object] = {"command": command}
    return await bash.run(invocation, arguments)


@confining
@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "path",
    [
        "{data}/{name}",
        "../data/{name}",
        "{data}/../data/{name}",
        "door/{name}",
        "my-{name}",
        "/proc/self/root{data}/{name}",
        "/proc/self/cwd/../data/{name}",
        "/proc/$PPID/root{data}/{name}",
        "/proc/1/root{data}/{name}",
    ],
)
async def test_a_confined_command_reads_nothing_of_the_host(project: Path, path: str, name: str) -> None:
    """The token is the person's whole authority, and the ledger holds what all sessions have said."""
    where = path.format(data=project.parent.resolve() / "data", name=name)
    output = await run(bash_of(project, confined=True), project, f"cat {where}")
    assert output.error
    assert "the-secret" not in output.text
    assert "Permission denied" in output.text


@confining
@pytest.mark.parametrize(
    "command",
    [
        "echo x > door/token",
        "echo x >> my-coterie.db",
        f"{PYTHON} -c 'import os; os.truncate(\"../data/token\", 0)'",
        "echo x > ../data/config.toml",
        "ln -s /tmp/x ../data/config.toml",
        "mkdir ../data/new",
        "rm -f door/token",
        "mv ../data/token ../data/other",
        "mv ../data ../elsewhere",
        "ln ../data/token token",
    ],
)
async def test_a_confined_command_changes_nothing_of_the_host(project: Path, command: str) -> None:
    """Case 166: a link in place of the settings would be as good as the token."""
    output = await run(bash_of(project, confined=True), project, command)
    assert output.error
    data = project.parent / "data"
    assert {path.name: path.read_text() for path in data.iterdir()} == dict.fromkeys(SECRETS, "the-secret")
    assert not (project / "token").exists()


@confining
async def test_what_a_confined_command_starts_is_confined_too(project: Path) -> None:
    """Else one more shell would be the way out."""
    command = "(setsid sh -c 'nohup cat door/token' < /dev/null & wait) | cat; mount -t tmpfs none ../data; umount /tmp"
    output = await run(bash_of(project, confined=True), project, command)
    assert "the-secret" not in output.text
    assert "Permission denied" in output.text


@confining
async def test_a_confined_command_does_not_see_the_variables_of_the_host(project: Path) -> None:
    """Keys of models stand in them; the kernel shows them to all processes of the same person."""
    command = f"cat /proc/$PPID/environ /proc/{os.getpid()}/environ; cat /proc/self/environ | wc -c"
    output = await run(bash_of(project, confined=True), project, command)
    *refused, own, status = output.text.splitlines()
    assert int(own) > 0
    assert status == "exit status 0"
    assert "PATH=" not in "".join(refused)
    assert all("Permission denied" in line for line in refused)


@confining
@pytest.mark.parametrize(
    "command",
    [
        "echo x > new && mkdir -p a/b && mv new a/b/ && cat a/b/new && rm -r a",
        "echo x > ~/.bashrc && mv ~/.bashrc ~/.cache/ && mkdir ~/work && ls ~",
        "ls / /etc .. > /dev/null && cat /etc/passwd > /dev/null && echo x | tee /dev/null",
        f"{PYTHON} -c 'import os; os.memfd_create(\"x\")' && cat <(echo x)",
        "printf 'cat $0' > script && chmod +x script && ./script && kill -0 $$",
    ],
)
async def test_everything_else_is_as_ever(project: Path, command: str) -> None:
    """Confinement that is in the way of work gets turned off."""
    output = await run(bash_of(project, confined=True), project, command)
    assert not output.error, output.text


@confining
@pytest.mark.parametrize(("inner", "top"), [("", ".."), ("part", "../..")])
async def test_a_command_in_a_worktree_has_all_of_it_and_nothing_else_of_the_host(
    project: Path, inner: str, top: str
) -> None:
    """A session that edits on a branch of its own runs tests there, and git, which looks up to the top."""
    worktrees = project.parent / "data" / FOLDER
    for name in ("mine", "other"):
        (worktrees / name / "part").mkdir(parents=True)
        (worktrees / name / "secret").write_text("the-secret")
    bash, folder = bash_of(project, confined=True), worktrees / "mine" / inner
    done = await run(bash, folder, f"cat {worktrees}/mine/secret && mkdir a && mv a b && echo x > b/new && cat b/new")
    assert (done.error, done.text) == (False, "the-secretx\nexit status 0")
    for command in (f"cat {top}/other/secret", f"cat {top}/../token", f"touch {top}/new", f"rm {top}/mine/../other/*"):
        refused = await run(bash, folder, command)
        assert "Permission denied" in refused.text
        assert "the-secret" not in refused.text


@confining
async def test_another_folder_in_the_place_of_the_closed_one_stops_commands(project: Path) -> None:
    """What is closed is a folder, and not its name: to close the new one would leave the old one open."""
    bash = bash_of(project, confined=True)
    (project.parent / "data").rename(project.parent / "moved")
    (project.parent / "data").mkdir()
    output = await run(bash, project, "touch ran; cat ../moved/token")
    assert output.error
    assert "The command was not run" in output.text
    assert not (project / "ran").exists()


@pytest.mark.parametrize("confined", [pytest.param(True, marks=confining), False])
async def test_the_tool_says_whether_it_is_confined(project: Path, *, confined: bool) -> None:
    """Who is promised a wall that is not there puts things behind it."""
    bash = bash_of(project, confined=confined)
    output = await run(bash, project, "cat door/token")
    assert ("the-secret" in output.text) is not confined
    assert ("unconfined" in bash.spec.description) is not confined


def test_what_lies_beside_the_line_is_all_but_the_line(tmp_path: Path) -> None:
    """The kernel only knows what is allowed, so all that is not closed has to be listed."""
    for name in ("a/data/x", "a/b", "c/other", "c/data/deep", "database"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to("data")
    (tmp_path / "a" / "file").touch()
    closed = frozenset(str(tmp_path / name) for name in ("a/data", "c/data"))
    found = {os.path.relpath(path, tmp_path) for path in _confined.beside(str(tmp_path), closed)}
    assert found == {"a/b", "a/file", "c/other", "database"}
    assert str(tmp_path) not in set(_confined.beside("/", closed))


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("1 0 8:1 / / rw - ext4 x x", {"/var/me/data"}),
        ("1 0 8:1 / / rw - ext4 x x\n2 1 8:1 /var/me /mnt rw - ext4 x x", {"/var/me/data", "/mnt/data"}),
        ("1 0 8:1 / / rw - ext4 x x\n2 1 8:1 /var/me/data /mnt rw - ext4 x x", {"/var/me/data", "/mnt"}),
        ("1 0 8:1 / / rw - ext4 x x\n2 1 8:1 /var/me/data/token /t rw - ext4 x x", {"/var/me/data", "/t"}),
        ("1 0 8:1 / / rw - ext4 x x\n2 1 8:1 /var/me/other /mnt rw - ext4 x x", {"/var/me/data"}),
        (
            "1 0 8:1 / / rw - ext4 x x\n2 1 8:2 / /var rw - ext4 x x\n3 1 8:2 / /m\\040 rw - ext4 x x",
            {"/var/me/data", "/m /me/data"},
        ),
        ("1 0 8:1 / /sys rw - ext4 x x\n2 1 8:1 /o/var /var rw - ext4 x x", {"/var/me/data", "/sys/o/var/me/data"}),
        (
            "1 0 8:1 / / rw - x x x\n2 1 8:2 / /var rw - x x x\n3 2 8:3 / /var rw - x x x\n4 1 8:3 / /b rw - x x x",
            {"/var/me/data", "/b/me/data"},
        ),
    ],
)
def test_a_folder_is_closed_wherever_its_file_system_is_mounted(mounts: str, expected: set[str]) -> None:
    """A second way to the same folder is no other folder."""
    assert set(_confined.places(("/var/me/data", 1, 2), mounts)) == expected


@confining
async def test_a_command_cannot_rewrite_what_confines_the_next_one(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host is mostly installed where its person, and so a command, may write."""
    installed = tmp_path / "home" / ".cache" / "confined.py"
    shutil.copy(_confined.__file__, installed)
    monkeypatch.setattr(_confined, "__file__", str(installed))
    bash = bash_of(project, confined=True)
    through = "import os, sys; os.execv(sys.argv[3], sys.argv[3:])"
    assert not (await run(bash, project, f"echo {shlex.quote(through)} > {installed}")).error
    output = await run(bash, project, "cat ../data/token")
    assert output.error
    assert "the-secret" not in output.text
