"""A person at a terminal, through a pseudo-terminal: talk, approvals in place, an interrupt, a host that was killed."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.host.conftest import end_background
from tests.host.program import BOUND_S, Models, Seat, scripted

SCRIPT: Final = """
- when: {last: user, user: '^write$'}
  reply: {calls: [{tool: write, arguments: {path: a.txt, content: new}}]}
- when: {last: user, user: '^write slowly$'}
  reply:
    text: "Let me see what there is to do."
    chunk_chars: 1
    delay_ms: 20
    calls: [{tool: write, arguments: {path: a.txt, content: new}}]
- when: {last: user, user: '^hang$'}
  reply: {hang: true}
- when: {last: user, user: 'primes'}
  reply: {text: "Two, three and five are primes.", chunk_chars: 4, delay_ms: 2}
- when: {last: tool}
  reply: {text: "Tool: ${tool}"}
- reply: {text: "Noted: ${user}"}
"""
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\r")


@dataclass
class Screen:
    """What a pseudo-terminal has shown, and the keyboard before it."""

    descriptor: int
    popen: subprocess.Popen[bytes]
    shown: str = ""

    def until(self, text: str) -> str:
        """Read until *text* stands there, and return what came up to it; the next look begins behind it."""
        while text not in self.shown:
            ready, _, _ = select.select([self.descriptor], [], [], BOUND_S)
            assert ready, f"no {text!r} within {BOUND_S} s; there is: {self.shown}"
            try:
                more = os.read(self.descriptor, 65_536)
            except OSError:
                more = b""
            assert more, f"it ended before {text!r}; there is: {self.shown}"
            self.shown = _ESCAPES.sub("", self.shown + more.decode("utf-8", "replace"))
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def type(self, line: str) -> None:
        """Type a line and Enter."""
        os.write(self.descriptor, f"{line}\n".encode())

    def press(self, key: bytes) -> None:
        """Press a key that the terminal knows."""
        os.write(self.descriptor, key)

    def ended(self) -> int:
        """Wait until the program has ended; returns its status."""
        return self.popen.wait(BOUND_S)


@contextmanager
def at_terminal(seat: Seat, *words: str) -> Generator[Screen]:
    """Run a command at a pseudo-terminal of its own inside of the block."""
    ours, theirs = pty.openpty()
    # The leader of a session makes the first terminal that it opens its own: keys such as Ctrl-C are signals then.
    opening = ("sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs))
    command = [*opening, sys.executable, "-m", "coterie", *words]
    environment = {**seat.environment(), "TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, env=environment, cwd=seat.folder, start_new_session=True
    ) as popen:
        try:
            yield Screen(ours, popen)
        finally:
            popen.kill()
            os.close(theirs)
            os.close(ours)


@pytest.fixture
def models() -> Generator[Models]:
    """What answers."""
    with scripted(SCRIPT) as served:
        yield served


@pytest.fixture
def talker(seat: Seat, models: Models, tmp_path: Path) -> Generator[Seat]:
    """A person in a project folder; their host starts by itself, and ends with the test."""
    seat.folder = tmp_path / "project"
    seat.folder.mkdir()
    models.configure(seat.data, "[server]\nport = 0\n")
    yield seat
    end_background(seat)


def test_a_person_talks_and_allows_a_call_where_it_comes_up(talker: Seat) -> None:
    """Nothing is written before the yes; the next line goes on with the same session."""
    assert talker.folder is not None
    written = talker.folder / "a.txt"
    with at_terminal(talker, "chat") as screen:
        screen.until("> ")
        screen.type("Tell me primes.")
        assert "Two, three and five are primes." in screen.until("are primes.")

        screen.until("> ")
        screen.type("write")
        assert "write a.txt" in screen.until("May it run?")
        assert not written.exists()
        screen.until("lines: ")
        screen.type("?")
        assert "+new" in screen.until("lines: ")
        screen.type("y")
        screen.until("Tool: Made a.txt")
        assert written.read_text("utf-8") == "new"

        screen.until("> ")
        screen.type("/status")
        screen.until("completed")
        screen.type("/stauts")
        screen.until("near: /status")
        screen.until("> ")
        screen.press(b"\x04")
        assert screen.ended() == 0
    assert (talker.data / "chat_history").stat().st_mode & 0o777 == 0o600


def test_a_denied_call_is_told_with_the_reason(talker: Seat) -> None:
    """And `run` asks in place too, where somebody is there to answer."""
    with at_terminal(talker, "run", "write") as screen:
        screen.until("lines: ")
        screen.type("n")
        screen.until("Why?")
        screen.type("Not that file.")
        screen.until("They say: Not that file.")
        assert screen.ended() == 0
    assert talker.folder is not None
    assert not (talker.folder / "a.txt").exists()


@pytest.mark.parametrize("word", ["y", "s"])
def test_what_was_typed_before_the_question_is_no_answer_to_it(talker: Seat, word: str) -> None:
    """Nobody allows what they have not seen."""
    with at_terminal(talker, "chat") as screen:
        screen.until("> ")
        screen.type("write slowly")
        screen.until("Let me")
        screen.type(word)
        screen.until("lines: ")
        screen.type("n")
        screen.until("Why?")
        screen.type("")
        screen.until("Denied by a person.")
    assert talker.folder is not None
    assert not (talker.folder / "a.txt").exists()


def test_only_a_whole_word_is_an_answer(talker: Seat) -> None:
    """One that begins like a yes may mean the opposite, so it is asked again."""
    with at_terminal(talker, "chat") as screen:
        screen.until("> ")
        screen.type("write")
        for words in ("stop!", "you must not", "yesterday", ""):
            screen.until("lines: ")
            screen.type(words)
        screen.until("lines: ")
        screen.type("no")
        screen.until("Why?")
        screen.type("")
        screen.until("Denied by a person.")
    assert talker.folder is not None
    assert not (talker.folder / "a.txt").exists()


def test_ctrl_c_stops_the_turn_and_the_talk_goes_on(talker: Seat, models: Models) -> None:
    """With the same session, which is free again."""
    with at_terminal(talker, "chat") as screen:
        screen.until("> ")
        screen.type("hang")
        models.until(lambda server: server.answering == 1)
        screen.press(b"\x03")
        screen.until("Interrupted.")
        models.until(lambda server: server.answering == 0)
        screen.until("> ")
        screen.type("still there")
        screen.until("Noted: still there")
        screen.until("> ")
        screen.press(b"\x04")
        assert screen.ended() == 0


def test_what_a_killed_host_had_queued_goes_on_after_a_release(talker: Seat, models: Models) -> None:
    """Nothing starts by itself; the person is told what is held, and lets it go on."""
    with at_terminal(talker, "chat") as screen:
        screen.until("> ")
        screen.type("hang")
        session = screen.until("session ses_") and screen.until("\n").strip()
        models.until(lambda server: server.answering == 1)
        queued = talker.run("prompt", f"ses_{session}", "after that", "--json").json
        assert queued["status"] == "queued"
        os.kill(json.loads((talker.data / "host.json").read_text("utf-8"))["pid"], signal.SIGKILL)
        screen.popen.kill()
    with at_terminal(talker, "chat", f"ses_{session}") as screen:
        screen.until("/release lets it go on")
        screen.until("> ")
        asked = models.asked
        screen.type("/release")
        models.until(lambda server: len(server.requests) > asked)
        screen.until("> ")
        screen.press(b"\x04")
        assert screen.ended() == 0
    items = talker.run("session", "items", f"ses_{session}", "--json").json["items"]
    assert "after that" in [item["text"] for item in items]


def test_without_a_terminal_there_is_no_chat(talker: Seat) -> None:
    """A program is told what to use."""
    assert "coterie run" in talker.run("chat").fault("INVALID_ARGUMENT", 2)
