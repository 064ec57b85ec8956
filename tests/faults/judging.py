"""Puts faults into copies, runs the tests that must notice, and says whether they did.

A fault is caught if a test fails by what it checks. Code that cannot be imported, a test that is not there, and a
fixture that breaks before its test begins prove nothing: whatever they were meant to break, they break everything.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from queue import SimpleQueue
from time import perf_counter
from typing import Final

from tests.faults.copies import Copy, copies
from tests.faults.fault import Fault, FaultError, broken
from tests.faults.witness import Account, Failure

_NO_PROOF: Final = frozenset({"SyntaxError", "ImportError", "NameError"})
"""Raised by code that was not written rightly; subclasses are meant too."""
_SAID_CHARS_MAX: Final = 300


class Verdict(StrEnum):
    """What became of a fault."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    """Its tests passed."""
    STALE = "stale"
    """It does not fit the code."""
    NO_PROOF = "no proof"
    """Its tests did not run, or ended by something else than what they check."""
    RED_WITHOUT = "red without it"
    """Its tests fail on sound code too."""

    @property
    def is_good(self) -> bool:
        """Whether the fault was noticed."""
        return self is Verdict.CAUGHT


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one fault, and how that is known."""

    fault: str
    breaks: tuple[str, ...]
    verdict: Verdict
    caught_by: str = ""
    """The first test that failed."""
    says: str = ""
    """What it said, or why there is no verdict."""
    seconds: float = 0.0


def judge(seen: Account | None, printed: str) -> tuple[Verdict, str, str]:
    """The verdict on a fault with which a run was *seen*, the test that tells it, and what that said."""
    if seen is None:
        return Verdict.NO_PROOF, "", printed[-_SAID_CHARS_MAX:]
    strays = [failure for failure in seen.failures if not _proves(failure)]
    if strays:
        return Verdict.NO_PROOF, strays[0].test, f"{strays[0].when}: {strays[0].says[:_SAID_CHARS_MAX]}"
    if seen.failures:
        return Verdict.CAUGHT, seen.failures[0].test, seen.failures[0].says[:_SAID_CHARS_MAX]
    if seen.passed:
        return Verdict.SURVIVED, "", ""
    return Verdict.NO_PROOF, "", f"no test ran, {seen.skipped} were skipped"


def _proves(failure: Failure) -> bool:
    return failure.when in ("call", "teardown") and _NO_PROOF.isdisjoint(failure.kinds)


def names(test: str, selected: str) -> bool:
    """Whether *test* is what *selected* names, or one of its cases."""
    return test == selected or test.startswith(f"{selected}[")


def judged(faults: Sequence[Fault], jobs: int) -> Iterator[Finding]:
    """Try *faults*, so many at once; each finding comes as it is known.

    Raises:
        FaultError: The tests of the faults do not run on sound code at all.
    """
    with copies(jobs) as made, ThreadPoolExecutor(jobs) as pool:
        free = SimpleQueue[Copy]()
        for copy in made:
            free.put(copy)
        red = [test for found in pool.map(_red, made, _shared({*_tests(faults)}, jobs)) for test in found]
        trying = [pool.submit(_tried, fault, red, free) for fault in faults]
        for done in as_completed(trying):
            yield done.result()


def _tests(faults: Sequence[Fault]) -> Iterator[str]:
    for fault in faults:
        yield from fault.caught_by


def _shared(tests: set[str], jobs: int) -> list[list[str]]:
    """Shares of about one size, a file to one of them: what a file sets up is set up once."""
    shares: list[list[str]] = [[] for _ in range(jobs)]
    files = [list(group) for _, group in groupby(sorted(tests), lambda test: test.partition("::")[0])]
    for group in sorted(files, key=len, reverse=True):
        min(shares, key=len).extend(group)
    return shares


def _red(copy: Copy, tests: list[str]) -> list[str]:
    """The tests that fail where there is no fault."""
    if not tests:
        return []
    seen, printed = copy.run(tests, all_of_them=True)
    if seen is None or any(failure.when == "collect" for failure in seen.failures):
        raise FaultError(f"the tests of the faults do not run on sound code:\n{printed}")
    return [failure.test for failure in seen.failures]


def _tried(fault: Fault, red: Sequence[str], free: SimpleQueue[Copy]) -> Finding:
    if any(names(test, selected) for test in red for selected in fault.caught_by):
        return Finding(fault.name, fault.breaks, Verdict.RED_WITHOUT)
    copy, began = free.get(), perf_counter()
    try:
        with copy.changed(broken(fault, copy.tree)):
            verdict, test, says = judge(*copy.run(fault.caught_by))
    except FaultError as error:
        return Finding(fault.name, fault.breaks, Verdict.STALE, says=str(error))
    finally:
        free.put(copy)
    return Finding(fault.name, fault.breaks, verdict, test, says, round(perf_counter() - began, 1))
