"""A person's seat for each test, and scripted models."""

from pathlib import Path

import pytest
from tests.host.program import Seat


@pytest.fixture
def seat(tmp_path: Path) -> Seat:
    """A person with an empty home and no keys."""
    return seat_in(tmp_path)


def seat_in(folder: Path) -> Seat:
    """A person with a home in *folder*."""
    home = folder / "home"
    home.mkdir()
    return Seat(home)
