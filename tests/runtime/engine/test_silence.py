"""A model that says nothing is asked once more, then it is an error; `test_completion_notice` has the exception."""

from typing import Final

import pytest
from tests.runtime.engine.conftest import SetStage, Stage, said, system_text
from tests.runtime.engine.wire import spoken

from coterie.core.codes import Code
from coterie.core.turn.silence import INSTRUCTION
from coterie.core.turn.states import TurnState

SILENT: Final = """
- when: {model: lead}
  reply: {silence: true}
"""
FAILED: Final = (TurnState.FAILED, Code.EMPTY_MODEL_RESPONSE.value)
COMPLETED: Final = (TurnState.COMPLETED, None)


async def _outcome(host: Stage, session_id: str) -> tuple[TurnState, str | None]:
    turn = await host.ended(session_id)
    return turn.state, turn.error_code


async def test_a_silent_reply_to_a_person_is_asked_again_once_without_a_message(stage: SetStage) -> None:
    """The transcript must not show words that nobody said, so the reminder is an instruction of that one request."""
    host = await stage("""
    - when: {user: first}
      times: 1
      reply: {silence: true}
    - reply: {text: "Here I am."}
    """)
    session = await host.session()
    await host.prompt(session, "first")
    assert await _outcome(host, session) == COMPLETED

    await host.prompt(session, "second")
    await host.idle(session)

    silent, again, later = host.asked()
    assert said(silent) == said(again) == [{"role": "user", "content": "first"}]
    assert [INSTRUCTION in system_text(request) for request in (silent, again, later)] == [False, True, False]
    assert [message["role"] for message in said(later)] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "reply",
    [
        "silence: true",
        r'text: " \n\t"',
        r'text: "\u200b\u2060"',
        "silence: true, thinking: 'I wonder.'",
        r'text: ["", "\u00a0"]',
    ],
)
async def test_the_second_reply_without_visible_text_fails_the_turn(stage: SetStage, reply: str) -> None:
    """Case 112: white space, what has no width and thoughts are no answer."""
    host = await stage(f"""
    - when: {{user: "^go"}}
      reply: {{{reply}}}
    - reply: {{text: "fine"}}
    """)
    session = await host.session()
    await host.prompt(session, "go")

    assert await _outcome(host, session) == FAILED
    assert len(host.asked()) == 2
    await host.prompt(session, "next")
    assert await _outcome(host, session) == COMPLETED
    assert [spoken(request, "assistant") for request in host.asked()] == [[], [], []]


async def test_a_task_that_is_answered_with_silence_fails_for_its_sender_too(stage: SetStage) -> None:
    """Case 112: only a notice may be left unanswered; who gave a task waits for an answer."""
    host = await stage(
        SILENT,
        """
        - when: {model: worker, user: '"status[^:]*: [^,]*failed'}
          reply: {text: "I see."}
        """,
    )
    source, lead = await host.session("worker"), await host.session("lead")

    (settled,) = await host.settled(await host.task(source, lead))

    assert settled["status"] == "failed"
    assert settled["error"].startswith("EMPTY_MODEL_RESPONSE: ")
    assert len(host.asked("lead")) == 2
    assert (await host.ended(source)).result == "I see."


async def test_the_reminder_survives_a_fault_between_two_silent_replies(stage: SetStage) -> None:
    """A retry repeats the request that failed, with its instruction, and does not forgive the first silence."""
    host = await stage("""
    - when: {user_turn: 1}
      times: 1
      reply: {silence: true}
    - when: {user_turn: 1}
      times: 1
      reply: {error: {status: 503}}
    - reply: {silence: true}
    """)
    session = await host.session()
    await host.prompt(session, "go")

    assert await _outcome(host, session) == FAILED
    assert [INSTRUCTION in system_text(request) for request in host.asked()] == [False, True, True]


async def test_an_answer_between_two_silences_starts_the_count_again(stage: SetStage) -> None:
    """Two silences in one turn are an error only where nothing was done in between."""
    host = await stage("""
    - when: {requests_since_user: 0}
      times: 1
      reply: {silence: true}
    - when: {requests_since_user: 0}
      reply: {calls: [{tool: session_task, arguments: {action: list}}]}
    - when: {requests_since_user: 1}
      times: 1
      reply: {silence: true}
    - reply: {text: "done"}
    """)
    session = await host.session()
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert (turn.state, turn.result, len(host.asked())) == (TurnState.COMPLETED, "done", 4)
