"""The reference pages are what the program's tables say."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_WRITTEN: Final = re.compile(r'\.changed\([^,()]+, "(\w+)"')
_NAMED: Final = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def test_the_reference_pages_are_what_the_tables_say() -> None:
    """A page that is written by hand is wrong after the next change."""
    command = [sys.executable, str(ROOT / "docs" / "reference" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_the_stream_names_every_kind_of_change() -> None:
    """The kinds are words at the places that write them; the page's list is the only other one."""
    sources = (ROOT / "src/coterie/app").glob("*.py")
    written = {kind for path in sources for kind in _WRITTEN.findall(path.read_text("utf-8"))}
    page = (ROOT / "docs/reference/operations.md").read_text("utf-8").partition("| `kind` of a change |")[2]
    assert len(written) > 1
    assert set(_NAMED.findall(page)) == written
