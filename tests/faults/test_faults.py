"""Every fault fits the code and names tests that are there; whether they notice is for `python -m tests.faults`."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from tests.faults.copies import Copy
from tests.faults.fault import DESIGN, FOLDER, ROOT, Fault, FaultError, broken, every, read
from tests.faults.judging import Verdict, judge, names
from tests.faults.witness import Account, Failure
from tests.guarantees import PROMISES

FILES: Final = sorted(file.stem for file in FOLDER.glob("*.patch"))
CONTRACT: Final = ROOT / "src" / "coterie" / "testing" / "contract"
GOOD: Final = """\
Something is broken.

Breaks: I1
Caught-by: tests/a.py::test_a

--- a/src/coterie/a.py
+++ b/src/coterie/a.py
@@ -1,2 +1,2 @@
 one
-two
+three
"""


def _fault(name: str) -> Fault:
    return read(name, (FOLDER / f"{name}.patch").read_text("utf-8"))


@cache
def _all() -> tuple[Fault, ...]:
    return every()


@cache
def _tests_in(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"def (test_\w+)", file.read_text("utf-8")))


@cache
def _contract() -> frozenset[str]:
    return frozenset(test for file in CONTRACT.glob("*.py") for test in _tests_in(file))


def _missing(fault: Fault) -> Iterator[str]:
    """The tests of a fault that are nowhere."""
    for selected in fault.caught_by:
        file, *parts = selected.partition("[")[0].split("::")
        # A class of a test module takes its tests from the contract of all stores.
        known = [_tests_in(ROOT / file), *([_contract()] if len(parts) == 2 else [])] if (ROOT / file).is_file() else []
        if not parts or not any(parts[-1] in tests for tests in known):
            yield selected


@pytest.mark.parametrize("name", FILES)
def test_a_fault_fits_the_code_and_names_who_must_notice(name: str) -> None:
    """One that does not fit any more would be passed over; write it anew for the code as it is."""
    fault = _fault(name)
    for path, text in broken(fault, ROOT).items():
        if path.endswith(".py"):
            ast.parse(text, path)
    assert not list(_missing(fault))
    assert all(one in PROMISES or one.startswith(f"{DESIGN}: ") for one in fault.breaks)


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_is_broken_by_a_fault(promise: str) -> None:
    """A promise whose tests were never seen to fail may be held by nothing."""
    assert any(promise in fault.breaks for fault in _all())


def test_no_two_faults_are_the_same() -> None:
    """A copy under another name counts for nothing."""
    assert len({fault.blocks for fault in _all()}) == len(FILES)


def test_a_fault_is_a_header_and_a_diff() -> None:
    """The form, as it is written down once."""
    fault = read("a", GOOD)
    assert (fault.says, fault.breaks, fault.caught_by) == ("Something is broken.", ("I1",), ("tests/a.py::test_a",))
    (block,) = fault.blocks
    assert (block.path, block.before, block.after) == ("src/coterie/a.py", "one\ntwo\n", "one\nthree\n")


@pytest.mark.parametrize(
    "bad",
    [
        GOOD.partition("--- a")[0],
        GOOD.replace("Something is broken.\n\n", ""),
        GOOD.replace("Breaks: I1\n", ""),
        GOOD.replace("Breaks: I1\n", "Breaks: I1\nBreaks: I2\n"),
        GOOD.replace("Caught-by: tests/a.py::test_a\n", ""),
        GOOD.replace("Breaks:", "Broken:"),
        GOOD.replace("src/coterie", "tests"),
        GOOD.replace("+++ b/src/coterie/a.py\n", ""),
        GOOD.replace("@@ -1,2 +1,2 @@\n", ""),
        GOOD.replace(" one\n-two\n", ""),
        GOOD.replace("+three", "+two"),
        GOOD.replace(" one", "one"),
    ],
)
def test_what_is_not_of_the_form_is_refused(bad: str) -> None:
    """A fault that is read wrongly is a fault that is not tried."""
    with pytest.raises(FaultError):
        read("a", bad)


@pytest.mark.parametrize("text", ["one\n", "one\ntwo\none\ntwo\n", "none\ntwo\n", "one\ntwos\n", "one\n two\n"])
def test_lines_that_are_not_there_once_are_stale(tmp_path: Path, text: str) -> None:
    """The code has changed, or the fault says too little about where it belongs."""
    file = tmp_path / "src" / "coterie" / "a.py"
    file.parent.mkdir(parents=True)
    with pytest.raises(FaultError, match="not there"):
        broken(read("a", GOOD), tmp_path)
    file.write_text(text)
    with pytest.raises(FaultError, match="times in"):
        broken(read("a", GOOD), tmp_path)


def test_lines_are_found_wherever_they_are(tmp_path: Path) -> None:
    """The numbers of a diff are those of the day on which it was written."""
    file = tmp_path / "src" / "coterie" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("zero\n" * 9 + "one\ntwo\nfour\n")
    assert broken(read("a", GOOD), tmp_path) == {"src/coterie/a.py": "zero\n" * 9 + "one\nthree\nfour\n"}


def _seen(*failures: tuple[str, str], passed: int = 1) -> Account:
    found = [Failure("tests/a.py::test_a", when, [kind, "Exception"], "why") for when, kind in failures]
    return Account("", passed=passed, failures=found)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (_seen(("call", "AssertionError")), Verdict.CAUGHT),
        (_seen(("teardown", "AssertionError")), Verdict.CAUGHT),
        (_seen(("call", "Failed")), Verdict.CAUGHT),
        (_seen(), Verdict.SURVIVED),
        (_seen(passed=0), Verdict.NO_PROOF),
        (_seen(("call", "NameError")), Verdict.NO_PROOF),
        (_seen(("call", "ImportError")), Verdict.NO_PROOF),
        (_seen(("setup", "AssertionError")), Verdict.NO_PROOF),
        (_seen(("collect", "SyntaxError")), Verdict.NO_PROOF),
        (None, Verdict.NO_PROOF),
    ],
)
def test_only_a_failed_check_catches_a_fault(seen: Account | None, verdict: Verdict) -> None:
    """A fault that breaks everything proves nothing about the test that was to find it."""
    assert judge(seen, "printed")[0] is verdict


def test_a_selected_test_stands_for_its_cases_and_for_no_other() -> None:
    """A name may be the beginning of another one."""
    assert names("tests/a.py::test_a", "tests/a.py::test_a")
    assert names("tests/a.py::test_a[one]", "tests/a.py::test_a")
    assert not names("tests/a.py::test_ab", "tests/a.py::test_a")


def test_a_copy_is_as_it_was_when_its_fault_is_out(tmp_path: Path) -> None:
    """Else each fault would be tried on top of those before it."""
    copy, path = Copy(tmp_path), "src/coterie/core/chain.py"
    file = copy.tree / path
    before = file.read_bytes(), file.stat().st_mtime_ns
    with copy.changed({path: "broken"}):
        assert file.read_text() == "broken"
        assert file.stat().st_mtime_ns != before[1]
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
