"""Promises and proofs belong together: neither stands alone, and the document tells the same story."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.guarantees import PROMISES

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = (ROOT / "tests", ROOT / "src" / "coterie" / "testing")
"""Where proofs stand: the tests, and the contract suites that others can run too."""
DOCUMENT: Final = ROOT / "docs" / "guarantees.md"
_HEADING: Final = re.compile(r"^### (I\d+) ·.*?(?P<open> · not proved yet)?$", re.MULTILINE)


def proofs(text: str) -> Iterator[tuple[str, int]]:
    """Promise and line of each `guarantee("…")` and `pytest.mark.guarantee("…")` in a module's *text*."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("guarantee", "pytest.mark.guarantee"):
            continue
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value, node.lineno


def _found() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(path for folder in FOLDERS for path in folder.rglob("*.py")):
        for promise, line in proofs(path.read_text("utf-8")):
            found.setdefault(promise, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_has_a_proof(promise: str) -> None:
    """A sentence that no test holds is a hope."""
    remedy = (
        f'{promise} ("{PROMISES[promise]}") has no proof: mark the test that would fail with @guarantee("{promise}")'
    )
    proved = promise in _found()
    assert proved, remedy


def test_a_proof_names_a_promise() -> None:
    """A mark with a misspelt id proves nothing."""
    strays = {promise: places for promise, places in _found().items() if promise not in PROMISES}
    assert not strays, f"no such promise in tests/guarantees.py: {strays}"


def test_the_document_tells_every_promise_and_which_are_open() -> None:
    """A reader of the document and a reader of the tests learn the same."""
    told = {match[1]: match["open"] is None for match in _HEADING.finditer(DOCUMENT.read_text("utf-8"))}
    assert set(told) == {f"I{number}" for number in range(1, len(told) + 1)}
    assert {promise for promise, kept in told.items() if kept} == set(PROMISES)


def test_the_scan_sees_both_ways_to_mark() -> None:
    """Contract suites that ship cannot import the tests, so they use the bare mark."""
    text = '@guarantee("I1")\ndef test_a(): ...\n@pytest.mark.guarantee("I2")\ndef test_b(): ...\nother("I3")\n'
    assert list(proofs(text)) == [("I1", 1), ("I2", 3)]
