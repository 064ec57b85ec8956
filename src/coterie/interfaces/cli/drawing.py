"""Draws a chain as SVG: one file that loads nothing, runs nothing, and follows the reader's light or dark scheme."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from rich.cells import cell_len

from coterie.interfaces.cli.chains import Bar, Chain
from coterie.interfaces.cli.sequence import Arrow

# All lengths are pixels at the picture's natural size.
MARGIN: Final = 32
HEADING: Final = 64
HEADING_NAMES_MAX: Final = 3
GUTTER: Final = 104
"""Width of row numbers and times, left of the lifelines."""
COLUMN_MIN: Final = 200
COLUMN_MAX: Final = 400
LIFELINES_AIM: Final = 1080
"""Width that the lifelines take if their number lets them."""
HEAD_HEIGHT: Final = 36
HEAD_WIDTH_MAX: Final = 200
ROW: Final = 50
BADGE_WIDTH: Final = 112
BADGE_HEIGHT: Final = 22
BAR: Final = 5
"""Half the width of a bar."""
BAR_MIN: Final = 12
BAR_APART: Final = 18
"""How far below its row a bar begins that follows another."""
LABEL_MAX: Final = 560
HEADS_AGAIN_ROWS: Final = 12
"""A longer picture repeats its heads at the end."""

TITLE_SIZE: Final = 18
HEAD_SIZE: Final = 13
TEXT_SIZE: Final = 12

_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to say, not even by number."""
_MARKUP: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_EMS: Final = (
    (frozenset("fijlrtI.,:;'`!|()[]{}/\\- "), 0.4),
    (frozenset("mwMW@%…—"), 1.0),
    (frozenset("ABCDEFGHKLNOPQRSTUVXYZ&_+=~<>"), 0.76),
)
"""About how broad characters are in the widest of the usual fonts, as parts of its size."""
_EM: Final = 0.62
_BOLD: Final = 1.1

_SIGNS: Final = {
    "completed": "M-4 0.5 L-1.2 3.2 L4 -3",
    "failed": "M-3.2 -3.2 L3.2 3.2 M3.2 -3.2 L-3.2 3.2",
    "cancelled": "M-4 0 H4",
    "interrupted": "M1.5 -4.5 L-2 0.5 H2 L-1.5 4.5",
    "running": "M-2.5 -4 L4 0 L-2.5 4 Z",
    "queued": "M-4 0 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0 M0 -2.2 V0.3 L1.8 1.4",
}
"""The sign of each state, around its middle."""

_LIGHT: Final = {
    "paper": "#ffffff",
    "panel": "#f6f8fa",
    "line": "#d0d7de",
    "ink": "#1f2328",
    "soft": "#59636e",
    "completed": "#1a7f37",
    "failed": "#cf222e",
    "cancelled": "#59636e",
    "interrupted": "#8250df",
    "running": "#0969da",
    "queued": "#9a6700",
}
_DARK: Final = {
    "paper": "#0d1117",
    "panel": "#161b22",
    "line": "#3d444d",
    "ink": "#f0f6fc",
    "soft": "#9198a1",
    "completed": "#3fb950",
    "failed": "#f85149",
    "cancelled": "#9198a1",
    "interrupted": "#ab7df8",
    "running": "#4493f8",
    "queued": "#d29922",
}
_FORMS: Final = (
    'text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans",sans-serif;'
    f"font-size:{TEXT_SIZE}px;unicode-bidi:isolate}}"
    f".title{{font-size:{TITLE_SIZE}px;font-weight:600}}.head text{{font-size:{HEAD_SIZE}px;font-weight:600}}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.number{font-variant-numeric:tabular-nums}"
    ".label{paint-order:stroke;stroke-width:5px;stroke-linejoin:round}.kind,.badge text{font-weight:600}"
    ".arrow{stroke-width:1.5;fill:none}.answer .arrow{stroke-dasharray:6 4}"
    ".sign{fill:none;stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}.badge rect{fill-opacity:.1}"
    ".bar{stroke-width:1.2;fill-opacity:.3}.open{stroke-dasharray:3 3}"
)


def draw_svg(chain: Chain) -> str:
    """Return the sequence diagram of *chain* as an SVG document, equal for equal chains."""
    layout = _Layout(chain)
    name, told = f"Messages between {_listed([title for _, title in chain.people])}", _told(chain)
    inside = [
        _node("title", _said(name), id="chain-title"),
        _node("desc", _said("\n".join(told)), id="chain-desc"),
        _node("style", _style()),
        _node("rect", class_="paper", width=layout.width, height=layout.height),
        *_heading(chain),
        *(_stripe(layout, row) for row in range(1, len(chain.arrows), 2)),
        *(_lifeline(layout, x) for x in layout.places.values()),
        *(_bar(layout, bar) for bar in chain.bars),
        *(_message(layout, row, arrow) for row, arrow in enumerate(chain.arrows)),
        *_heads(layout),
    ]
    return (
        _node(
            "svg",
            *(f"\n{one}" for one in inside),
            "\n",
            xmlns="http://www.w3.org/2000/svg",
            width=layout.width,
            height=layout.height,
            viewBox=f"0 0 {layout.width} {layout.height}",
            role="img",
            aria_labelledby="chain-title chain-desc",
        )
        + "\n"
    )


class _Layout:
    """Where everything is."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.titles = dict(chain.people)
        gaps = max(1, len(chain.people) - 1)
        self.column = min(COLUMN_MAX, max(COLUMN_MIN, LIFELINES_AIM // gaps))
        self.head_width = min(HEAD_WIDTH_MAX, self.column - 16)
        left = MARGIN + GUTTER + self.head_width // 2
        self.places = {id_: left + number * self.column for number, (id_, _) in enumerate(chain.people)}
        right = left + (len(chain.people) - 1) * self.column + self.head_width // 2
        self.badge = right + 24
        self.width = max(self.badge + BADGE_WIDTH + MARGIN, 640)
        self.top = MARGIN + HEADING
        self.bottom = self.y(len(chain.arrows) - 1) + 36
        self.heads = [self.top] if len(chain.arrows) <= HEADS_AGAIN_ROWS else [self.top, self.bottom]
        self.height = self.bottom + MARGIN + (HEAD_HEIGHT if len(self.heads) > 1 else 0)

    def y(self, row: int) -> int:
        """Where the arrow of a row is."""
        return self.top + HEAD_HEIGHT + 46 + row * ROW

    @cached_property
    def covered(self) -> frozenset[tuple[str, int]]:
        """Rows of lifelines that a bar covers."""
        return frozenset((bar.session, row) for bar in self.chain.bars for row in range(bar.first, bar.last + 1))

    def edge(self, session: str, row: int) -> int:
        """How far from the lifeline an arrow ends."""
        return BAR + 1 if (session, row) in self.covered else 1


def _heading(chain: Chain) -> Iterable[str]:
    counts = [_count(len(chain.arrows), "message"), _count(len(chain.people), "session")]
    facts = " · ".join([*counts, *(arrow.at for arrow in chain.arrows[-1:]), chain.id])
    titles = [_cut(title, HEAD_WIDTH_MAX, TITLE_SIZE * _BOLD) for _, title in chain.people]
    yield _text(_few(titles), MARGIN, MARGIN + 16, "title ink")
    yield _text(facts, MARGIN, MARGIN + 38, "soft")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s'[: number != 1]}"


def _few(titles: Sequence[str]) -> str:
    rest = len(titles) - HEADING_NAMES_MAX + 1
    return _listed(titles if rest <= 1 else [*titles[:-rest], f"{rest} more"])


def _listed(words: Sequence[str]) -> str:
    return " and ".join([*([", ".join(words[:-1])] if words[1:] else []), *words[-1:]]) or "nobody"


def _told(chain: Chain) -> Iterable[str]:
    """The picture in words, for who does not see it."""
    titles = dict(chain.people)
    for number, arrow in enumerate(chain.arrows, 1):
        said = f": {arrow.text}" if arrow.text else ""
        yield f"{number}. {titles[arrow.source]} to {titles[arrow.target]}, {arrow.label}, {arrow.state}{said}"


def _heads(layout: _Layout) -> Iterable[str]:
    for id_, title in layout.chain.people:
        x, left = layout.places[id_], layout.places[id_] - layout.head_width // 2
        shown = _cut(title, layout.head_width - 20, HEAD_SIZE * _BOLD)
        for top in layout.heads:
            yield _node(
                "g",
                _node("title", _said(title)),
                _node("rect", class_="panel edge", x=left, y=top, width=layout.head_width, height=HEAD_HEIGHT, rx=8),
                _text(shown, x, top + 23, "middle ink"),
                class_="head",
            )


def _lifeline(layout: _Layout, x: int) -> str:
    return _node("path", class_="line", d=f"M{x} {layout.top + HEAD_HEIGHT} V{layout.bottom}")


def _stripe(layout: _Layout, row: int) -> str:
    y, width = layout.y(row) - ROW + 18, layout.width - MARGIN
    return _node("rect", class_="panel", x=MARGIN // 2, y=y, width=width, height=ROW, rx=6)


def _bar(layout: _Layout, bar: Bar) -> str:
    x, top = layout.places[bar.session], layout.y(bar.first) + (BAR_APART if bar.follows else 0)
    end = layout.bottom if bar.runs else max(layout.y(bar.last) + 6, top + BAR_MIN)
    kind = f"bar {_known(bar.state)}{' open' if bar.runs else ''}"
    ground = _node("rect", class_="paper", x=x - BAR, y=top, width=2 * BAR, height=end - top, rx=3)
    return ground + _node("rect", class_=kind, x=x - BAR, y=top, width=2 * BAR, height=end - top, rx=3)


def _message(layout: _Layout, row: int, arrow: Arrow) -> str:
    titles, y = layout.titles, layout.y(row)
    told = f"{titles[arrow.source]} → {titles[arrow.target]}\n{arrow.label}, {arrow.state}\n{arrow.text}".strip()
    return _node(
        "g",
        _node("title", _said(told)),
        _text(str(row + 1), MARGIN, y + 4, "soft number"),
        _text(arrow.at, MARGIN + GUTTER - 20, y + 4, "soft number end"),
        _arrow(layout, row, arrow),
        _label(layout, row, arrow),
        _badge(layout.badge, y, arrow.state),
        class_="odd" if row % 2 else "even",
    )


def _arrow(layout: _Layout, row: int, arrow: Arrow) -> str:
    y, way = layout.y(row), 1 if layout.places[arrow.target] >= layout.places[arrow.source] else -1
    start = layout.places[arrow.source] + way * layout.edge(arrow.source, row)
    end = layout.places[arrow.target] - way * layout.edge(arrow.target, row)
    shaft = _node("path", class_="arrow", d=f"M{start} {y} H{end - way * 8}")
    point = _node("path", class_="point", d=f"M{end} {y} l{-way * 10} -5 v10 Z")
    return _node("g", shaft, point, class_="request" if arrow.answers is None else f"answer {_known(arrow.answers)}")


def _label(layout: _Layout, row: int, arrow: Arrow) -> str:
    ends = layout.places[arrow.source], layout.places[arrow.target]
    room = min(LABEL_MAX, abs(ends[0] - ends[1]) - 2 * BAR - 16)
    kind = _cut(arrow.label, room, TEXT_SIZE * _BOLD)
    left = room - _width(kind, TEXT_SIZE * _BOLD) - 8
    rest = _cut(arrow.text, left, TEXT_SIZE) if arrow.text and left > 3 * TEXT_SIZE else ""
    return _node(
        "text",
        _node("tspan", _said(kind), class_="kind"),
        _node("tspan", _said(rest), dx=6) if rest else "",
        class_="label middle ink",
        x=sum(ends) // 2,
        y=layout.y(row) - 9,
    )


def _badge(x: int, y: int, state: str) -> str:
    known = _known(state)
    return _node(
        "g",
        _node(
            "rect",
            class_="mark",
            x=x,
            y=y - BADGE_HEIGHT // 2,
            width=BADGE_WIDTH,
            height=BADGE_HEIGHT,
            rx=BADGE_HEIGHT // 2,
        ),
        _node("path", class_="sign", d=_SIGNS[known], transform=f"translate({x + 15} {y})") if known in _SIGNS else "",
        _text(_cut(state, BADGE_WIDTH - 36, TEXT_SIZE * _BOLD), x + 27, y + 4, "mark-text"),
        class_=f"badge {known}",
    )


def _known(state: str) -> str:
    return state if state in _SIGNS else "other"


def _style() -> str:
    dark = _colours(_DARK)
    return f"{_FORMS}\n{_colours(_LIGHT)}\n@media (prefers-color-scheme:dark){{{dark}}}"


def _colours(scheme: Mapping[str, str]) -> str:
    fixed = (
        ".paper{{fill:{paper}}}.panel{{fill:{panel}}}.edge,.line{{stroke:{line}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}"
        ".even .label{{stroke:{paper}}}.odd .label{{stroke:{panel}}}"
        ".request .arrow{{stroke:{soft}}}.request .point{{fill:{soft}}}"
    ).format(**scheme)
    states = (
        f".{state} .mark{{fill:{colour};stroke:{colour}}}.{state} .sign{{stroke:{colour}}}"
        f".{state} .mark-text,.{state} .point{{fill:{colour}}}.{state} .arrow{{stroke:{colour}}}"
        f".bar.{state}{{fill:{colour};stroke:{colour}}}"
        for state, colour in [*((state, scheme[state]) for state in _SIGNS), ("other", scheme["soft"])]
    )
    return fixed + "".join(states)


def _cut(text: str, width: float, size: float) -> str:
    """*text*, or as many of its characters as are not wider than *width* with an ellipsis."""
    if _width(text, size) <= width:
        return text
    room = width - _width("…", size)
    end = 0
    while (room := room - _width(text[end], size)) >= 0:
        end += 1
    return text[:end].rstrip() + "…"


def _width(text: str, size: float) -> float:
    """About the width of *text* in pixels."""
    return size * sum(_em(char) for char in text)


def _em(char: str) -> float:
    cells = cell_len(char)
    return next((em for chars, em in _EMS if char in chars), _EM) if cells == 1 else cells * 0.55


def _text(said: str, x: int, y: int, kind: str) -> str:
    return _node("text", _said(said), class_=kind, x=x, y=y)


def _node(name: str, *inside: str, **attributes: str | int) -> str:
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{_said(str(value))}"' for key, value in attributes.items())
    return f"<{name}{given}>{''.join(inside)}</{name}>"


def _said(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text).translate(_MARKUP)
