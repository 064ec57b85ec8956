"""A YAML document whose values remember the line they stand on, so that an error can name it.

Not a schema language: `reading` asks for the values it knows, and whatever is left over is an unknown key.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

import yaml

from coterie.core.errors import ConfigInvalidError

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
"""What JSON can say."""

_TAG: Final = "tag:yaml.org,2002:"
_DEPTH_MAX: Final = 40
"""An anchor may contain itself, so a value is followed only so far."""


class ScriptError(ConfigInvalidError):
    """The script is wrong at *line* of *file*; the text says what would be right."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file, self.line, self.problem = file, line, problem


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the document."""

    node: yaml.Node
    file: str
    name: str
    """The key it stands under, for error texts."""

    @property
    def line(self) -> int:
        """The line it starts on; the first is 1."""
        mark = self.node.start_mark
        return 1 if mark is None else mark.line + 1

    @property
    def kind(self) -> str:
        """Which sort of YAML value it is: str, int, float, bool, null, seq or map."""
        return str(self.node.tag).removeprefix(_TAG)

    def error(self, problem: str) -> ScriptError:
        """Return the error that says *problem* about this value."""
        return ScriptError(self.file, self.line, problem)

    def wanted(self, what: str) -> ScriptError:
        """Return the error for a value that should be *what*."""
        found = {"str": "a text", "int": "a number", "float": "a number", "bool": "true or false", "seq": "a list"}
        found |= {"map": "a mapping", "null": "empty"}
        return self.error(f"`{self.name}` must be {what}, but is {found.get(self.kind, self.kind)}")

    def unknown(self, noun: str, name: str, allowed: Collection[str]) -> ScriptError:
        """Return the error for *name*, a *noun* that is not among *allowed*."""
        return self.error(f"unknown {noun} `{name}` in `{self.name}`; {_near(name, allowed)}")

    def text(self) -> str:
        """Return the value as text."""
        if isinstance(self.node, yaml.ScalarNode) and self.kind == "str":
            return str(self.node.value)
        raise self.wanted("a text (put it in quotes)")

    def one_of(self, allowed: Collection[str]) -> str:
        """Return the value, a text among *allowed*."""
        value = self.text()
        if value in allowed:
            return value
        raise self.error(f"`{self.name}` is {value!r}; {_near(value, allowed)}")

    def flag(self) -> bool:
        """Return the value, true or false."""
        if self.kind == "bool" and isinstance(self.node, yaml.ScalarNode):
            return str(self.node.value).lower() in {"true", "yes", "on"}
        raise self.wanted("true or false")

    def integer(self, *, least: int = 0, most: int | None = None) -> int:
        """Return the value, a whole number between *least* and *most*."""
        bound = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
        if self.kind != "int" or not isinstance(self.node, yaml.ScalarNode):
            raise self.wanted(bound)
        value = self.value()
        if not isinstance(value, int) or value < least or (most is not None and value > most):
            raise self.error(f"`{self.name}` must be {bound}")
        return value

    def pattern(self) -> re.Pattern[str]:
        """Return the value as a compiled regular expression."""
        try:
            return re.compile(self.text())
        except re.error as error:
            raise self.error(f"`{self.name}` is not a regular expression: {error}") from error

    def items(self) -> tuple["Entry", ...]:
        """Return the members of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wanted("a list")
        return tuple(Entry(node, self.file, self.name) for node in self.node.value)

    def fields(self, allowed: Collection[str] | None = None) -> dict[str, "Entry"]:
        """Return the members of a mapping; a key outside *allowed* is an error, as is one that stands twice."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wanted("a mapping")
        found: dict[str, Entry] = {}
        for key_node, node in self.node.value:
            key = Entry(key_node, self.file, self.name).key()
            if key in found:
                raise Entry(key_node, self.file, key).error(f"`{key}` stands twice in `{self.name}`")
            if allowed is not None and key not in allowed:
                raise Entry(key_node, self.file, self.name).unknown("key", key, allowed)
            found[key] = Entry(node, self.file, key)
        return found

    def key(self) -> str:
        """Return the value as the key of a mapping; YAML reads a bare `on` or `1` as something else than text."""
        if isinstance(self.node, yaml.ScalarNode):
            return str(self.node.value)
        raise self.error(f"the keys of `{self.name}` must be texts")

    def value(self, depth: int = 0) -> JsonValue:
        """Return the value as JSON has it; what JSON has no word for, such as a date, is the text as written."""
        if depth > _DEPTH_MAX:
            raise self.error(f"`{self.name}` is nested too deep")
        if isinstance(self.node, yaml.MappingNode):
            return {key: entry.value(depth + 1) for key, entry in self.fields().items()}
        if isinstance(self.node, yaml.SequenceNode):
            return [entry.value(depth + 1) for entry in self.items()]
        return _scalar(self.kind, str(self.node.value))


def read_document(text: str, file: str) -> Entry:
    """Return the top value of the YAML *text*.

    Raises:
        ScriptError: The text is not one YAML document, or is empty.
    """
    try:
        node = yaml.SafeLoader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ScriptError(file, mark.line + 1 if mark else 1, f"this is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ScriptError(file, 1, f"this is not YAML: {' '.join(str(error).split())}") from error
    if node is None:
        raise ScriptError(file, 1, "the script is empty; it needs `rules`")
    return Entry(node, file, "script")


def _scalar(kind: str, written: str) -> JsonValue:
    match kind:
        case "null":
            return None
        case "bool":
            return written.lower() in {"true", "yes", "on"}
        case "int" | "float":
            return _number(written)
        case _:
            return written


def _number(written: str) -> JsonValue:
    value = yaml.safe_load(written)
    return value if isinstance(value, int | float) else written


def _near(word: str, allowed: Collection[str]) -> str:
    near = get_close_matches(word, allowed, n=1)
    return f"did you mean `{near[0]}`?" if near else f"known are: {', '.join(f'`{key}`' for key in allowed)}"
