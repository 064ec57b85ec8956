"""The page on working together: its journey is typed as it stands, and its commands are there with their options."""

import re
import shlex
from collections.abc import Generator
from pathlib import Path
from typing import Final, cast

import pytest
from tests.host.conftest import end_background, seat_in
from tests.host.program import Models, Seat, scripted

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs/working-together.md").read_text("utf-8")
JOURNEY: Final = [
    shlex.split(line, comments=True)[1:]
    for block in cast("list[str]", re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    for line in block.splitlines()
]
_SHOWN: Final = cast("list[str]", re.findall(r"`(coterie [^`]+)`", PAGE))

RULES: Final = """
rules:
  - when: {user: '^Let reader', requests_since_user: 0}
    reply: {calls: [{tool: session_task, arguments: {action: list}}]}
  - when: {user: '^Let reader', requests_since_user: 1}
    capture: {reader: {from: tool_results, pattern: '"sessionId": ?"(ses_\\w+)", ?"title": ?"reader"'}}
    reply:
      calls: [{tool: session_task, arguments: {action: send, sessionId: "${reader}", message: List risks., kind: task}}]
  - when: {user: '^Let reader'}
    reply: {text: "I have asked reader."}
  - reply: {text: "None that I can see."}
"""


@pytest.fixture
def models() -> Generator[Models]:
    """A lead that finds the reader and gives it a task."""
    with scripted(RULES) as models:
        yield models


@pytest.fixture
def seat(tmp_path: Path, models: Models) -> Generator[Seat]:
    """A person in an empty folder, whose background host is stopped behind the test."""
    seat = seat_in(tmp_path)
    seat.folder = tmp_path / "project"
    seat.folder.mkdir()
    seat.variables = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": f"{models.server.url}/v1"}
    yield seat
    end_background(seat)


def test_the_journey_shows_what_stands_beside_it(seat: Seat) -> None:
    """A task that waits for the person, its release, the picture of both, and what becomes of the sessions."""
    assert seat.run("up", "--detach", "--port", "0").status == 0
    told = dict[str, str]()
    for words in JOURNEY:
        ended = seat.run(*words)
        assert ended.status == 0, (words, ended)
        told[" ".join(words[:2])] = ended.out
        if words[0] == "release":
            # The page's reader takes longer to type than the model to answer.
            task = seat.run("status", "reader", "--json").json["currentTask"]
            assert seat.run("wait", task["messageId"]).status == 0
    assert "I have asked reader." in told["prompt lead"]
    assert "waits for a release" in told["queue list"]
    assert "None that I can see." in told["status reader"]
    assert ("lead" in told["map lead"], "reader" in told["map lead"], "completed" in told["map lead"]) == (True,) * 3
    assert "archived" in told["session list"]
    assert "again" not in told["session list"]


def test_every_command_of_the_page_is_there_with_its_options(seat: Seat) -> None:
    """What was renamed is still typed by whoever has read the page."""
    assert len(_SHOWN) > 10
    for shown in _SHOWN:
        words = shlex.split(shown)[1:]
        command = [word for word in words[:2] if word.islower() and not word.startswith("-")]
        ended = seat.run(*command, "--help")
        assert ended.status == 0, (shown, ended)
        missing = [word for word in words if word.startswith("--") and word not in ended.out]
        assert not missing, (shown, ended.out)
