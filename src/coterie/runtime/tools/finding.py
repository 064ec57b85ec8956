"""The tools `glob` and `grep`."""

import asyncio
import json
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, cast

from pydantic import Field

from coterie.core.permission import Risk, Rule, refusing
from coterie.core.text import mend
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, ToolOutput
from coterie.runtime.tools import _search
from coterie.runtime.tools.arguments import Arguments, Text, UnfitError, schema_of
from coterie.runtime.tools.ground import Ground, named
from coterie.runtime.tools.native import NativeTool
from coterie.runtime.tools.pattern import path_pattern
from coterie.runtime.tools.process import Program, run_group, without_secrets
from coterie.runtime.tools.walk import FILES_SEEN_MAX, FileFound, files_below

Sort = Literal["name", "size", "modified"]

_PATHS_SHOWN_MAX: Final = 1_000
_MATCHES_SHOWN_MAX: Final = 500
# At most six bytes a character in JSON, so that an answer always fits into an output.
_LINE_CHARS_MAX: Final = 300
_SEARCHED_BYTES_MAX: Final = 5_000_000
_SEARCH_S: Final = 20.0
_PATTERN_CHARS_MAX: Final = 10_000

_GLOB_DESCRIPTION: Final = (
    "List files of the project whose path fits a pattern, one a line: path, tab, size in bytes. Files that .gitignore "
    "names, .git, .venv, node_modules and __pycache__ are left out."
)
_GREP_DESCRIPTION: Final = (
    "Search the text files of the project, line by line, for a regular expression of Python's `re`. Answers "
    "'path:line: text'. Leaves out the same files as glob."
)
_ORDER: Final[Mapping[Sort, Callable[[FileFound], tuple[int, str]]]] = {
    "name": lambda file: (0, file.name),
    "size": lambda file: (-file.size, file.name),
    "modified": lambda file: (-file.modified_ns, file.name),
}


class GlobArguments(Arguments):
    """Which files, in which order."""

    pattern: Text = Field(
        min_length=1,
        max_length=_PATTERN_CHARS_MAX,
        description="Like 'src/**/*.py' or '*.{md,txt}'. Without a slash it fits names in any folder. '**' is all.",
    )
    path: Text | None = Field(default=None, description="The folder to start in. Default: the project folder.")
    sort: Sort = Field(default="name", description="'size' is largest first, 'modified' is newest first.")


class GrepArguments(Arguments):
    """What to search for, and where."""

    pattern: Text = Field(min_length=1, max_length=_PATTERN_CHARS_MAX, description="The regular expression.")
    path: Text | None = Field(default=None, description="A folder or one file. Default: the project folder.")
    glob: Text | None = Field(
        default=None, max_length=_PATTERN_CHARS_MAX, description="Search only files that fit this pattern of glob."
    )
    ignore_case: bool = Field(default=False, description="Whether upper and lower case are the same.")


@dataclass(frozen=True, slots=True)
class _Grep:
    environment: Mapping[str, str]
    search_s: float
    denied: Sequence[Rule]

    async def act(self, ground: Ground, arguments: GrepArguments) -> ToolOutput:
        found, complete = await asyncio.to_thread(_files_to_search, ground, arguments)
        # What it finds in a file it shows, as read does.
        files = _allowed(ground, found, self.denied, ("grep", "read"))
        request = _search.Request(
            pattern=arguments.pattern,
            ignore_case=arguments.ignore_case,
            paths=[str(file.path) for file in files],
            matches_max=_MATCHES_SHOWN_MAX,
            line_chars_max=_LINE_CHARS_MAX,
            file_bytes_max=_SEARCHED_BYTES_MAX,
            cpu_s_max=2 * math.ceil(self.search_s),
        )
        answer = await self._search(ground, request)
        if answer["flaw"] is not None:
            raise UnfitError(f"The pattern is not a regular expression of Python's `re`: {answer['flaw']}.")
        lines = [f"{files[index].name}:{number}: {mend(text)}" for index, number, text in answer["matches"]]
        if not lines:
            lines.append(f"No line matches in {len(files)} files.")
        if answer["goes_on"]:
            lines.append(f"… there are more matches than {_MATCHES_SHOWN_MAX}; narrow the pattern, path or glob.")
        if answer["too_large"]:
            lines.append(f"… {answer['too_large']} files over {_SEARCHED_BYTES_MAX} bytes were not searched.")
        lines += _left_out(len(found) - len(files))
        return ToolOutput("\n".join(lines + _incomplete(complete=complete)))

    async def _search(self, ground: Ground, request: _search.Request) -> _search.Answer:
        line = (sys.executable, "-I", "-S", "-W", "ignore", str(_search.__file__))
        with await asyncio.to_thread(_as_file, request) as stdin:
            program = Program(line, ground.root, self.environment, stdin=stdin, merge_stderr=False)
            ended = await run_group(program, self.search_s)
        if ended.status is None:
            raise UnfitError(
                f"The search took longer than {self.search_s:g} s. Use a simpler pattern, or a narrower path."
            )
        if ended.status != 0:
            raise UnfitError("The search broke off. Use a simpler pattern, or a narrower path.")
        return cast("_search.Answer", json.loads(ended.output))


@dataclass(frozen=True, slots=True)
class _Glob:
    denied: Sequence[Rule]

    async def act(self, ground: Ground, arguments: GlobArguments) -> ToolOutput:
        return await asyncio.to_thread(_glob_now, ground, arguments, self.denied)


def glob_tool(closed: tuple[Path, ...], denied: Sequence[Rule] = ()) -> NativeTool[GlobArguments]:
    """The tool `glob`.

    Args:
        closed: Folders that it does not enter.
        denied: Rules; files that one names are left out.
    """
    spec = ToolSpec("glob", _GLOB_DESCRIPTION, schema_of(GlobArguments))
    return NativeTool(spec, GlobArguments, Risk.LOW, closed=closed, about_=_about, act=_Glob(denied).act)


def _about(ground: Ground, arguments: "GlobArguments | GrepArguments") -> About:
    return About(ground.name(ground.locate(arguments.path or ".")))


def grep_tool(
    closed: tuple[Path, ...],
    environment: Mapping[str, str],
    search_s: float = _SEARCH_S,
    denied: Sequence[Rule] = (),
) -> NativeTool[GrepArguments]:
    """The tool `grep`.

    Args:
        closed: Folders that it does not enter.
        environment: What the host was started with.
        search_s: How long one search may take.
        denied: Rules; files that one names, also for `read`, are left out.
    """
    spec = ToolSpec("grep", _GREP_DESCRIPTION, schema_of(GrepArguments))
    grep = _Grep(without_secrets(environment), search_s, denied)
    return NativeTool(spec, GrepArguments, Risk.LOW, closed=closed, about_=_about, act=grep.act)


def _glob_now(ground: Ground, arguments: GlobArguments, denied: Sequence[Rule]) -> ToolOutput:
    start = _start_of(ground, arguments.path)
    if not start.is_dir():
        raise UnfitError(f"{named(arguments.path or '.')} is a file; give the folder to start in, or use read.")
    found, complete = files_below(ground, start, path_pattern(arguments.pattern))
    files = _allowed(ground, found, denied, ("glob",))
    files.sort(key=_ORDER[arguments.sort])
    lines = [f"{file.name}\t{file.size}" for file in files[:_PATHS_SHOWN_MAX]]
    if not lines:
        lines.append("No file fits the pattern.")
    if len(files) > _PATHS_SHOWN_MAX:
        lines.append(f"… and {len(files) - _PATHS_SHOWN_MAX} more.")
    lines += _left_out(len(found) - len(files))
    return ToolOutput("\n".join(lines + _incomplete(complete=complete)))


def _files_to_search(ground: Ground, arguments: GrepArguments) -> tuple[list[FileFound], bool]:
    start = _start_of(ground, arguments.path)
    if start.is_dir():
        return files_below(ground, start, path_pattern(arguments.glob) if arguments.glob else None)
    status = start.stat()
    return [FileFound(start, ground.name(start), status.st_size, status.st_mtime_ns)], True


def _start_of(ground: Ground, text: str | None) -> Path:
    start = ground.locate(text or ".")
    if not start.exists():
        raise UnfitError(f"{named(text or '.')} does not exist in the project folder.")
    return start


def _allowed(
    ground: Ground, files: Sequence[FileFound], denied: Sequence[Rule], tools: Sequence[str]
) -> list[FileFound]:
    """Those that no rule for *tools* names, neither as they are found nor where their links lead."""

    def is_denied(name: str) -> bool:
        return any(refusing(denied, tool, name) for tool in tools)

    return [file for file in files if not (is_denied(file.name) or is_denied(ground.name(file.path)))]


def _left_out(count: int) -> list[str]:
    return [f"… {count} files were left out: a rule of this host denies them."] if count else []


def _incomplete(*, complete: bool) -> list[str]:
    return [] if complete else [f"… only the first {FILES_SEEN_MAX} files were looked at; give a path to start in."]


def _as_file(request: _search.Request) -> IO[bytes]:
    """The request as a nameless file: nothing has to feed a pipe while the program runs."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(json.dumps(request).encode())
    file.seek(0)
    return file
