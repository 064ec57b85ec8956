"""Commands run in the project folder, see no secrets, and leave nothing behind."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from coterie.core.ids import SessionId, TurnId
from coterie.ports.tool import Invocation, Tool, ToolOutput
from coterie.runtime.tools.catalogue import native_tools
from coterie.runtime.tools.process import OUTPUT_BYTES_MAX

ENVIRONMENT = {
    "PATH": os.defpath,
    "HOME": "/home/someone",
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "OPENAI_API_KEY": "sk-secret",
    "COTERIE_TOKEN": "sk-more",
    "LD_PRELOAD": "",
    "BASH_ENV": "/nowhere",
}


@pytest.fixture
def bash() -> Tool:
    return native_tools(closed=(), environment=ENVIRONMENT)[-1]


async def run(bash: Tool, folder: Path, command: str, **more: object) -> ToolOutput:
    arguments: Mapping[str, object] = {"command": command, **more}
    return await bash.run(Invocation("inv_1", SessionId("ses_1"), TurnId("turn_1"), "call_1", str(folder)), arguments)


def real(folder: Path) -> Path:
    return folder.resolve()


async def test_output_errors_and_status_come_in_order(tmp_path: Path, bash: Tool) -> None:
    """A model reads them as a person reads a terminal."""
    output = await run(bash, tmp_path, "pwd; echo ä; echo oops >&2; echo end; exit 3")
    assert output == ToolOutput(f"{real(tmp_path)}\nä\noops\nend\nexit status 3", error=True)
    assert await run(bash, tmp_path, "printf x") == ToolOutput("x\nexit status 0")
    assert await run(bash, tmp_path, "true") == ToolOutput("exit status 0")


@pytest.mark.parametrize("command", ["-x", "--version", "kill -9 $$"])
async def test_what_looks_like_an_option_or_dies_is_an_error(tmp_path: Path, bash: Tool, command: str) -> None:
    """The command is one argument, and a signal is told as one."""
    output = await run(bash, tmp_path, command)
    assert output.error
    assert output.text.endswith("killed by signal 9" if "kill" in command else "exit status 127")


async def test_a_command_reads_no_input(tmp_path: Path, bash: Tool) -> None:
    """Nobody could answer it."""
    assert (await run(bash, tmp_path, "cat")).text == "exit status 0"


async def test_secrets_are_not_visible(tmp_path: Path, bash: Tool) -> None:
    """What a command prints goes to a vendor's model."""
    output = await run(bash, tmp_path, "env")
    names = {line.partition("=")[0] for line in output.text.splitlines() if "=" in line}
    assert "sk-" not in output.text
    assert names <= {"PATH", "HOME", "LC_ALL", "LANG", "PWD", "OLDPWD", "SHLVL", "_"}
    assert {"PATH", "HOME", "LC_ALL"} <= names


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path, bash: Tool) -> None:
    """Stored text holds neither."""
    assert (await run(bash, tmp_path, r"printf 'a\xff\x00b\n'")).text == "a\ufffd\ufffdb\nexit status 0"


async def test_a_flood_is_kept_by_its_start_and_end(tmp_path: Path, bash: Tool) -> None:
    """A program may print more than the memory holds."""
    output = await run(bash, tmp_path, "echo first; yes 123456789 | head -n 2000000; echo last")
    assert output.text.startswith("first\n123456789\n")
    assert output.text.endswith("123456789\nlast\nexit status 0")
    assert " bytes are left out …\n" in output.text
    assert len(output.text) <= OUTPUT_BYTES_MAX + 100


async def test_time_out_kills_what_the_command_started(tmp_path: Path, bash: Tool) -> None:
    """The pipe ends only when the last process that holds it is gone."""
    os.mkfifo(tmp_path / "alive")
    command = "exec 3>alive; (sleep 1000; true) & echo before; sleep 1000"
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        gone = group.create_task(asyncio.to_thread((tmp_path / "alive").read_bytes))
        output = await run(bash, tmp_path, command, timeout_s=0.5)
    assert gone.result() == b""
    assert output.error
    assert output.text == ("before\nstopped: the time of 0.5 s was up; the command and all that it started were killed")


async def test_the_default_time_is_the_one_given(tmp_path: Path) -> None:
    """A host sets how long a command may hang."""
    bash = native_tools(closed=(), environment=ENVIRONMENT, bash_timeout_s=0.2)[-1]
    assert "0.2 s" in bash.spec.description
    assert "the time of 0.2 s was up" in (await run(bash, tmp_path, "sleep 1000")).text


async def test_cancelling_kills_what_the_command_started(tmp_path: Path, bash: Tool) -> None:
    """An interrupted turn must not go on working through a program that nobody waits for."""
    os.mkfifo(tmp_path / "alive")
    command = "exec 3>alive; (sleep 1000; true) & echo $! >&3; sleep 1000"
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run(bash, tmp_path, command))
        file = await asyncio.to_thread((tmp_path / "alive").open)
        with file:
            assert int(await asyncio.to_thread(file.readline)) > 0
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert await asyncio.to_thread(file.read) == ""


async def test_cancelling_at_once_leaves_nothing(tmp_path: Path, bash: Tool) -> None:
    """A process that has been started and is not known yet would run on for ever."""
    os.mkfifo(tmp_path / "alive")
    keeper = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(keeper, "rb") as file:
        for steps in range(30):
            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                task = group.create_task(run(bash, tmp_path, "exec 3>alive; sleep 1000 & sleep 1000"))
                await asyncio.wait([task], timeout=steps / 2_000)
                task.cancel()
        os.set_blocking(file.fileno(), True)
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(file.read) == b""


async def test_what_stays_in_the_background_ends_with_the_command(tmp_path: Path, bash: Tool) -> None:
    """Otherwise each call could leave a server that holds a port and the output."""
    os.mkfifo(tmp_path / "alive")
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        gone = group.create_task(asyncio.to_thread((tmp_path / "alive").read_bytes))
        output = await run(bash, tmp_path, "exec 3>alive; sleep 1000 & echo started")
    assert output.text == "started\nexit status 0"
    assert gone.result() == b""


async def test_what_a_command_prints_is_shown_as_it_comes(tmp_path: Path, bash: Tool) -> None:
    """A person who watches a build sees it hang; and a character that comes in two pieces is one."""
    for pipe in ("first", "second"):
        os.mkfifo(tmp_path / pipe)
    shown, came = list[str](), asyncio.Event()

    def show(text: str) -> None:
        if text:
            shown.append(text)
            came.set()

    invocation = Invocation("inv_1", SessionId("ses_1"), TurnId("turn_1"), "call_1", str(tmp_path), show)
    command = r"printf 'one \303'; read x < first; printf '\244'; read x < second; echo ' two'"
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(bash.run(invocation, {"command": command}))
        for pipe in ("first", "second"):
            await came.wait()
            came.clear()
            await asyncio.to_thread((tmp_path / pipe).write_text, "\n")
    assert running.result().text == "one ä two\nexit status 0"
    assert shown == ["one ", "ä", " two\n"]


async def test_a_command_that_is_too_long_is_answered(tmp_path: Path, bash: Tool) -> None:
    """The system has a bound on command lines."""
    output = await run(bash, tmp_path, "echo " + "x" * 3_000_000)
    assert output.error
    assert "Argument list too long" in output.text


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan"), "5", True, 1e9])
async def test_a_time_that_is_no_time_is_refused(tmp_path: Path, bash: Tool, timeout_s: object) -> None:
    """The command has not run then."""
    output = await run(bash, tmp_path, "touch ran", timeout_s=timeout_s)
    assert output.error
    assert "timeout_s: " in output.text
    assert not (tmp_path / "ran").exists()
