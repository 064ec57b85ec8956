"""The arrows between folders are checked, and the check can fail.

Each case puts one forbidden line into a copy of the tree: a contract that was never seen to break may have been written
so that it cannot.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
LINT: Final = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()")
INWARDS: Final = "Arrows point inwards; adapters do not know each other"
PURE: Final = "The core does no I/O"
DRIVERS: Final = "Drivers and vendors stay behind their port"


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package under *root*, and on no other copy of it."""
    return subprocess.run(
        [*LINT, "--no-cache", "--no-logo"],
        cwd=root,
        env={"PYTHONPATH": str(root / "src"), "PYTHONUTF8": "1", "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_tree_keeps_its_arrows() -> None:
    """The picture in ARCHITECTURE.md is true."""
    found = lint(ROOT)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("core/__init__.py", "import asyncio", PURE),
        ("app/__init__.py", "import pathlib", PURE),
        ("core/ids.py", "import coterie.app", INWARDS),
        ("storage/__init__.py", "import coterie.runtime", INWARDS),
        ("operations/__init__.py", "import sqlite3", DRIVERS),
    ],
)
def test_a_forbidden_arrow_is_found(tmp_path: Path, module: str, line: str, contract: str) -> None:
    """The contract that breaks is the one that was written for it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / "src" / "coterie" / module
    target.write_text(f"{target.read_text('utf-8')}\n{line}\n", "utf-8")

    found = lint(tmp_path)

    assert found.returncode == 1, found.stdout + found.stderr
    assert f"{contract} BROKEN" in found.stdout
