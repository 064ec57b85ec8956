"""Patterns for paths: `*`, `?`, `[…]` within a name, `**` over folders, `{a,b}` for alternatives.

Names are matched one by one, so that no pattern takes more than a moment: a regular expression over a whole path can
try exponentially many splits.
"""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from coterie.runtime.tools.arguments import UnfitError

_ALTERNATIVES_MAX: Final = 64
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern, ready to match paths relative to where the search starts."""

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]
    """Each a row of names; None stands for any number of folders."""

    def matches(self, path: str) -> bool:
        """Whether *path*, with forward slashes, fits."""
        names = path.split("/")
        return any(_fits(row, names) for row in self.alternatives)


def path_pattern(text: str) -> PathPattern:
    """Return the pattern that *text* means; without a slash it is one for the last name, in any folder.

    Raises:
        UnfitError: It is absolute, climbs, or has too many alternatives.
    """
    if text.startswith("/") or ".." in text.split("/"):
        raise UnfitError("The pattern must not lead outside the project folder: give one like 'src/**/*.py'.")
    rows = [_row(one) for one in _expand(text)]
    return PathPattern(tuple(rows))


def _row(text: str) -> tuple[re.Pattern[str] | None, ...]:
    names = [name for name in text.split("/") if name not in {"", "."}]
    if "/" not in text:
        names.insert(0, "**")
    return tuple(None if name == "**" else re.compile(fnmatch.translate(name)) for name in names)


def _expand(text: str) -> list[str]:
    todo, done = [text], list[str]()
    while todo:
        if len(todo) + len(done) > _ALTERNATIVES_MAX:
            raise UnfitError(f"The pattern has more than {_ALTERNATIVES_MAX} alternatives.")
        one = todo.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            todo.extend(one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(","))
    return done


def _fits(row: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Whether *row* fits all of *names*; keeps the set of places in the row that are reachable after each name."""
    places = _with_skips(row, {0})
    for name in names:
        following = set[int]()
        for place in places:
            if place == len(row):
                continue
            part = row[place]
            if part is None:
                following.add(place)
            elif part.match(name):
                following.add(place + 1)
        places = _with_skips(row, following)
    # A trailing `**` stands for what is in a folder.
    return len(row) in places


def _with_skips(row: Sequence[re.Pattern[str] | None], places: set[int]) -> set[int]:
    """*places*, and those reached when `**` stands for nothing more."""
    reached = set(places)
    for place in sorted(places):
        step = place
        while step < len(row) and row[step] is None:
            step += 1
            reached.add(step)
    return reached
