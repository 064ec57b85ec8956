"""Runs the benchmarks and prints a table: what, figure, budget, met or missed."""

import argparse
import importlib
import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.measure import Bench, Figure

QUESTIONS: Final = ("round_trip", "pairs", "sends", "http_round_trip", "growth", "startup")
OLD_MESSAGES: Final = 100_000
OLD_MESSAGES_FULL: Final = 1_000_000
OLD_MESSAGES_QUICK: Final = 1_000
_FOLDER: Final = ".bench"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="question", help=f"some of {', '.join(QUESTIONS)}; all if none")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--quick", action="store_true", help="a smoke of a few seconds, whose times say little")
    parser.add_argument("--full", action="store_true", help=f"grow the ledger to {OLD_MESSAGES_FULL:,} old messages")
    parser.add_argument("--data", type=Path, help=f"a folder on the disk to measure (default {_FOLDER}/ here)")
    given = parser.parse_args()
    unknown = sorted(set(given.questions) - set(QUESTIONS))
    if unknown:
        parser.error(f"no question is called {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    return given


def _measure(question: str, bench: Bench) -> list[Figure]:
    try:
        run = importlib.import_module(f"benchmarks.{question}").run
    except ImportError as error:
        return [Figure(question, None, "", note=f"skipped: {error}")]
    print(f"measuring {question} …", file=sys.stderr, flush=True)
    # The loop of the host's server.
    return uvloop.run(run(bench))


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def _as_json(question: str, figure: Figure) -> dict[str, Any]:
    return {"question": question} | asdict(figure) | {"met": figure.is_met}


def _line(figure: Figure) -> tuple[str, str, str, str]:
    if figure.value is None:
        return figure.what, figure.note, "", ""
    budget = str(figure.budget) if figure.budget else ""
    verdict = {True: "met", False: "MISSED", None: ""}[figure.is_met]
    return figure.what, f"{_number(figure.value)} {figure.unit}", budget, verdict


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _table(figures: Sequence[tuple[str, Figure]]) -> str:
    lines = [("what", "figure", "budget", "")]
    lines += [_line(figure) for _, figure in figures]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    shown = [
        f"{what:<{widths[0]}}  {figure:>{widths[1]}}  {budget:<{widths[2]}}  {met}"
        for what, figure, budget, met in lines
    ]
    missed = sum(figure.is_met is False for _, figure in figures)
    about = ", ".join(f"{name} {value}" for name, value in _machine().items())
    return "\n".join(line.rstrip() for line in [*shown, "", f"{missed} missed; {about}"])


def main() -> None:
    """Measure what is asked for."""
    given = _arguments()
    usual = OLD_MESSAGES_FULL if given.full else OLD_MESSAGES
    parent = given.data or Path(_FOLDER)
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent)).absolute()
    try:
        bench = Bench(folder, given.quick, OLD_MESSAGES_QUICK if given.quick else usual)
        figures = [(name, figure) for name in given.questions or QUESTIONS for figure in _measure(name, bench)]
    finally:
        shutil.rmtree(folder)
        if given.data is None and not any(parent.iterdir()):
            parent.rmdir()
    if given.json:
        shown = {"machine": _machine(), "figures": [_as_json(name, figure) for name, figure in figures]}
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        print(_table(figures))


if __name__ == "__main__":
    main()
