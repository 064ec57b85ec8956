"""Finds what proves each promise: marked tests, faults that tests must notice, and checks of `coterie verify`."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("src/coterie/testing", "tests")
"""Where proofs stand: the contract suites that others can run too, and the tests."""
_MARKS: Final = frozenset({"guarantee", "pytest.mark.guarantee"})
_HEADING: Final = re.compile(r"^### (I\d+) · (.+)$", re.MULTILINE)
_BREAKS: Final = re.compile(r"^Breaks: (.+)$", re.MULTILINE)
_CHECK: Final = re.compile(r"^-- name: (I\d+) (.+)$", re.MULTILINE)


def _marked(path: Path) -> Iterator[tuple[str, str]]:
    """Promise and name of each test, or class of tests, that carries a mark."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) in _MARKS:
                    yield ast.literal_eval(mark.args[0]), node.name


def _tests() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for promise, name in _marked(path):
                found[promise][str(path.relative_to(ROOT))].append(name.removeprefix("test_").replace("_", " "))
    return found


def _faults() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests/faults").glob("*.patch")):
        breaks = _BREAKS.search(path.read_text("utf-8"))
        for promise in re.findall(r"I\d+", breaks[1] if breaks else ""):
            found[promise].append(path.stem.replace("-", " "))
    return found


def _checks() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for promise, name in _CHECK.findall((ROOT / "src/coterie/storage/sql/verify.sql").read_text("utf-8")):
        found[promise].append(name)
    return found


def page() -> Iterator[str]:
    """The page, promise by promise, in the order of `docs/guarantees.md`."""
    tests, faults, checks = _tests(), _faults(), _checks()
    yield "# Proofs"
    yield (
        "What holds each promise of [guarantees](../guarantees.md): tests, by the sentences that are their names; "
        "faults that `make faults` puts into a copy of the product, each of which the tests must notice; and checks "
        "that `coterie verify` makes on a ledger."
    )
    for promise, title in _HEADING.findall((ROOT / "docs/guarantees.md").read_text("utf-8")):
        yield f"## {promise} · {title}"
        yield "\n".join(f"- `{path}`: {'; '.join(sorted(names))}" for path, names in tests[promise].items())
        if faults[promise]:
            yield f"Faults: {'; '.join(faults[promise])}."
        if checks[promise]:
            yield f"Checked by `coterie verify`: {'; '.join(checks[promise])}."
