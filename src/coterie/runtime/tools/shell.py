"""The tool `bash`. Its environment holds no secret of the host, and where that can be its folder is closed to it."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from coterie.core.permission import Risk
from coterie.core.text import head_and_tail
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.tools import _confined
from coterie.runtime.tools.arguments import Arguments, Text, schema_of
from coterie.runtime.tools.ground import Ground
from coterie.runtime.tools.native import NativeTool
from coterie.runtime.tools.process import Ended, Program, run_group, without_secrets

_TIMEOUT_S_MAX: Final = 3_600.0
_SHOWN_CHARS_MAX: Final = 8_000
_DESCRIPTION: Final = (
    "Run a command line with bash in the project folder, without input. Answers what it printed and its exit status. "
    "What it started in the background is stopped when it ends."
)
_CONFINED: Final = "The folder of the host is closed to it."
_UNCONFINED: Final = "It runs unconfined: it can reach whatever the person can."


class BashArguments(Arguments):
    """Which command, and for how long."""

    command: Text = Field(min_length=1, description="The command line.")
    timeout_s: float | None = Field(
        default=None, gt=0, le=_TIMEOUT_S_MAX, allow_inf_nan=False, description="Seconds after which it is stopped."
    )


@dataclass(frozen=True, slots=True)
class _Shell:
    before: tuple[str, ...]
    """What dies with the host, and closes its folder to what follows."""
    confined: bool
    line: tuple[str, ...]
    """The shell, before the command."""
    environment: Mapping[str, str]
    timeout_s: float
    records: Path | None

    async def act(
        self, ground: Ground, arguments: BashArguments, show: Callable[[str], None] | None = None
    ) -> ToolOutput:
        timeout_s = arguments.timeout_s or self.timeout_s
        opened = (staying([ground.opened] if ground.opened else []),) if self.confined else ()
        line = (*self.before, *opened, *self.line, arguments.command)
        program = Program(line, ground.root, self.environment, records=self.records, show=show)
        ended = await run_group(program, timeout_s)
        output = ended.output
        if output and not output.endswith("\n"):
            output += "\n"
        return ToolOutput(output + _verdict(ended, timeout_s), error=ended.status != 0)


@dataclass(frozen=True, slots=True)
class _Bash(NativeTool[BashArguments]):
    shell: _Shell

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Run a command; what it prints is shown as it comes."""

        async def act(ground: Ground, fit: BashArguments) -> ToolOutput:
            return await self.shell.act(ground, fit, invocation.show)

        return await self._on_ground(invocation, arguments, act)


def can_confine() -> bool:
    """Whether this machine can keep commands out of a folder."""
    return _confined.abi() >= _confined.ABI_MIN


def bash_tool(
    closed: tuple[Path, ...],
    environment: Mapping[str, str],
    timeout_s: float,
    *,
    confined: bool,
    records: Path | None,
) -> NativeTool[BashArguments]:
    """The tool `bash`.

    Args:
        closed: Folders that a project folder must not lie in, and that commands cannot enter where they are confined.
        environment: What the host was started with; commands see a part of it.
        timeout_s: How long a command may run that names no time.
        confined: Whether commands are confined.
        records: Where running commands are on record.
    """
    told = f"{_DESCRIPTION} {_CONFINED if confined else _UNCONFINED} Stopped after {timeout_s:g} s by default."
    search_path = environment.get("PATH")
    before = (*_guard(search_path), *(confining(closed) if confined else ()))
    shell = _Shell(before, confined, _shell_line(search_path), without_secrets(environment), timeout_s, records)
    spec = ToolSpec("bash", told, schema_of(BashArguments))
    return _Bash(spec, BashArguments, Risk.HIGH, closed=closed, about_=_about, act=shell.act, shell=shell)


def _about(ground: Ground, arguments: BashArguments) -> About:
    del ground
    return About(arguments.command, head_and_tail(arguments.command, _SHOWN_CHARS_MAX)[0])


def confining(closed: Sequence[Path]) -> tuple[str, ...]:
    """What stands before `staying`, and the program that must not enter *closed* as they are now."""
    found = [(path.resolve(), path.stat()) for path in closed]
    told = [(str(path), status.st_dev, status.st_ino) for path, status in found]
    # As it is now, and not by way of a link: a command may write to where the host is installed.
    source = Path(_confined.__file__).read_text(encoding="utf-8")
    return (str(Path(sys.executable).resolve()), "-I", "-S", "-W", "ignore", "-c", source, json.dumps(told))


def staying(opened: Sequence[Path]) -> str:
    """The word for the folders in closed ones that stay open."""
    return json.dumps([str(path) for path in opened])


def _guard(search_path: str | None) -> tuple[str, ...]:
    """Where `setpriv` exists, the shell dies with the host, which a host that is killed could not see to itself."""
    guard = shutil.which("setpriv", path=search_path) if sys.platform == "linux" else None
    return (guard, "--pdeathsig", "KILL", "--") if guard else ()


def _shell_line(search_path: str | None) -> tuple[str, ...]:
    shell = shutil.which("bash", path=search_path) or shutil.which("sh", path=search_path) or "/bin/sh"
    return (shell, "-c", "--")


def _verdict(ended: Ended, timeout_s: float) -> str:
    if ended.status is None:
        return f"stopped: the time of {timeout_s:g} s was up; the command and all that it started were killed"
    return f"killed by signal {-ended.status}" if ended.status < 0 else f"exit status {ended.status}"
