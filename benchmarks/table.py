"""Shows figures to people: in columns for a terminal, in Markdown for a document."""

import platform
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import budgets
from benchmarks.measure import Figure

BEGIN: Final = "<!-- measured: begin -->"
END: Final = "<!-- measured: end -->"
_NAMED_MAX: Final = 16
_HEAD: Final = ("what", "figure", "budget", "")


@dataclass(frozen=True, slots=True)
class Answered:
    """One question and its figures."""

    question: str
    about: str
    figures: tuple[Figure, ...]


def machine(cores: int | None) -> dict[str, Any]:
    """What of this machine and its programs makes times what they are."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores,
    }


def text(answers: Sequence[Answered], about: Mapping[str, Any]) -> str:
    """The figures in columns, a block for each question."""
    blocks = [[_line(figure) for figure in answer.figures] for answer in answers]
    lines = [_HEAD, *(line for block in blocks for line in block)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    shown: list[str] = []
    for answer, block in zip(answers, blocks, strict=True):
        shown += ["", answer.about]
        shown += [
            f"{what:<{widths[0]}}  {figure:>{widths[1]}}  {budget:<{widths[2]}}  {met}".rstrip()
            for what, figure, budget, met in block
        ]
    return "\n".join([*shown[1:], "", *_summary(answers), _told(about)])


def markdown(answers: Sequence[Answered], about: Mapping[str, Any]) -> str:
    """The figures as one table for each question."""
    shown: list[str] = []
    for answer in answers:
        shown += [f"**{answer.about}**", "", f"| {' | '.join(_HEAD)} |".replace("|  |", "| |"), "|---|---:|---|---|"]
        shown += [f"| {' | '.join(_line(figure))} |".replace("  ", " ") for figure in answer.figures]
        shown.append("")
    return "\n".join([*shown, *(f"{line}  " for line in _summary(answers)), _told(about)])


def write_into(path: Path, table: str) -> None:
    """Put a table between the marks of a document."""
    before, mark, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, other, after = rest.partition(END)
    if not (mark and other):
        sys.exit(f"{path} has no {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def _line(figure: Figure) -> tuple[str, str, str, str]:
    if figure.value is None:
        return figure.what, figure.note, "", ""
    verdict = {True: "met", False: "MISSED", None: ""}[figure.is_met]
    verdict += f": {figure.note}" if figure.note else ""
    return figure.what, f"{_number(figure.value)} {figure.unit}", str(figure.budget or ""), verdict


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _summary(answers: Sequence[Answered]) -> list[str]:
    """How many budgets were met, which were missed, and which nobody has measured here."""
    found: dict[str, bool] = {}
    for figure in (figure for answer in answers for figure in answer.figures):
        if figure.budget is not None and figure.is_met is not None:
            found[figure.budget.name] = found.get(figure.budget.name, True) and figure.is_met
    missed = [name for name, met in found.items() if not met]
    rest = [budget.name for budget in budgets.ALL if budget.name not in found]
    lines = [f"{len(found) - len(missed)} budgets met, {len(missed)} missed{_named(missed)}"]
    return [*lines, f"{len(rest)} not measured{_named(rest)}"] if rest else lines


def _named(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if 0 < len(names) <= _NAMED_MAX else ""


def _told(about: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in about.items())
