"""The reference pages are what the program's tables say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_pages_are_what_the_tables_say() -> None:
    """A page that is written by hand is wrong after the next change."""
    command = [sys.executable, str(ROOT / "docs" / "reference" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
