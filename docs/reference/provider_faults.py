"""Finds the table of what a failing provider leads to: the one that the tests of it run on."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.runtime.engine import provider_faults


def page() -> Iterator[str]:
    """The page, written beside the table."""
    return provider_faults.page()
