"""A person's seat for each test, and scripted models."""

import json
import os
import signal
from contextlib import suppress
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


def end_background(seat: Seat) -> None:
    """Kill the background host of a person, if there is one."""
    about = seat.data / "host.json"
    if about.exists():
        with suppress(ProcessLookupError):
            os.kill(json.loads(about.read_text("utf-8"))["pid"], signal.SIGKILL)
        about.unlink(missing_ok=True)
