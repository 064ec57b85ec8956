"""What an agent asks a person waits for their words, as a call waits for their leave."""

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import SetStage, Stage
from tests.runtime.engine.test_approvals import answer, questions, script

from coterie.core.errors import (
    ConflictError,
    HostError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    RefusedError,
)
from coterie.core.permission import Rule
from coterie.core.turn.states import TurnState

ASK: Final = "{tool: ask_user, arguments: {question: ' Which one? ', choices: [the old, the new]}}"
PLAIN: Final = "{tool: ask_user, arguments: {question: 'Why?'}}"


async def says(host: Stage, text: str, **more: Any) -> dict[str, Any]:
    """Answer the only open question in words."""
    (one,) = await questions(host)
    return await host.ask("permissions.answer", requestId=one["requestId"], answer=text, **more)


@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_a_question_is_shown_with_its_choices_and_the_words_of_a_person_are_its_result(
    stage: SetStage, mode: str
) -> None:
    """In every mode, for it needs nobody's leave; and the result says whose words they are."""
    host = await stage(script(ASK))
    session = await host.session(mode=mode)
    turn_id = await host.prompt(session, "go")

    (asked,) = await questions(host)

    assert (asked["kind"], asked["sessionId"], asked["turnId"]) == ("question", session, turn_id)
    assert (asked["question"], asked["choices"]) == ("Which one?", ["the old", "the new"])
    assert not {"tool", "risk", "mode", "subject", "shown"} & set(asked)
    assert await says(host, " Neither: a third.\n") == {"answered": True}
    turn = await host.ended(session)
    assert (turn.state, turn.result) == (TurnState.COMPLETED, "The person answers: Neither: a third.")
    assert (await host.ask("permissions.pending"))["requests"] == []


async def test_a_person_may_decline_and_the_model_is_told_why(stage: SetStage) -> None:
    """The turn goes on: a question that nobody answers need not end it."""
    host = await stage(script(PLAIN))
    session = await host.session()
    await host.prompt(session, "go")
    (asked,) = await questions(host)
    assert "choices" not in asked

    await answer(host, "deny", comment="Decide yourself.")

    turn = await host.ended(session)
    assert turn.state is TurnState.COMPLETED
    assert turn.result is not None
    assert "The person declines to answer. They say: Decide yourself." in turn.result


@pytest.mark.parametrize("decision", ["once", "session", "grant"])
async def test_a_question_is_not_answered_by_leave(stage: SetStage, decision: str) -> None:
    """A yes says nothing to which one; it stays open."""
    host = await stage(script(ASK))
    await host.prompt(await host.session(), "go")

    with pytest.raises(InvalidArgumentError):
        await answer(host, decision)

    assert len(await questions(host)) == 1
    await says(host, "the old")


async def test_a_call_that_waits_for_leave_is_not_answered_in_words(stage: SetStage) -> None:
    """Words are no yes, whatever they say."""
    host = await stage(script("{tool: bash, arguments: {command: 'true'}}"))
    await host.prompt(await host.session(folder=True), "go")

    with pytest.raises(InvalidArgumentError, match="leave"):
        await says(host, "yes")

    assert len(await questions(host)) == 1
    await answer(host, "deny")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("", InvalidArgumentError),
        (" \u200b\n", InvalidArgumentError),
        ("a\x00b", InvalidArgumentError),
        ("a\ud800b", InvalidArgumentError),
        ("four5", RefusedError),
    ],
)
async def test_words_that_say_nothing_or_cannot_be_kept_are_refused(
    stage: SetStage, words: str, fault: type[HostError]
) -> None:
    """The question stays open for better ones."""
    host = await stage(script(PLAIN), content_chars_max=4)
    await host.prompt(await host.session(), "go")

    with pytest.raises(fault):
        await says(host, words)

    await says(host, "four")


@guarantee("I13")
async def test_no_agent_answers_the_question_of_an_agent(stage: SetStage) -> None:
    """Not even its own: only a person's credential can, else one could speak as the person."""
    host = await stage(script(ASK))
    session = await host.session(mode="auto")
    await host.prompt(session, "go")
    (asked,) = await questions(host)

    with host.calling(await host.last_turn(session)) as invocation, pytest.raises(PermissionDeniedError):
        await host.act(invocation, "permissions.answer", requestId=asked["requestId"], answer="the old")

    await says(host, "the new")


async def test_a_turn_that_waits_for_words_holds_no_slot(stage: SetStage) -> None:
    """One open question never keeps another session from working (case 62)."""
    host = await stage("- {when: {model: other}, reply: {text: free}}\n", script(ASK), turns_max=1)
    session, other = await host.session(), await host.session("other")
    await host.prompt(session, "go")
    await questions(host)

    await host.prompt_later(other, "go")

    assert (await host.ended(other)).result == "free"
    await says(host, "the old")
    assert (await host.ended(session)).state is TurnState.COMPLETED


async def test_a_question_has_one_answer(stage: SetStage) -> None:
    """The second comes too late; the same request again is told what it did."""
    host = await stage(script(ASK))
    session = await host.session()
    await host.prompt(session, "go")
    (asked,) = await questions(host)
    given = {"requestId": asked["requestId"], "answer": "the old", "idempotencyKey": "one"}
    first = await host.ask("permissions.answer", **given)

    assert await host.ask("permissions.answer", **given) == first | {"replayed": True}
    with pytest.raises((NotFoundError, ConflictError)):
        await host.ask("permissions.answer", requestId=asked["requestId"], answer="the new")
    assert (await host.ended(session)).result == "The person answers: the old"


async def test_an_interrupt_ends_a_question(stage: SetStage) -> None:
    """What nobody waits for is not shown, and an answer finds nothing."""
    host = await stage(script(ASK))
    session = await host.session()
    await host.prompt(session, "go")
    (asked,) = await questions(host)

    await host.ask("session.interrupt", sessionId=session)

    assert (await host.ended(session)).state is TurnState.CANCELLED
    assert await questions(host, 0) == []
    with pytest.raises(NotFoundError):
        await host.ask("permissions.answer", requestId=asked["requestId"], answer="the old")


@guarantee("I9")
async def test_a_restart_ends_a_question_with_its_turn(stage: SetStage) -> None:
    """As it ends all that a turn waits for: an answer to a turn that is gone starts nothing."""
    host = await stage(script(ASK))
    session = await host.session()
    await host.prompt(session, "go")
    (asked,) = await questions(host)

    await host.restart()

    assert (await host.last_turn(session)).state is TurnState.INTERRUPTED
    assert (await host.ask("permissions.pending"))["requests"] == []
    with pytest.raises(NotFoundError):
        await host.ask("permissions.answer", requestId=asked["requestId"], answer="the old")


async def test_whoever_works_for_another_session_may_ask_too(stage: SetStage) -> None:
    """The person is the same, and a question is no right that a ceiling could lower."""
    host = await stage(script(ASK))
    lead, worker = await host.session("lead", mode="ask"), await host.session("worker", mode="auto")
    message_id = await host.task(lead, worker)
    (asked,) = await questions(host)
    assert asked["sessionId"] == worker

    await says(host, "the new")

    (message,) = await host.settled(message_id)
    assert message["result"] == "The person answers: the new"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{}", "question"),
        ("{question: ' '}", "blank"),
        ("{question: 'Which?', choices: [one]}", "at least 2 items"),
        ("{question: 'Which?', choices: [one, ONE]}", "the same"),
        ("{question: 'Which?', choices: [one, '']}", "blank"),
        ('{question: "Which?", choices: [one, "t\\nwo"]}', "one line"),
        ("{question: 'Which?', choices: [a, b, c, d, e, f, g]}", "at most 6 items"),
        ("{question: 'Which?', options: [a, b]}", "options"),
    ],
)
async def test_a_question_that_is_none_is_told_to_its_model_at_once(stage: SetStage, arguments: str, told: str) -> None:
    """No person is asked what cannot be answered."""
    host = await stage(script(f"{{tool: ask_user, arguments: {arguments}}}"))
    session = await host.session()
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert turn.result is not None
    assert "do not fit" in turn.result
    assert told in turn.result


async def test_a_rule_may_forbid_questions(stage: SetStage) -> None:
    """For a host that nobody watches; rules come before everything."""
    host = await stage(script(ASK))
    await host.stop()
    host.settings = replace(host.settings, denied=(Rule("ask_user"),))
    await host.start()
    session = await host.session(mode="auto")
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert turn.result is not None
    assert "the rule ask_user" in turn.result


async def test_a_long_answer_is_kept_whole_and_shown_by_its_ends(stage: SetStage) -> None:
    """As any long output is; the model reads on in it."""
    host = await stage(script(PLAIN), tool_result_chars_max=200)
    session = await host.session()
    await host.prompt(session, "go")

    await says(host, f"begin {'x' * 1_000} end")

    await host.ended(session)
    (item,) = [one for one in await host.items(session) if one["kind"] == "tool_result"]
    assert item["text"].startswith("The person answers: begin")
    assert item["text"].endswith("end")
    assert item["outputRef"]
