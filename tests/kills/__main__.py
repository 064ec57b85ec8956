"""`python -m tests.kills`: kills hosts, or lets many senders write at once, and exits with 1 if anything is broken."""

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.kills.driver import Report, run
from tests.kills.senders import Crowd, write
from tests.kills.stores import STORES


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=8, help="how often a host is killed under load (default 8)")
    parser.add_argument("--seed", type=int, default=1, help="what is asked for, and after how much a kill comes")
    parser.add_argument("--senders", type=int, help="kill nothing: so many processes write to one session")
    parser.add_argument("--each", type=int, default=100, help="messages of each of them (default 100)")
    parser.add_argument("--store", choices=list(STORES), default="sqlite")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report there too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def _show(report: Report | Crowd) -> str:
    figures = asdict(report)
    faults = [f"  {one}" for one in figures.pop("faults")]
    return "\n".join([", ".join(f"{name} {value}" for name, value in figures.items()), *faults])


def main() -> int:
    """Run, print, and return the exit status; the folder stays where something is broken."""
    given = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="coterie-kills-"))
    ok = False
    try:
        if given.senders:
            report: Report | Crowd = write(folder, given.senders, given.each, given.store)
        else:
            report = run(folder, given.seed, given.kills, given.store)
        ok = report.ok
    finally:
        if ok:
            shutil.rmtree(folder)
        else:
            sys.stderr.write(f"something is broken; data and logs are in {folder}\n")
    text = json.dumps(asdict(report))
    if given.report:
        given.report.write_text(text + "\n", "utf-8")
    sys.stdout.write((text if given.json else _show(report)) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
