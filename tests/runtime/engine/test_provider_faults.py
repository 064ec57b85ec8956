"""What a vendor can do wrong, on the wire: what is asked again, what is not, and how the session goes on."""

from typing import Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import BROKEN, SetStage, said

from coterie.core.codes import Code
from coterie.core.turn.states import TurnState

FINE: Final = """
- reply: {text: "All is well."}
"""


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        ("error: {status: 429, retry_after: 0}", 1),
        ("error: {status: 408}", 1),
        ("error: {status: 500}", 3),
        ("error: {status: 502, body: '<html>Bad gateway</html>'}", 3),
        ("error: {status: 503, retry_after: 60}", 2),
        ("{text: [one, two, three], cut_after: 2}", 1),
        ("{text: [one, two, three], no_finish: true}", 1),
        ("{text: x, calls: [{tool: glob, arguments: {pattern: '*'}}], cut_after: 2}", 3),
    ],
)
async def test_a_passing_fault_is_asked_again_and_leaves_no_trace(stage: SetStage, fault: str, times: int) -> None:
    """Case 108: half an answer is no answer, and nobody has to see that a vendor stumbled."""
    reply = fault if fault.startswith("{") else f"{{{fault}}}"
    host = await stage(f"- {{when: {{user_turn: 1}}, times: {times}, reply: {reply}}}", FINE)
    session = await host.session()
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert (turn.state, turn.result) == (TurnState.COMPLETED, "All is well.")
    assert [said(request) for request in host.asked()] == [[{"role": "user", "content": "go"}]] * (times + 1)
    assert [item["kind"] for item in await host.items(session)] == ["person", "reply"]


async def test_each_retry_waits_longer_and_as_long_as_the_vendor_asks(stage: SetStage) -> None:
    """A vendor that is overloaded is not hammered."""
    host = await stage(
        """
        - {times: 1, reply: {error: {status: 500}}}
        - {times: 1, reply: {error: {status: 429, retry_after: 7}}}
        - {times: 1, reply: {error: {status: 429, retry_after: 0}}}
        """,
        FINE,
    )
    session = await host.session()
    await host.prompt(session, "go")
    await host.idle(session)

    assert host.clock.slept == [0.5, 7, 2]


@pytest.mark.parametrize(
    ("fault", "requests", "code", "kept"),
    [
        ("error: {status: 500, message: It is broken.}", 4, Code.PROVIDER_ERROR, []),
        ("error: {status: 429, retry_after: 120}", 1, Code.PROVIDER_ERROR, []),
        ("error: {status: 401}", 1, Code.PROVIDER_AUTH, []),
        ("error: {status: 403}", 1, Code.PROVIDER_AUTH, []),
        ("error: {status: 400}", 1, Code.PROVIDER_ERROR, []),
        ("error: {status: 404}", 1, Code.PROVIDER_ERROR, []),
        ("{text: [one, two, three], cut_after: 2}", 4, Code.STREAM_INTERRUPTED, ["onetwo"]),
        ("{text: [one, two, three], no_finish: true}", 4, Code.STREAM_INTERRUPTED, ["onetwothree"]),
    ],
)
@guarantee("I6")
async def test_a_fault_that_stays_fails_the_turn_and_tells_the_sender(
    stage: SetStage, fault: str, *, requests: int, code: Code, kept: list[str]
) -> None:
    """Cases 2, 108 and 109: the sender gets code and text, never a success without an answer."""
    reply = fault if fault.startswith("{") else f"{{{fault}}}"
    host = await stage(f"- {{when: {{model: worker}}, reply: {reply}}}", FINE)
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)

    (settled,) = await host.settled(message_id)

    turn = await host.ended(worker)
    assert (settled["status"], turn.state, turn.error_code) == ("failed", TurnState.FAILED, code.value)
    assert settled["error"] == f"{code.value}: {turn.error}"
    assert settled.get("result") is None
    assert len(host.asked("worker")) == requests
    assert [item["text"] for item in await host.items(worker) if item["kind"] == "reply"] == kept
    await host.idle(source)
    completion = await host.completion(message_id)
    assert completion["targetSessionId"] == source
    assert code.value in completion["content"]


@pytest.mark.parametrize("fault", ["{error: {status: 400}}", "{text: [one, two], cut_after: 1}"])
async def test_a_failed_turn_does_not_block_the_next_prompt(stage: SetStage, fault: str) -> None:
    """Case 111: an error ends a turn, not a session; the next request is one that any vendor accepts."""
    host = await stage(f"- {{when: {{user_turn: 1}}, reply: {fault}}}", FINE)
    session = await host.session()
    await host.prompt(session, "first")
    assert (await host.ended(session)).state is TurnState.FAILED

    await host.prompt(session, "second")

    assert (await host.ended(session)).result == "All is well."
    assert said(host.asked()[-1])[0] == said(host.asked()[0])[0]


async def test_a_prompt_that_waited_behind_a_failing_turn_runs(stage: SetStage) -> None:
    """Cases 14 and 111: every end of a turn looks at the queue again."""
    host = await stage("- {when: {user: first}, reply: {error: {status: 400, delay_ms: 50}}}", FINE)
    session = await host.session()
    await host.prompt(session, "first")
    await host.ask("session.prompt", sessionId=session, text="second")

    turn = await host.ended(session)

    assert (turn.state, await host.turns(session)) == (TurnState.COMPLETED, 2)


async def test_a_fault_after_a_tool_ran_repeats_the_request_and_not_the_tool(stage: SetStage) -> None:
    """The tool's result stands in the transcript, so asking again is safe; so is the next prompt after a failure."""
    host = await stage(
        """
        - when: {last: user, user: first}
          reply: {calls: [{tool: write, arguments: {path: a.txt, content: x}}]}
        - when: {last: tool, user: first}
          times: 5
          reply: {text: [one, two], cut_after: 1}
        """,
        FINE,
    )
    session = await host.session(mode="accept-edits", folder=True)
    await host.prompt(session, "first")
    turn = await host.ended(session)
    assert (turn.state, turn.error_code) == (TurnState.FAILED, Code.STREAM_INTERRUPTED.value)

    await host.prompt(session, "second")

    assert (await host.ended(session)).result == "All is well."
    first, *retries, last = host.asked()
    assert len(said(first)) == 1
    assert [len(said(request)) for request in retries] == [3] * 4
    assert [message["role"] for message in said(last)][:3] == ["user", "assistant", "tool"]
    assert await host.results(session) == ["Made a.txt, 1 bytes."]


async def test_faults_are_counted_for_each_request_anew(stage: SetStage) -> None:
    """A long turn may meet many short faults."""
    host = await stage(
        """
        - {when: {requests_since_user: 0}, times: 3, reply: {error: {status: 500}}}
        - {when: {requests_since_user: 0}, reply: {calls: [{tool: session_task, arguments: {action: list}}]}}
        - {when: {requests_since_user: 1}, times: 3, reply: {error: {status: 500}}}
        """,
        FINE,
    )
    session = await host.session()
    await host.prompt(session, "go")

    assert (await host.ended(session)).state is TurnState.COMPLETED
    assert len(host.asked()) == 8


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("{tool: serch, arguments: {}}", "There is no tool 'serch'."),
        ("{tool: glb, arguments: {}}", "Available: glob"),
        ("""{tool: glob, arguments_text: '{"pattern": '}""", "not one JSON object"),
        ("""{tool: glob, arguments_text: '[]'}""", "not one JSON object"),
        ("{tool: glob, arguments: {patern: '*'}}", "pattern"),
    ],
)
async def test_a_call_that_cannot_be_run_is_explained_to_the_model(stage: SetStage, call: str, told: str) -> None:
    """It can do better in the next request, so the turn goes on."""
    host = await stage(f"- {{when: {{last: user}}, reply: {{calls: [{call}]}}}}", FINE)
    session = await host.session(folder=True)
    await host.prompt(session, "go")

    assert (await host.ended(session)).result == "All is well."
    result = said(host.asked()[-1])[-1]
    assert result["role"] == "tool"
    assert told in result["content"]


@pytest.mark.parametrize("requests_max", [1, 3])
async def test_a_model_that_never_ends_is_stopped_at_the_bound(stage: SetStage, requests_max: int) -> None:
    """Case 106: a failure that names the limit, and no success; the last tool's result is kept."""
    host = await stage(
        "- {reply: {calls: [{tool: session_task, arguments: {action: list}}]}}", model_requests_max=requests_max
    )
    session = await host.session()
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert (turn.state, turn.error_code) == (TurnState.FAILED, Code.LIMIT_EXCEEDED.value)
    assert f"model_requests_max ({requests_max})" in (turn.error or "")
    assert len(host.asked()) == requests_max
    assert len(await host.results(session)) == requests_max


@guarantee("I7")
async def test_a_worker_of_the_host_that_breaks_fails_its_turn_and_nothing_else(stage: SetStage) -> None:
    """Case 2: a fault of ours is an outcome too, and the sender hears of it."""
    host = await stage(FINE)
    source, worker = await host.session("lead"), await host.session(BROKEN)
    message_id = await host.task(source, worker)

    (settled,) = await host.settled(message_id)

    turn = await host.ended(worker)
    assert (settled["status"], turn.state, turn.error_code) == ("failed", TurnState.FAILED, Code.INTERNAL.value)
    await host.idle(source)
    assert Code.INTERNAL.value in (await host.completion(message_id))["content"]
    other = await host.session()
    await host.prompt(other, "go")
    assert (await host.ended(other)).result == "All is well."
