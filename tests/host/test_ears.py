"""What a terminal listens with, against a host in a process of its own: it ends, and leaves the process as it was."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from tests.host.conftest import end_background
from tests.host.program import BOUND_S, Models, Seat, scripted

from coterie.interfaces.cli.dial import Event
from coterie.interfaces.cli.ears import Ears
from coterie.interfaces.cli.follow import Opened, Start

WITHOUT_TERMIOS: Final = """
import sys
sys.modules["termios"] = None
from coterie.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def models() -> Generator[Models]:
    """Models that answer."""
    with scripted("- reply: {text: All is well.}") as models:
        yield models


@pytest.fixture
def home(seat: Seat, models: Models) -> Generator[Seat]:
    """A person with a model; the background host is stopped behind the test."""
    models.configure(seat.data)
    yield seat
    end_background(seat)


def listeners() -> list[threading.Thread]:
    """The threads that listen now."""
    return [one for one in threading.enumerate() if one.name == "ears"]


def opened() -> set[str]:
    """What this process has open."""
    return {one.name for one in Path("/proc/self/fd").iterdir()}


def test_ears_that_are_closed_end_their_thread_at_once_and_leave_nothing_open(home: Seat) -> None:
    """A person who goes from session to session would gather threads, connections and pipes."""
    assert home.run().status == 0
    before = opened()
    ears = Ears(Start(home.data, None))
    assert isinstance(ears.next(typed=False), Opened)
    # The first event of each stream; behind it there is silence.
    assert isinstance(ears.next(typed=False), Event)
    (thread,) = listeners()

    ears.close()

    thread.join(BOUND_S)
    assert not thread.is_alive()
    assert opened() == before


def test_who_was_woken_by_signals_is_woken_again(home: Seat) -> None:
    """An event loop of the same process would no more hear of its signals."""
    assert home.run().status == 0
    own, other = socket.socketpair()
    with own, other:
        os.set_blocking(other.fileno(), False)
        before = signal.set_wakeup_fd(other.fileno())
        ears = Ears(Start(home.data, None))
        ears.next(typed=False)
        assert signal.set_wakeup_fd(before) == other.fileno()
    ears.close()


def test_a_system_without_terminals_of_this_kind_runs_a_prompt(home: Seat) -> None:
    """Questions in place need them; answers for programs do not."""
    command = [sys.executable, "-c", WITHOUT_TERMIOS, "run", "hello", "--json"]
    ended = subprocess.run(
        command, env=home.environment(), cwd=home.home, check=False, capture_output=True, timeout=2 * BOUND_S
    )
    assert json.loads(ended.stdout)["text"] == "All is well.", ended.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("run", "hello"), 0, "All is well."),
        (("run", "-"), 2, "There is no input stream"),
        (("chat",), 2, "chat needs a terminal"),
    ],
)
def test_a_program_that_was_started_without_an_input_stream_fails_in_no_other_way(
    home: Seat, words: tuple[str, ...], status: int, said: str
) -> None:
    """Supervisors of processes close it."""
    command = ["sh", "-c", '"$@" <&-', "sh", sys.executable, "-m", "coterie", *words]
    ended = subprocess.run(
        command, env=home.environment(), cwd=home.home, check=False, capture_output=True, timeout=2 * BOUND_S
    )
    assert (ended.returncode, said in (ended.stdout + ended.stderr).decode()) == (status, True), ended
