"""When a model may say nothing: the first reply to a notice that the host itself delivered, and nothing else."""

from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import SetStage, Stage, said, system_text

from coterie.core.codes import Code
from coterie.core.turn.silence import INSTRUCTION
from coterie.core.turn.states import TurnState

WORKER: Final = """
- when: {model: worker}
  reply: {text: "42"}
"""
SILENT: Final = """
- when: {model: lead}
  reply: {silence: true}
"""
FAILED: Final = (TurnState.FAILED, Code.EMPTY_MODEL_RESPONSE.value)
COMPLETED: Final = (TurnState.COMPLETED, None)


async def _outcome(host: Stage, session_id: str) -> tuple[TurnState, str | None]:
    turn = await host.ended(session_id)
    return turn.state, turn.error_code


async def _notified(host: Stage) -> tuple[str, str]:
    """Have a completion delivered to a lead; returns the lead and the completion's id."""
    lead, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(lead, worker)
    await host.settled(message_id)
    await host.idle(lead)
    return lead, (await host.completion(message_id))["id"]


def _notice(host: Stage) -> str:
    """The notice in its frame, as the lead was shown it."""
    text: Any = said(host.asked("lead")[0])[-1]["content"]
    assert isinstance(text, str)
    assert '"kind": "completion"' in text
    return text


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


@guarantee("I6")
async def test_a_notice_may_be_answered_with_silence(stage: SetStage) -> None:
    """The notice itself says that it needs no reply, so one request is all that it may cost."""
    host = await stage(SILENT, WORKER)

    lead, completion_id = await _notified(host)

    assert await _outcome(host, lead) == COMPLETED
    assert len(host.asked("lead")) == 1
    (completion,) = await host.settled(completion_id)
    assert (completion["status"], completion.get("error")) == ("completed", None)
    reply = (await host.items(lead))[-1]
    assert (reply["kind"], reply["text"]) == ("reply", "")


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_exception_is_not_inherited_by_the_next_turn(stage: SetStage, restarted: bool) -> None:  # noqa: FBT001
    """Restored history cannot bring it back either; and the silent reply is in no later request."""
    host = await stage(SILENT, WORKER)
    lead, _ = await _notified(host)
    if restarted:
        await host.restart()

    await host.prompt(lead, "And?")

    assert await _outcome(host, lead) == FAILED
    notice, first, second = host.asked("lead")
    assert said(first) == said(second)
    assert {message["role"] for message in said(first)} == {"user"}
    assert said(first)[0]["content"].startswith(_notice(host))
    assert [INSTRUCTION in system_text(request) for request in (notice, first, second)] == [False, False, True]


@pytest.mark.parametrize("how", ["prompt", "task", "message"])
async def test_a_copy_of_a_notice_excuses_nothing(stage: SetStage, how: str) -> None:
    """Anybody can write the words of a notice; only the ledger's own kind of an input counts."""
    host = await stage(SILENT, WORKER)
    lead, _ = await _notified(host)
    copied, other = _notice(host), await host.session("worker")

    if how == "prompt":
        await host.prompt(lead, copied)
    else:
        await host.ask("collaboration.send", sessionId=lead, content=copied, kind=how, asSessionId=other)

    assert await _outcome(host, lead) == FAILED
    assert len(host.asked("lead")) == 1 + 2


async def test_a_silent_reply_after_the_tools_of_a_notice_is_ordinary(stage: SetStage) -> None:
    """The exception is for the first reply of any shape: one that calls a tool has used it up."""
    host = await stage(
        """
        - when: {model: lead, requests_since_user: 0}
          reply: {calls: [{tool: session_task, arguments: {action: list}}]}
        """,
        SILENT,
        WORKER,
    )

    lead, completion_id = await _notified(host)

    assert await _outcome(host, lead) == FAILED
    assert len(host.asked("lead")) == 1 + 2
    (completion,) = await host.settled(completion_id)
    assert completion["status"] == "failed"


@pytest.mark.parametrize(
    "fault", ["error: {status: 500}", "{text: [a, b], cut_after: 1}", "{text: [a, b], no_finish: true}"]
)
async def test_a_retry_of_the_provider_keeps_the_exception(stage: SetStage, fault: str) -> None:
    """A request that broke has settled nothing, so the first settled reply is still to come."""
    host = await stage(
        f"""
        - when: {{model: lead}}
          times: 1
          reply: {fault if fault.startswith("{") else f"{{{fault}}}"}
        """,
        SILENT,
        WORKER,
    )

    lead, _ = await _notified(host)

    assert await _outcome(host, lead) == COMPLETED
    assert len(host.asked("lead")) == 2


async def test_a_provider_that_fails_at_a_notice_is_still_an_error(stage: SetStage) -> None:
    """The exception is for saying nothing, not for being unable to."""
    host = await stage("- {when: {model: lead}, reply: {error: {status: 400, message: wrong}}}\n", WORKER)

    lead, completion_id = await _notified(host)

    assert await _outcome(host, lead) == (TurnState.FAILED, Code.PROVIDER_ERROR.value)
    (completion,) = await host.settled(completion_id)
    assert completion["status"] == "failed"
    assert len(host.asked("lead")) == 1


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
