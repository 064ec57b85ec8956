"""The tool `bash`. It keeps secrets of the host out of the environment; it does not confine what a command reaches."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from coterie.core.permission import Risk
from coterie.core.text import head_and_tail
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, ToolOutput
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


class BashArguments(Arguments):
    """Which command, and for how long."""

    command: Text = Field(min_length=1, description="The command line.")
    timeout_s: float | None = Field(
        default=None, gt=0, le=_TIMEOUT_S_MAX, allow_inf_nan=False, description="Seconds after which it is stopped."
    )


@dataclass(frozen=True, slots=True)
class _Shell:
    line: tuple[str, ...]
    environment: Mapping[str, str]
    timeout_s: float

    async def act(self, ground: Ground, arguments: BashArguments) -> ToolOutput:
        timeout_s = arguments.timeout_s or self.timeout_s
        program = Program((*self.line, arguments.command), ground.root, self.environment)
        ended = await run_group(program, timeout_s)
        output = ended.output
        if output and not output.endswith("\n"):
            output += "\n"
        return ToolOutput(output + _verdict(ended, timeout_s), error=ended.status != 0)


def bash_tool(closed: tuple[Path, ...], environment: Mapping[str, str], timeout_s: float) -> NativeTool[BashArguments]:
    """The tool `bash`.

    Args:
        closed: Folders that a project folder must not lie in.
        environment: What the host was started with; commands see a part of it.
        timeout_s: How long a command may run that names no time.
    """
    spec = ToolSpec("bash", f"{_DESCRIPTION} Stopped after {timeout_s:g} s by default.", schema_of(BashArguments))
    shell = _Shell(_shell_line(environment.get("PATH")), without_secrets(environment), timeout_s)
    return NativeTool(spec, BashArguments, Risk.HIGH, closed=closed, about_=_about, act=shell.act)


def _about(ground: Ground, arguments: BashArguments) -> About:
    del ground
    return About(arguments.command, head_and_tail(arguments.command, _SHOWN_CHARS_MAX)[0])


def _shell_line(search_path: str | None) -> tuple[str, ...]:
    """The command line before the command.

    Where `setpriv` exists, the shell dies with the host, which a host that is killed could not see to itself.
    """
    guard = shutil.which("setpriv", path=search_path) if sys.platform == "linux" else None
    shell = shutil.which("bash", path=search_path) or shutil.which("sh", path=search_path) or "/bin/sh"
    return (*((guard, "--pdeathsig", "KILL", "--") if guard else ()), shell, "-c", "--")


def _verdict(ended: Ended, timeout_s: float) -> str:
    if ended.status is None:
        return f"stopped: the time of {timeout_s:g} s was up; the command and all that it started were killed"
    return f"killed by signal {-ended.status}" if ended.status < 0 else f"exit status {ended.status}"
