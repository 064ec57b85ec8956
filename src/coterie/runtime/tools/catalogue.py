"""The tools that work on a project folder, put together."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from coterie.core.permission import Rule
from coterie.ports.tool import Tool
from coterie.runtime.tools.finding import glob_tool, grep_tool
from coterie.runtime.tools.reading import read_tool
from coterie.runtime.tools.shell import bash_tool
from coterie.runtime.tools.writing import FileTurns, edit_tool, write_tool


def native_tools(
    *,
    closed: Sequence[Path],
    environment: Mapping[str, str],
    bash_timeout_s: float = 120.0,
    denied: Sequence[Rule] = (),
    confined: bool = False,
    records: Path | None = None,
) -> tuple[Tool, ...]:
    """Return `read`, `glob`, `grep`, `write`, `edit` and `bash`, once for all sessions of a host.

    Args:
        closed: Folders closed to every tool, even inside a project folder.
        environment: What the host was started with; programs see only names that are known to hold no secret.
        bash_timeout_s: How long a command may run that names no time.
        denied: Rules that refuse calls; tools that look through many files leave out those that one names.
        confined: Whether the machine can keep commands out of what is closed; see `can_confine`.
        records: Where running commands are on record, for a start after a crash.
    """
    shut, turns = tuple(closed), FileTurns()
    return (
        read_tool(shut),
        glob_tool(shut, denied),
        grep_tool(shut, environment, denied=denied),
        write_tool(shut, turns),
        edit_tool(shut, turns),
        bash_tool(shut, environment, bash_timeout_s, confined=confined, records=records),
    )
