"""What an agent asks a person at a terminal: shown, answered by words or by a number, and declined."""

from typing import Any, Final

import pytest
from tests.interfaces.cli.conftest import Line, Live

from coterie.app.approve import AskPerson, ask_person
from coterie.core.ids import RequestId, TurnId
from coterie.core.permission import Risk
from coterie.interfaces.cli.questions import said, show_questions
from coterie.interfaces.cli.terminal import Terminal
from coterie.ports.rows import CallRequest

CHOICES: Final = ("the old", "the new")


async def asked(live: Live, *choices: str) -> RequestId:
    """A turn of the session `lead` asks something; returns the request."""
    session_id = await live.host.new_session("lead")
    turn_id = (await live.host.ask("session.prompt", sessionId=session_id, text="Ask."))["turnId"]
    asking = AskPerson(TurnId(turn_id), "one", "ask_user", Risk.LOW, "Which\none?", "", None, choices)
    found = await live.host.parts.store.run(ask_person, asking)
    assert found is not None
    return found.id


async def answered(live: Live, request_id: RequestId) -> tuple[str | None, str]:
    """The answer and its words."""

    def look(tx: Any, command: RequestId) -> CallRequest | None:
        return tx.approvals.request(command)

    found = await live.host.parts.store.read(look, request_id)
    assert found is not None
    return found.answer and found.answer.value, found.note


async def test_a_question_is_shown_at_home_and_by_approve(live: Live) -> None:
    """With its choices, and how it is answered."""
    request_id = await asked(live, *CHOICES)
    pending = await live.line.json("approve")
    assert pending == await live.host.ask("permissions.pending")
    for words in ((), ("approve",), ("approve", "--show", request_id)):
        shown = (await live.line.beside(*words)).stdout
        assert f"{request_id}  lead asks:\n    Which\n    one?\n    [1] the old\n    [2] the new\n" in shown
        assert '`coterie answer ID "text"`' in shown
        assert "leave" not in shown


@pytest.mark.parametrize(
    ("choices", "typed", "words"),
    [
        (CHOICES, "2", "the new"),
        (CHOICES, " a third ", "a third"),
        (CHOICES, "3", "3"),
        ((), "1", "1"),
        (("2", "4"), "2", "2"),
    ],
)
async def test_a_question_is_answered_in_words_or_by_the_number_of_a_choice(
    live: Live, choices: tuple[str, ...], typed: str, words: str
) -> None:
    """A number that is itself a choice is what it says."""
    request_id = await asked(live, *choices)

    found = await live.line.beside("answer", request_id[-6:], typed)

    assert (found.exit_code, found.stdout) == (0, "Answered; its turn goes on.\n")
    assert await answered(live, request_id) == ("said", words)
    again = await live.line.beside("answer", request_id, "other")
    assert again.stderr.startswith("CONFLICT: ")


async def test_an_answer_prints_json_for_programs(live: Live) -> None:
    """As every door answers."""
    request_id = await asked(live)
    assert await live.line.json("answer", request_id, "Because.") == {"answered": True}


async def test_an_answer_may_come_from_the_input_stream(live: Live) -> None:
    """A long one is no word of a command line."""
    request_id = await asked(live)

    found = await live.line.beside("answer", request_id, "-", stdin="line one\nline two\n")

    assert found.exit_code == 0, found.output
    assert await answered(live, request_id) == ("said", "line one\nline two")


async def test_a_question_is_declined_and_not_approved(live: Live) -> None:
    """A yes would say nothing; the refusal names the command that does."""
    request_id = await asked(live, *CHOICES)
    found = await live.line.beside("approve", request_id)
    assert found.exit_code == 2
    assert f"`coterie answer {request_id}" in found.stderr

    found = await live.line.beside("deny", request_id, "--note", "Decide yourself.")

    assert (found.exit_code, found.stdout) == (0, "Declined, and its model is told.\n")
    assert await answered(live, request_id) == ("deny", "Decide yourself.")


async def test_blank_words_are_no_answer(live: Live) -> None:
    """The question stays open."""
    request_id = await asked(live)
    found = await live.line.beside("answer", request_id, " ")
    assert (found.exit_code, await answered(live, request_id)) == (2, (None, ""))
    assert found.stderr.startswith("INVALID_ARGUMENT: ")


def test_what_an_agent_asks_moves_no_cursor(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """Its words are a model's."""
    hostile = "\x1b[2J[red]x\x9b\r"
    request = {"requestId": "req_1", "sessionTitle": hostile, "question": hostile, "choices": [hostile, f"{hostile}2"]}

    show_questions(Terminal(line.surroundings), [request])

    out = capsys.readouterr().out
    assert not [char for char in out if char in "\x1b\x9b\r"]
    assert "[1] [2J[red]x" in out
    assert said(request, "1") == hostile
