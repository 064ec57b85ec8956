"""`python -m tests.faults`: breaks the product on purpose, and exits with 1 unless the tests notice each time."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter

from tests.faults.fault import Fault, FaultError, every
from tests.faults.judging import Finding, judged


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults by their names; all if none is given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at once (default: one a core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def _chosen(names: Sequence[str]) -> list[Fault]:
    found = {fault.name: fault for fault in every()}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise FaultError(f"there is no fault {', '.join(unknown)}")
    return [found[name] for name in names or found]


def _line(finding: Finding) -> str:
    test = finding.caught_by.rpartition("::")[2]
    told = "" if finding.verdict.is_good else f"\n    {finding.says}"
    broken = finding.breaks[0] if finding.breaks[0].startswith("design") else ", ".join(finding.breaks)
    return f"{finding.verdict:<9} {finding.seconds:5.1f} s  {finding.fault}  ({broken})  {test}{told}"


def main() -> int:
    """Try faults, print what became of each, and return the exit status."""
    given, began, findings = _arguments(), perf_counter(), list[Finding]()
    try:
        for finding in judged(_chosen(given.names), given.jobs):
            findings.append(finding)
            if not given.json:
                sys.stdout.write(_line(finding) + "\n")
                sys.stdout.flush()
    except FaultError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    caught, seconds = sum(finding.verdict.is_good for finding in findings), round(perf_counter() - began, 1)
    if given.json:
        shown = [asdict(finding) for finding in sorted(findings, key=lambda finding: finding.fault)]
        sys.stdout.write(
            json.dumps({"caught": caught, "of": len(findings), "seconds": seconds, "faults": shown}) + "\n"
        )
    else:
        sys.stdout.write(f"{caught} of {len(findings)} faults were caught, in {seconds} s\n")
    return 0 if caught == len(findings) else 1


if __name__ == "__main__":
    sys.exit(main())
