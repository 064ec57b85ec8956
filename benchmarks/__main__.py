"""Runs the benchmarks and prints what was asked, the figures, their budgets, and which were met or missed."""

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, cast

import uvloop

from benchmarks import table
from benchmarks.bench import Bench
from benchmarks.measure import Figure
from benchmarks.stores import GROUNDS, SQLITE
from benchmarks.table import Answered

QUESTIONS: Final = (
    "round_trip",
    "pairs",
    "sends",
    "http_round_trip",
    "delivery",
    "growth",
    "sidebar",
    "startup",
    "full_start",
    "raw_postgres",
)
OF_ANY_STORE: Final = ("round_trip", "pairs", "sends", "http_round_trip")
"""Questions that can be asked of every store; the others are about files of SQLite, or processes that have them."""
OLD_MESSAGES: Final = 1_000_000
OLD_MESSAGES_QUICK: Final = 1_000
_FOLDER: Final = ".bench"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="question", help=f"some of {', '.join(QUESTIONS)}; all if none")
    parser.add_argument(
        "--store",
        action="append",
        choices=tuple(GROUNDS),
        help=f"ask {', '.join(OF_ANY_STORE)} of this store; may be repeated (default sqlite)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object")
    shown.add_argument("--markdown", action="store_true", help="print tables for a document")
    shown.add_argument("--into", type=Path, metavar="FILE", help="put these tables between the marks of a document")
    parser.add_argument("--quick", action="store_true", help="a smoke of a few seconds, whose times say little")
    parser.add_argument(
        "--old-messages",
        type=int,
        metavar="N",
        help=f"how old a ledger grows (default {OLD_MESSAGES:,}: 4 GiB)",
    )
    parser.add_argument("--data", type=Path, help=f"a folder on the disk to measure (default {_FOLDER}/ here)")
    given = parser.parse_args()
    unknown = sorted(set(given.questions) - set(QUESTIONS))
    if unknown:
        parser.error(f"no question is called {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    return given


def _answered(question: str, bench: Bench) -> Answered:
    """Ask one question."""
    try:
        module = importlib.import_module(f"benchmarks.{question}")
    except ImportError as error:
        return Answered(question, question, (Figure(question, None, "", note=f"skipped: {error}"),))
    other = "" if bench.ground is SQLITE else f"on {bench.ground.name}: "
    print(f"measuring {other}{question} …", file=sys.stderr, flush=True)
    # The loop of the host's server.
    figures = uvloop.run(module.run(bench))
    about = (module.__doc__ or question).partition("\n")[0]
    kept = (
        replace(one, what=f"{other}{one.what}", budget=bench.ground.budget(one.budget))
        for one in cast("list[Figure]", figures)
    )
    return Answered(question, f"{other}{about}", tuple(kept))


def _asked(folder: Path, given: argparse.Namespace) -> list[Answered]:
    """Ask what is asked for, of each store in turn."""
    usual = OLD_MESSAGES_QUICK if given.quick else OLD_MESSAGES
    questions, answers = given.questions or QUESTIONS, list[Answered]()
    for name in given.store or ["sqlite"]:
        with ExitStack() as stack:
            ground = stack.enter_context(GROUNDS[name]())
            own = folder / name
            own.mkdir()
            bench = Bench(own, given.quick, given.old_messages or usual, ground)
            asked = [one for one in questions if ground is SQLITE or one in OF_ANY_STORE]
            answers += [_answered(question, bench) for question in asked]
    return answers


def _as_json(question: str, figure: Figure) -> dict[str, Any]:
    return {"question": question} | asdict(figure) | {"met": figure.is_met}


def main() -> None:
    """Measure what is asked for."""
    given = _arguments()
    parent = given.data or Path(_FOLDER)
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent)).absolute()
    try:
        answers = _asked(folder, given)
    finally:
        shutil.rmtree(folder)
        if given.data is None and not any(parent.iterdir()):
            parent.rmdir()
    about = table.machine(os.cpu_count())
    if given.json:
        figures = [_as_json(answer.question, figure) for answer in answers for figure in answer.figures]
        print(json.dumps({"machine": about, "figures": figures}, indent=1, ensure_ascii=False))
    elif given.into:
        table.write_into(given.into, table.markdown(answers, about))
    else:
        print(table.markdown(answers, about) if given.markdown else table.text(answers, about))


if __name__ == "__main__":
    main()
