"""Draws who sent what to whom, as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size

COLUMN_CHARS_MIN: Final = 18
"""Cells between two lifelines at least."""
TITLE_CHARS_MAX: Final = 24


@dataclass(frozen=True, slots=True)
class Arrow:
    """One message."""

    source: str
    """Id of who sent it."""
    target: str
    label: str
    state: str


def draw(people: Sequence[tuple[str, str]], arrows: Sequence[Arrow]) -> str:
    """Return a sequence diagram: a lifeline for each of *people* (id, title), an arrow for each message in order."""
    titles = [_short(title) for _, title in people]
    labels = max((cell_len(arrow.label) for arrow in arrows), default=0)
    gap = max(COLUMN_CHARS_MIN, labels + 8, *(cell_len(title) + 4 for title in titles))
    at = {id_: number * gap for number, (id_, _) in enumerate(people)}
    indent = cell_len(titles[0]) // 2 if titles else 0
    width = indent + gap * (len(people) - 1) + 1
    lines = [_heads(titles, gap, indent), _lifelines(at, indent, width)]
    lines += [_arrow(arrow, at, indent, width) for arrow in arrows if {arrow.source, arrow.target} <= at.keys()]
    lines.append(_lifelines(at, indent, width))
    return "\n".join(line.rstrip() for line in lines)


def _short(title: str) -> str:
    return title if cell_len(title) <= TITLE_CHARS_MAX else set_cell_size(title, TITLE_CHARS_MAX - 1).rstrip() + "…"


def _heads(titles: Sequence[str], gap: int, indent: int) -> str:
    line = ""
    for number, title in enumerate(titles):
        start = max(0, indent + number * gap - cell_len(title) // 2)
        line = set_cell_size(line, start) + title
    return line


def _lifelines(at: dict[str, int], indent: int, width: int) -> str:
    row = [" "] * width
    for place in at.values():
        row[indent + place] = "│"
    return "".join(row)


def _arrow(arrow: Arrow, at: dict[str, int], indent: int, width: int) -> str:
    source, target = indent + at[arrow.source], indent + at[arrow.target]
    left, right = min(source, target), max(source, target)
    room = right - left - 1
    shaft = f" {arrow.label} ".center(room - 2, "─") if cell_len(arrow.label) + 4 <= room else "─" * (room - 2)
    body = f"─{shaft}▶" if source < target else f"◀{shaft}─"
    row = _lifelines(at, indent, width)
    return f"{row[: left + 1]}{body}{row[right:]}   {arrow.state}"
