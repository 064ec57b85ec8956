"""What a rule demands of a request, and which values it takes from it.

A condition answers with the values that its named groups caught, or with None where it does not hold.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol

from coterie.model_server.document import Entry
from coterie.model_server.request import Request, Said, Speaker


class Condition(Protocol):
    """A demand on a request."""

    def names(self) -> frozenset[str]:
        """The values that it takes from the request."""
        ...

    def check(self, request: Request) -> Mapping[str, str] | None:
        """Return the values, or None where the demand is not met."""
        ...


@dataclass(frozen=True, slots=True)
class TextMatches:
    """A regular expression is found in a text of the request."""

    space: str
    """The values are named `space.group`."""
    text_of: Callable[[Request], str | None]
    pattern: re.Pattern[str]

    def names(self) -> frozenset[str]:
        """A name for each named group."""
        return frozenset(f"{self.space}.{group}" for group in self.pattern.groupindex)

    def check(self, request: Request) -> Mapping[str, str] | None:
        """Search the text."""
        text = self.text_of(request)
        found = None if text is None else self.pattern.search(text)
        if found is None:
            return None
        return {f"{self.space}.{group}": value for group, value in found.groupdict(default="").items()}


@dataclass(frozen=True, slots=True)
class NameMatches:
    """A name of the request fits a glob."""

    names_of: Callable[[Request], tuple[str, ...]]
    glob: str

    def names(self) -> frozenset[str]:
        """Nothing: a glob catches no values."""
        return frozenset()

    def check(self, request: Request) -> Mapping[str, str] | None:
        """Compare the names, one of which must fit."""
        return {} if any(fnmatchcase(name, self.glob) for name in self.names_of(request)) else None


@dataclass(frozen=True, slots=True)
class CountIs:
    """A number of the request compares so with a bound."""

    number_of: Callable[[Request], int]
    compare: Callable[[int, int], bool]
    bound: int

    def names(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    def check(self, request: Request) -> Mapping[str, str] | None:
        """Compare the number."""
        return {} if self.compare(self.number_of(request), self.bound) else None


@dataclass(frozen=True, slots=True)
class Capture:
    """A value to find in the messages of the request, wherever it stands."""

    pattern: re.Pattern[str]
    speaker: Speaker | None = None
    """Whose messages are searched; everybody's for None."""
    tool: str = "*"
    """Which tools' results, as a glob, where results are searched."""
    nth: int = 1
    """Which match, in the order of the request; negative numbers count from the end."""
    since_user: bool = False
    default: str | None = None
    """The value where there is no such match; for None, the rule does not hold."""

    def find(self, request: Request) -> str | None:
        """Return the value."""
        said = request.since_user if self.since_user else request.said
        found = [match for one in said if self._searches(one) for match in self.pattern.finditer(one.text)]
        at = self.nth - 1 if self.nth > 0 else len(found) + self.nth
        return self._value(found[at]) if 0 <= at < len(found) else self.default

    def _searches(self, said: Said) -> bool:
        if self.speaker is not None and said.speaker is not self.speaker:
            return False
        return said.speaker is not Speaker.TOOL or fnmatchcase(said.tool, self.tool)

    def _value(self, match: re.Match[str]) -> str:
        # The first group is the value; without groups the whole match is.
        return match.group(min(1, self.pattern.groups)) or ""


def _result_text(request: Request) -> str | None:
    return None if request.last_result is None else request.last_result.text


def _result_tool(request: Request) -> tuple[str, ...]:
    return () if request.last_result is None else (request.last_result.tool,)


def _last_speaker(request: Request) -> tuple[str, ...]:
    return () if request.last_speaker is None else (request.last_speaker.value,)


TEXTS: Final[Mapping[str, tuple[str, Callable[[Request], str | None]]]] = {
    "model_regex": ("model", lambda request: request.model),
    "user": ("user", lambda request: request.last_user),
    "tool_result": ("tool", _result_text),
    "system": ("system", lambda request: request.system),
}
"""Conditions by regular expression, with the first half of the names of their values."""

NAMES: Final[Mapping[str, Callable[[Request], tuple[str, ...]]]] = {
    "model": lambda request: (request.model,),
    "tool": _result_tool,
    "offers": lambda request: request.tools,
    "last": _last_speaker,
}
"""Conditions by glob."""

COUNTS: Final[Mapping[str, Callable[[Request], int]]] = {
    "user_turn": lambda request: request.user_turn,
    "requests_since_user": lambda request: request.requests_since_user,
    "results_since_user": lambda request: request.results_since_user,
}
"""Conditions by number."""

_LAST: Final = (Speaker.USER.value, Speaker.TOOL.value, Speaker.ASSISTANT.value)
_FROM: Final[Mapping[str, Speaker | None]] = {
    "all": None,
    "system": Speaker.SYSTEM,
    "user": Speaker.USER,
    "assistant": Speaker.ASSISTANT,
    "tool_results": Speaker.TOOL,
}
_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_BOUND: Final = re.compile(r"(>=|<=|>|<|)\s*(\d+)")


def always(request: Request) -> dict[str, str]:
    """Return the values that every reply may use."""
    return {
        "model": request.model,
        "user": request.last_user or "",
        "tool": _result_text(request) or "",
        "system": request.system,
    }


ALWAYS: Final = frozenset(always(Request("", ())))
"""The names of the values that every reply may use."""


def read_conditions(entry: Entry) -> tuple[Condition, ...]:
    """Return the conditions of a `when` or `unless`."""
    fields = entry.fields([*NAMES, *TEXTS, *COUNTS])
    return tuple(condition for key, field in fields.items() for condition in _read_condition(key, field))


def read_capture(entry: Entry) -> Capture:
    """Return one member of a rule's `capture`."""
    fields = entry.fields(["pattern", "from", "tool", "nth", "since_user", "default"])
    if "pattern" not in fields:
        raise entry.error(f"the capture `{entry.name}` needs a `pattern`")
    source = fields["from"].one_of(_FROM) if "from" in fields else "all"
    if "tool" in fields and source != "tool_results":
        raise fields["tool"].error("`tool` goes with `from: tool_results` only")
    return Capture(
        pattern=fields["pattern"].pattern(),
        speaker=_FROM[source],
        tool=fields["tool"].text() if "tool" in fields else "*",
        nth=_read_nth(fields["nth"]) if "nth" in fields else 1,
        since_user=fields["since_user"].flag() if "since_user" in fields else False,
        default=fields["default"].text() if "default" in fields else None,
    )


def _read_nth(entry: Entry) -> int:
    nth = entry.integer(least=-1000, most=1000)
    if nth == 0:
        raise entry.error("`nth` counts from 1, or from the end with -1; there is no match 0")
    return nth


def _read_condition(key: str, field: Entry) -> tuple[Condition, ...]:
    if key in TEXTS:
        space, text_of = TEXTS[key]
        return (TextMatches(space, text_of, field.pattern()),)
    if key in COUNTS:
        return (_read_count(COUNTS[key], field),)
    if key == "last":
        return (NameMatches(NAMES[key], field.one_of(_LAST)),)
    if key == "offers" and field.kind == "seq":
        return tuple(NameMatches(NAMES[key], item.text()) for item in field.items())
    return (NameMatches(NAMES[key], field.text()),)


def _read_count(number_of: Callable[[Request], int], field: Entry) -> Condition:
    if field.kind == "int":
        return CountIs(number_of, operator.eq, field.integer())
    found = _BOUND.fullmatch(field.text())
    if found is None:
        raise field.error(f'`{field.name}` must be a whole number or a bound such as ">=2"')
    return CountIs(number_of, _COMPARE[found[1]], int(found[2]))
