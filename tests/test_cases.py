"""Faults that hosts of agents are known for: each is shown by a test, or it is told why it cannot happen here.

A test names its cases in its docstring: "Case 54", "Cases 13 and 14", "(case 54)". The others stand in
`cases_not_applicable.md`. The numbers are those of a wider list of public reports, so there are gaps.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = (ROOT / "tests", ROOT / "src" / "coterie" / "testing" / "contract")
"""Where tests stand: the contract suites are shipped, so that others can run them too."""
DOCUMENT: Final = ROOT / "tests" / "cases_not_applicable.md"

CASES: Final[Mapping[str, tuple[int, ...]]] = {
    "answers that never come": (1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20, 21),
    "answers that come twice": (22, 23, 25, 26, 27, 29, 30),
    "the right message in the wrong session": (31, 32, 34, 35, 36, 38, 39, 40),
    "names and addresses": (42, 43, 45, 46, 47, 49, 50, 51, 53),
    "busy targets, queues, steering": (54, 55, 57, 58, 59, 61, 62, 63, 65, 66, 67, 69, 70, 71, 73, 74),
    "deadlocks, loops, fan-out": (75, 76, 78, 79, 80, 82, 83, 84, 86, 87, 88),
    "stuck turns and cancels": (89, 90, 92, 93, 94, 96, 97, 98, 100, 101, 102, 104, 105, 106),
    "results that are empty, partial or too big": (108, 109, 111, 112, 113, 115, 116, 117),
    "restarts": (119, 120, 122, 123, 124, 127),
    "storage": (128, 129, 131, 132, 133),
    "text, locale, time": (136, 137, 139, 140, 141, 143, 144, 145, 147, 148),
    "safety": (162, 163, 165, 166, 167, 169, 170, 171, 173, 174, 175, 177, 178, 179, 181, 182, 183, 185, 186),
    "what is held for a time": (206, 207, 209),
    "what people ask for": (213, 214, 216, 217, 218),
}
OPEN: Final[Mapping[str, tuple[int, ...]]] = {
    "live views": (149, 150, 152, 153, 154, 156, 157, 158),
    "protocols": (187, 188, 190, 191, 192, 194, 195, 196, 198, 199, 200, 202, 203, 204),
}
"""Cases of parts that are still to come: a test may name them, and nothing is demanded."""

_NAMED: Final = re.compile(r"\b[Cc]ases? (\d+(?:(?:, | and |, and )\d+)*)")
_ROW: Final = re.compile(r"^\| (\d+) \| +(.*?) +\| +(.*?) +\|$", re.MULTILINE)
_REASON_CHARS_MIN: Final = 20


def named(text: str) -> Iterator[tuple[int, str]]:
    """Each case that a test of a module's *text* names in its docstring, with the test."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for match in _NAMED.finditer(ast.get_docstring(node) or ""):
                yield from ((int(number), node.name) for number in re.findall(r"\d+", match[1]))


@cache
def _shown() -> Mapping[int, tuple[str, ...]]:
    """The tests of each case."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for path in sorted(path for folder in FOLDERS for path in folder.rglob("*.py")):
        for case, test in named(path.read_text("utf-8")):
            found[case].append(f"{path.relative_to(ROOT)}::{test}")
    return {case: tuple(tests) for case, tests in found.items()}


def rows(text: str) -> list[tuple[int, str, str]]:
    """Case, fault and reason of each row of a table in *text*."""
    return [(int(match[1]), match[2], match[3]) for match in _ROW.finditer(text)]


@cache
def _listed() -> tuple[tuple[int, str, str], ...]:
    return tuple(rows(DOCUMENT.read_text("utf-8")))


@pytest.mark.parametrize("kind", CASES)
def test_a_case_is_shown_by_a_test_or_listed_with_its_reason(kind: str) -> None:
    """A fault that nobody looks for comes back; and what is in both places is told wrongly in one of them."""
    listed = {case for case, _, _ in _listed()}
    neither = [case for case in CASES[kind] if case not in _shown() and case not in listed]
    assert not neither, f"name each in the docstring of the test that shows it, or list it in {DOCUMENT.name}"
    both = {case: _shown()[case] for case in CASES[kind] if case in _shown() and case in listed}
    assert not both, f"take it out of {DOCUMENT.name}"


def test_what_is_listed_is_a_case_and_has_a_reason() -> None:
    """An empty cell would be an excuse for anything."""
    known = {case for cases in CASES.values() for case in cases}
    cases = [case for case, _, _ in _listed()]
    assert cases == sorted(set(cases))
    assert set(cases) <= known
    assert all(len(cell) >= _REASON_CHARS_MIN for _, *cells in _listed() for cell in cells)
    # Every row of the file's table but its two heads.
    assert len(cases) == len([line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("|")]) - 2


def test_no_test_names_a_case_that_there_is_not() -> None:
    """A number with a slip of the pen shows nothing."""
    known = {case for cases in (*CASES.values(), *OPEN.values()) for case in cases}
    assert not {case: tests for case, tests in _shown().items() if case not in known}


def test_the_scan_sees_every_way_to_name_a_case() -> None:
    """A check that passes by seeing nothing holds nothing."""
    docstrings = ("Case 1: so.", "Cases 2 and 3: so.", "So (case 4).", "Cases 5, 6 and 7.", "In cases.", "")
    text = "\n".join(f'async def test_{number}():\n    """{one}"""' for number, one in enumerate(docstrings))
    assert [case for case, _ in named(text)] == [1, 2, 3, 4, 5, 6, 7]
    assert list(named('def helper():\n    """Case 1: no test."""\n# Case 2: nor a comment.\n')) == []
    assert rows("| case | a | b |\n|---|---|---|\n| 9 | it | breaks |\n| 10 |  | x |") == [
        (9, "it", "breaks"),
        (10, "", "x"),
    ]
