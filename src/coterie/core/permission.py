"""Permission: an order of modes, the minimum along a path, and the decision for one tool call.

Pure module. Rights only narrow on the way down a chain of messages (ADR 0239, ceilings).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """What a session may do without asking; weakest first."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"


class StoredMode(StrEnum):
    """What a session has stored: a mode, or the host's default at the time of use."""

    INHERIT = "inherit"
    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"


class Risk(StrEnum):
    """What a tool call can do to the world."""

    LOW = "low"
    """Reads, and messages within bounds that the host keeps anyway."""
    EDIT = "edit"
    """Changes files of the project."""
    HIGH = "high"
    """Runs programs, or reaches the network."""


class Decision(StrEnum):
    """What happens to one tool call."""

    ALLOW = "allow"
    ASK = "ask"
    """A person decides."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a person never wants to happen: `tool` or `tool(pattern)`, where `*` stands for any text.

    Letter case and the way that an accent is written do not count: for some file systems `Secrets` is `secrets`, and a
    rule that refuses too much is noticed, while one that refuses too little is not.
    """

    tool: str
    pattern: str = "*"

    def __str__(self) -> str:
        return self.tool if self.pattern == "*" else f"{self.tool}({self.pattern})"

    def is_for(self, tool: str) -> bool:
        """Whether the rule is about calls of *tool*."""
        return _fits(tool, self.tool)

    def names(self, tool: str, subject: str) -> bool:
        """Whether the rule is about a call of *tool* on *subject*."""
        return self.is_for(tool) and _fits(subject, self.pattern)


def _fits(text: str, pattern: str) -> bool:
    """Whether *text* is *pattern*, in which nothing but the star is special: `[id]` is a name like any other."""
    first, *others = _folded(pattern).split("*")
    text = _folded(text)
    if not others:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    *between, last = others
    for piece in between:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - len(last) >= at and text.endswith(last)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


_RULE: Final = re.compile(r"\s*([\w*.-]+)\s*(?:\((.+)\))?\s*", re.DOTALL)


def idle_rule(rules: Iterable[Rule], tools: Sequence[str]) -> Rule | None:
    """The first rule that names by its letters a tool that is none of *tools*."""
    return next((rule for rule in rules if "*" not in rule.tool and not any(map(rule.is_for, tools))), None)


def rule_of(text: str) -> Rule | None:
    """The rule that *text* writes; None if it is none."""
    match = _RULE.fullmatch(text)
    return Rule(match[1], match[2] or "*") if match else None


_RANK: Final = {Mode.ASK: 0, Mode.ACCEPT_EDITS: 1, Mode.AUTO: 2}
_FREE: Final = {Risk.LOW: Mode.ASK, Risk.EDIT: Mode.ACCEPT_EDITS, Risk.HIGH: Mode.AUTO}


def resolve(stored: StoredMode, default: Mode) -> Mode:
    """The mode that *stored* means now."""
    return default if stored is StoredMode.INHERIT else Mode(stored.value)


def covers(ceiling: Mode, mode: Mode) -> bool:
    """Whether what *mode* lets happen is within *ceiling*."""
    return _RANK[ceiling] >= _RANK[mode]


def least(modes: Iterable[Mode]) -> Mode:
    """The weakest of *modes*, which are not empty."""
    return min(modes, key=_RANK.__getitem__)


def decide(mode: Mode, risk: Risk) -> Decision:
    """Whether *mode* lets a call of *risk* run without a person."""
    return Decision.ALLOW if _RANK[mode] >= _RANK[_FREE[risk]] else Decision.ASK


def refusing(rules: Iterable[Rule], tool: str, subject: str) -> Rule | None:
    """The first of *rules* that refuses the call: before any mode, grant or question."""
    return next((rule for rule in rules if rule.names(tool, subject)), None)
