"""What a subagent is: a Markdown file with front matter, in the project or in the data directory.

`agents/NAME.md` of the data directory is for all projects, `.coterie/agents/NAME.md` of a project for that one, and it
goes before one of the same name. A definition gives no rights: what its tools may do is asked as for its session.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import yaml

from coterie.core.text import cut, mend

PROJECT_FOLDER: Final = ".coterie/agents"
READ_ONLY: Final = ("read", "glob", "grep")
"""What a subagent may call if its definition says nothing."""
DEFINITIONS_MAX: Final = 64
_BYTES_MAX: Final = 100_000
_KEYS: Final = frozenset({"name", "description", "tools", "model"})
_FRONT: Final = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n?(.*)\Z", re.DOTALL)
_NAME: Final = re.compile(r"[\w-]{1,64}")


@dataclass(frozen=True, slots=True)
class Definition:
    """One kind of subagent."""

    name: str
    description: str
    tools: tuple[str, ...] = READ_ONLY
    model: str | None = None
    """Name of a model that is open to subagents; None is the session's own."""
    instructions: str = ""


GENERAL: Final = Definition("general", "Looks things up in the project folder and reports; changes nothing.")


@dataclass(frozen=True, slots=True)
class Flaw:
    """A file that is no definition, and why."""

    name: str
    text: str


def definitions(folders: Iterable[Path]) -> tuple[dict[str, Definition], tuple[Flaw, ...]]:
    """Read the definitions of *folders*; those of a later folder go before those of an earlier one."""
    found, flaws = {GENERAL.name: GENERAL}, list[Flaw]()
    for folder in folders:
        try:
            files = sorted(folder.glob("*.md"))[:DEFINITIONS_MAX]
        except OSError:
            continue
        for file in files:
            one = _read(file)
            if isinstance(one, Flaw):
                flaws.append(one)
            else:
                found[one.name] = one
    return found, tuple(flaws)


def _read(file: Path) -> Definition | Flaw:
    name = mend(file.stem)
    try:
        with file.open("rb") as opened:
            text = opened.read(_BYTES_MAX + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Flaw(name, f"it cannot be read ({type(error).__name__})")
    if len(text.encode()) > _BYTES_MAX:
        return Flaw(name, f"it is longer than {_BYTES_MAX} bytes")
    match = _FRONT.match(text)
    if match is None:
        return Flaw(name, "it does not begin with front matter between two lines of ---")
    try:
        front: Any = yaml.safe_load(match[1]) or {}
    except yaml.YAMLError:
        return Flaw(name, "its front matter is not YAML")
    return _defined(name, front, match[2].strip())


def _defined(file: str, front: object, instructions: str) -> Definition | Flaw:
    if not isinstance(front, dict):
        return Flaw(file, "its front matter is no list of names and values")
    given = cast("Mapping[str, object]", front)
    if strange := sorted(str(key) for key in given if key not in _KEYS):
        return Flaw(file, f"{strange[0]!r} is not one of {', '.join(sorted(_KEYS))}")
    name, description, model = given.get("name", file), given.get("description"), given.get("model")
    tools = given.get("tools", list(READ_ONLY))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return Flaw(file, "its name must be letters, digits, _ and -")
    if not isinstance(description, str) or not description.strip():
        return Flaw(file, "description is missing: say when to use it")
    if isinstance(tools, str):
        tools = [part.strip() for part in tools.split(",") if part.strip()]
    names = cast("list[object]", tools) if isinstance(tools, list) else [None]
    if not all(isinstance(one, str) for one in names):
        return Flaw(file, "tools must be a list of names")
    if model is not None and not isinstance(model, str):
        return Flaw(file, "model must be the name of one")
    shown = cut(mend(" ".join(description.split())), 500)[0]
    return Definition(name, shown, tuple(cast("list[str]", names)), model, mend(instructions))
