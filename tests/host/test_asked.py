"""A person at a real terminal whom an agent asks: they answer in place, or from another terminal."""

from collections.abc import Generator
from typing import Final

import pytest
from tests.host.conftest import end_background
from tests.host.program import Models, Seat, scripted
from tests.host.screen import Screen, screen

RULES: Final = r"""
rules:
  - when: {user: "choose", last: user}
    reply: {calls: [{tool: ask_user, arguments: {question: "Which one?", choices: [the old, the new]}}]}
  - when: {user: "wonder", last: user}
    reply: {calls: [{tool: ask_user, arguments: {question: "Why?"}}]}
  - when: {user: "plan", last: user}
    reply: {calls: [{tool: todo, arguments: {items: [{text: look, status: done}, {text: write, status: in_progress}]}}]}
  - reply: {text: "I heard ${tool}"}
"""
HOW: Final = "/deny declines, with your reason behind it."
PROMPT: Final = "\n> "


@pytest.fixture(scope="module")
def models() -> Generator[Models]:
    """Models that ask."""
    with scripted(RULES) as models:
        yield models


@pytest.fixture
def home(seat: Seat, models: Models) -> Generator[Seat]:
    """A person with a model; the background host is stopped behind the test."""
    models.configure(seat.data)
    yield seat
    end_background(seat)


def begun(shown: Screen) -> None:
    """Wait for the first prompt."""
    shown.until("session ")
    shown.until("> ")


def test_a_question_is_answered_in_place_by_number_or_in_words(home: Seat) -> None:
    """A line that says nothing is no answer; the bell rings, for the person may look elsewhere."""
    with screen(home, "chat") as shown:
        begun(shown)
        shown.enter("choose")
        asked = shown.until(HOW)
        assert "Which one?\n    [1] the old\n    [2] the new\n" in asked
        assert "by the number of a choice" in asked
        assert shown.has_rung
        shown.enter("  ")
        shown.until(HOW)
        shown.enter("2")
        shown.until("Answered.")
        shown.until("I heard The person answers: the new")
        shown.until(PROMPT)
        shown.enter("wonder")
        assert "by the number" not in shown.until(HOW)
        shown.enter("1, because it is")
        shown.until("I heard The person answers: 1, because it is")


def test_a_question_is_declined_in_place_with_a_reason(home: Seat) -> None:
    """The model is told, and goes on."""
    with screen(home, "chat") as shown:
        begun(shown)
        shown.enter("wonder")
        shown.until(HOW)
        shown.enter("/deny  find out yourself")
        shown.until("Declined.")
        shown.until("They say: find out yourself")


def test_a_run_that_waits_for_an_answer_gets_it_from_another_terminal(home: Seat) -> None:
    """And says so where it was asked."""
    with screen(home, "run", "choose") as shown:
        shown.until(HOW)
        (asked,) = home.run("approve", "--json").json["requests"]
        assert home.run("answer", asked["requestId"], "1").status == 0
        shown.until("It was answered elsewhere")
        shown.until("I heard The person answers: the old")
        assert shown.ended() == 0


def test_the_list_of_an_agent_is_shown_in_words(home: Seat) -> None:
    """Not as the JSON of its call."""
    with screen(home, "run", "plan") as shown:
        assert "{" not in shown.until("│ [>] write")
        assert "│ [x] look" in shown.shown
        assert shown.ended() == 0
