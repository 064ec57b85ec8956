"""Draws who sent what to whom, as text."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rich.cells import cell_len, set_cell_size

from coterie.interfaces.cli.display import one_line

COLUMN_CHARS_MIN: Final = 18
"""Cells between two lifelines at least, where titles stand above them and labels in the arrows."""
TITLE_CHARS_MAX: Final = 24
LABEL_CHARS_MAX: Final = 60
NUMBERED_GAPS: Final = (8, 7, 6, 5, 4, 3)
"""Cells between two lifelines that only have a number, the best first."""
BESIDE_CHARS_MIN: Final = 24
"""Cells for a label beside numbered lifelines at least; with less the lifelines go."""
HEADS_AGAIN_ROWS: Final = 20
"""A longer picture repeats its heads at the end."""

Row: TypeAlias = tuple[str, str]
"""A line of a picture, and the state at its end."""

_JOINERS: Final = "\u200c\u200d"
_NO_CELL: Final = dict.fromkeys((0x200C, 0x200D, *range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400)))
"""Joiners, variation selectors and skin tones: each terminal gives them, and what they join, another width."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """One message."""

    source: str
    """Id of who sent it."""
    target: str
    label: str
    state: str
    text: str = ""
    """What it says; as much of it is drawn as there is room for."""
    answers: str | None = None
    """How the message ended that it answers, empty where nobody knows; None answers none."""
    at: str = ""
    """When it was sent, in words; only pictures with a margin show it."""

    @property
    def is_dashed(self) -> bool:
        """Whether it is drawn apart from those that began something."""
        return self.answers is not None


def visible(text: str) -> str:
    """Return *text* on one line, without what would draw nothing but turn the words around it."""
    return "".join(
        char for char in one_line(text) if char in _JOINERS or unicodedata.category(char) not in {"Cf", "Cs"}
    )


def draw(people: Sequence[tuple[str, str]], arrows: Sequence[Arrow], width: int | None = None) -> str:
    """Return a sequence diagram: a lifeline for each of *people* (id, title), an arrow for each message in order.

    Args:
        people: Who takes part, from left to right.
        arrows: What they sent; those to others are left out.
        width: Cells of a line at most; None takes what the labels ask for.
    """
    return "\n".join(f"{line}{state}".rstrip() for line, state in rows(people, arrows, width))


def rows(people: Sequence[tuple[str, str]], arrows: Sequence[Arrow], width: int | None = None) -> list[Row]:
    """Return the lines of the diagram that `draw` joins, each with its state apart from it."""
    titles = [_cells(title) for _, title in people]
    places = {id_: number for number, (id_, _) in enumerate(people)}
    known = [arrow for arrow in arrows if {arrow.source, arrow.target} <= places.keys()]
    if width is None:
        return _titled(titles, places, known, _natural_gap(titles, places, known))
    states = max((cell_len(arrow.state) for arrow in known), default=0) + 3
    indent = min(TITLE_CHARS_MAX, cell_len(titles[0])) // 2 if titles else 0
    fitting = (width - indent - 1 - states) // max(1, len(people) - 1)
    if fitting >= COLUMN_CHARS_MIN:
        return _titled(titles, places, known, min(fitting, _natural_gap(titles, places, known)))
    legend = [(f"{number:>3}  {_short(title, width - 5)}", "") for number, title in enumerate(titles, 1)]
    for gap in NUMBERED_GAPS:
        room = width - 2 - gap * (len(people) - 1) - 3 - states
        if room >= BESIDE_CHARS_MIN:
            return [*legend, ("", ""), *_numbered(places, known, gap, min(room, LABEL_CHARS_MAX))]
    return [*legend, ("", ""), *_listed(places, known, width - states)]


def _cells(text: str) -> str:
    return visible(text).translate(_NO_CELL)


def _short(text: str, cells: int) -> str:
    return text if cell_len(text) <= cells else set_cell_size(text, max(0, cells - 1)).rstrip() + "…"


def _label(arrow: Arrow) -> str:
    return _cells(f"{arrow.label}: {arrow.text}" if arrow.text else arrow.label)


def _natural_gap(titles: Sequence[str], places: Mapping[str, int], arrows: Sequence[Arrow]) -> int:
    gap = max(COLUMN_CHARS_MIN, *(min(TITLE_CHARS_MAX, cell_len(title)) + 4 for title in titles)) if titles else 0
    for arrow in arrows:
        asked = min(LABEL_CHARS_MAX, cell_len(_label(arrow))) + 8
        gap = max(gap, -(-asked // max(1, abs(places[arrow.source] - places[arrow.target]))))
    return gap


def _titled(titles: Sequence[str], places: Mapping[str, int], arrows: Sequence[Arrow], gap: int) -> list[Row]:
    heads = [_short(title, min(TITLE_CHARS_MAX, gap - 2)) for title in titles]
    lines = _Lifelines(places, gap, cell_len(heads[0]) // 2 if heads else 0)
    drawn = [(f"{lines.arrow(arrow, _label(arrow))}   ", arrow.state) for arrow in arrows]
    return lines.framed(heads, drawn)


def _numbered(places: Mapping[str, int], arrows: Sequence[Arrow], gap: int, room: int) -> list[Row]:
    lines = _Lifelines(places, gap, 1)
    room = min(room, max((cell_len(_label(arrow)) for arrow in arrows), default=0))
    drawn = [
        (f"{lines.arrow(arrow)}   {set_cell_size(_short(_label(arrow), room), room)}   ", arrow.state)
        for arrow in arrows
    ]
    return lines.framed([str(number) for number in range(1, len(places) + 1)], drawn)


def _listed(places: Mapping[str, int], arrows: Sequence[Arrow], width: int) -> list[Row]:
    drawn = list[Row]()
    for arrow in arrows:
        ends = f"{places[arrow.source] + 1:>3} {'╌' if arrow.is_dashed else '─'}▶ {places[arrow.target] + 1:<3}"
        drawn.append((f"{set_cell_size(_short(f'{ends} {_label(arrow)}', width), width)}   ", arrow.state))
    return drawn


@dataclass(frozen=True, slots=True)
class _Lifelines:
    """Vertical lines at equal distances."""

    places: Mapping[str, int]
    gap: int
    indent: int

    def bare(self) -> str:
        """A line without an arrow."""
        row = [" "] * (self.indent + self.gap * (len(self.places) - 1) + 1)
        for place in self.places.values():
            row[self.indent + place * self.gap] = "│"
        return "".join(row)

    def arrow(self, arrow: Arrow, label: str = "") -> str:
        """A line with an arrow, its label in the shaft as far as it fits."""
        source, target = (self.indent + self.places[end] * self.gap for end in (arrow.source, arrow.target))
        left, right = min(source, target), max(source, target)
        dash = "╌" if arrow.is_dashed else "─"
        room = right - left - 1
        said = _short(label, min(room - 6, LABEL_CHARS_MAX)) if room > 6 else ""  # noqa: PLR2004 - a head, a tail, and air around a label
        shaft = _centred(f" {said} ", room - 2, dash) if said else dash * (room - 2)
        body = f"{dash}{shaft}▶" if source < target else f"◀{shaft}{dash}"
        row = self.bare()
        return f"{row[: left + 1]}{body}{row[right:]}"

    def framed(self, heads: Sequence[str], drawn: Sequence[Row]) -> list[Row]:
        """The picture: heads above, lines, and heads below where the picture is long."""
        head, bare = (self._heads(heads), ""), (self.bare(), "")
        return [head, bare, *drawn, bare, *([head] if len(drawn) > HEADS_AGAIN_ROWS else ())]

    def _heads(self, heads: Sequence[str]) -> str:
        line = ""
        for number, head in enumerate(heads):
            start = max(0, self.indent + number * self.gap - cell_len(head) // 2)
            line = set_cell_size(line, start) + head
        return line


def _centred(text: str, cells: int, fill: str) -> str:
    """As `str.center`, but counted in cells."""
    missing = cells - cell_len(text)
    # Where the two sides differ, `str.center` favours one by this rule.
    left = missing // 2 + (missing & cells & 1)
    return fill * left + text + fill * (missing - left)
