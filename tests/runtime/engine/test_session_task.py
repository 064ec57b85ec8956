"""The tool `session_task`, and the gateway behind it: who speaks is not for the caller to say."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.calls import HANG, gateway, refused, running, told
from tests.runtime.engine.conftest import SetStage, said

from coterie.core.errors import ConflictError, PermissionDeniedError
from coterie.core.turn.states import TurnState
from coterie.plugins.session_orchestrator.actions import ACTIONS


@guarantee("I10")
async def test_the_sender_is_the_session_of_the_call(stage: SetStage) -> None:
    """No argument names it, so none can name another."""
    host = await stage(HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        sent = await told(host, invocation, action="send", sessionId=worker, message="hello")

    (message,) = await host.chain(sent["messageId"])
    assert (message["sourceSessionId"], message["targetSessionId"]) == (turn.session_id, worker)
    assert message.get("via") is None


@guarantee("I10")
async def test_a_call_that_has_ended_speaks_for_nobody(stage: SetStage) -> None:
    """A plugin that kept its invocation would otherwise act for a session behind its back, even while the turn runs."""
    host = await stage(HANG)
    turn = await running(host)
    with host.calling(turn) as invocation:
        await gateway(host).call(invocation, "collaboration.list", {})

    with pytest.raises(PermissionDeniedError, match="has ended"):
        await gateway(host).call(invocation, "collaboration.list", {})


@guarantee("I10")
@pytest.mark.parametrize("forged", ["session_id", "turn_id", "id", "workspace", None])
async def test_an_invocation_that_the_host_did_not_make_is_refused(stage: SetStage, forged: str | None) -> None:
    """Only the host's own object counts: not even an equal copy does, while the real call still runs."""
    host = await stage(HANG)
    turn, other = await running(host), await host.session("other")
    changes: dict[str, Any] = {forged: other} if forged else {}

    with host.calling(turn) as invocation:
        copy = replace(invocation, **changes)
        with pytest.raises(PermissionDeniedError):
            await gateway(host).call(copy, "collaboration.send", {"sessionId": other, "content": "I am another"})

    assert await host.exchanges(other) == []


@guarantee("I10")
@pytest.mark.parametrize("operation", ["collaboration.send", "collaboration.spawn"])
async def test_an_agent_cannot_name_the_session_that_it_speaks_for(stage: SetStage, operation: str) -> None:
    """Not even its own: the parameter is a person's."""
    host = await stage(HANG)
    turn, other = await running(host), await host.session("other")
    target = {"sessionId": other} if operation.endswith("send") else {}

    with host.calling(turn) as invocation:
        for name in (other, turn.session_id):
            with pytest.raises(PermissionDeniedError):
                await gateway(host).call(invocation, operation, {"content": "hello", "asSessionId": name, **target})
        for name in ("asSessionId", "sourceSessionId"):
            # The tool does not know the parameter at all.
            fault = await refused(host, invocation, action="send", sessionId=other, message="hello", **{name: other})
            assert fault["code"] == "INVALID_ARGUMENT"

    assert await host.exchanges(other) == []


async def test_a_plugin_has_the_operations_that_it_declared_and_that_agents_may_use(stage: SetStage) -> None:
    """Declaring an operation of people gives nothing."""
    host = await stage(HANG)
    turn = await running(host)
    declared = frozenset({"collaboration.list", "session.prompt", "session.create", "session.release"})
    limited = gateway(host, declared)

    with host.calling(turn) as invocation:
        assert (await limited.call(invocation, "collaboration.list", {}))["sessions"]
        for operation in ("collaboration.send", "session.prompt", "session.create", "session.release", "no.such"):
            with pytest.raises(PermissionDeniedError):
                await limited.call(invocation, operation, {"sessionId": turn.session_id, "text": "x", "content": "x"})
        with pytest.raises(PermissionDeniedError):
            await host.act(invocation, "session.prompt", sessionId=turn.session_id, text="x")


@guarantee("I10")
async def test_a_call_of_a_turn_that_has_ended_begins_nothing(stage: SetStage) -> None:
    """The credential is looked at once more inside the transaction: a call may outlive its turn by a moment."""
    host = await stage("- {reply: {text: done}}")
    lead = await host.session("lead")
    await host.prompt(lead, "go")
    turn, other = await host.ended(lead), await host.session("other")

    with host.calling(turn) as invocation:
        for action in ({"action": "send", "sessionId": other, "message": "x"}, {"action": "spawn", "task": "x"}):
            assert (await refused(host, invocation, **action))["code"] == "CONFLICT"
        with pytest.raises(ConflictError):
            await host.act(invocation, "collaboration.send", sessionId=other, content="x")


@guarantee("I14")
async def test_a_repeated_call_with_a_key_spawns_once(stage: SetStage) -> None:
    """A model that saw no answer asks again; another task under that key is a mistake that it must hear of."""
    host = await stage(HANG)
    turn = await running(host)

    with host.calling(turn) as invocation:
        first, again = [
            await told(host, invocation, action="spawn", task="do it", idempotencyKey="k") for _ in range(2)
        ]
        fault = await refused(host, invocation, action="spawn", task="do that", idempotencyKey="k")

    assert (first["messageId"], first["sessionId"]) == (again["messageId"], again["sessionId"])
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert fault["code"] == "IDEMPOTENCY_CONFLICT"


TEN: Final = """
- when: {model: lead, user: "^go", requests_since_user: 0}
  reply:
    calls:
      - {tool: session_task, arguments: {action: models}}
      - {tool: session_task, arguments: {action: spawn, task: count, title: Counter, model: worker}}
- when: {model: lead, user: "^go", requests_since_user: 1}
  capture: &ids
    session: {from: tool_results, pattern: '"sessionId": ?"([^"]+)"'}
    message: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}
  reply: {calls: [{tool: session_task, arguments: {action: wait, sessionIds: ["${session}"], mode: any}}]}
- when: {model: lead, user: "^go", requests_since_user: 2}
  capture: *ids
  reply:
    calls:
      - {tool: session_task, arguments: {action: result, sessionId: "${session}", messageId: "${message}"}}
      - {tool: session_task, arguments: {action: accept, sessionId: "${session}", note: "as it should be"}}
      - {tool: session_task, arguments: {action: status}}
      - {tool: session_task, arguments: {action: send, sessionId: "${session}", message: stall, kind: task}}
      - {tool: session_task, arguments: {action: supervise, sessionIds: ["${session}"], message: "go on"}}
      - {tool: session_task, arguments: {action: cancel, sessionId: "${session}"}}
      - {tool: session_task, arguments: {action: list, limit: 10}}
- when: {model: lead, user: "^go", requests_since_user: 3}
  reply: {text: "done"}
- {when: {model: worker, user: stall}, reply: {hang: true}}
- {when: {model: worker}, reply: {text: "42"}}
- {reply: {text: "noted"}}
"""


async def test_a_model_can_use_all_ten_actions(stage: SetStage) -> None:
    """Over the wire, in the words of the tool's own schema."""
    host = await stage(TEN)
    lead = await host.session("lead")
    turn_id = await host.prompt(lead, "go")
    await host.until_items(lead, lambda items: "done" in [item["text"] for item in items])

    models, spawned, waited, result, accepted, status, sent, supervised, cancelled, listed = [
        json.loads(text) for text in (await host.results(lead))[:10]
    ]
    assert models["defaultModel"] == "local/one"
    assert (spawned["accepted"], spawned["status"], waited["timedOut"]) == (True, "running", False)
    assert waited["messages"][0]["result"] == result["message"]["result"] == "42"
    assert (result["ready"], accepted["messageId"]) == (True, spawned["messageId"])
    (worker,) = status["sessions"]
    assert (worker["title"], worker["createdBySession"]["sessionId"]) == ("Counter", lead)
    assert (worker["acceptanceStatus"], supervised["accepted"]) == ("accepted", True)
    assert cancelled["messageIds"] == [sent["messageId"], supervised["workers"][0]["messageId"]]
    assert {one["title"] for one in listed["sessions"]} == {"lead", "Counter"}
    tool = next(one for one in host.asked()[0]["tools"] if one["function"]["name"] == "session_task")
    assert tool["function"]["parameters"]["properties"]["action"]["enum"] == list(ACTIONS)
    await host.idle(spawned["sessionId"], lead)
    # What was waited for is not told again; what was cancelled without being read is.
    assert (await host.completion(spawned["messageId"]))["turnId"] == turn_id
    assert (await host.last_turn(lead)).kind == "completion"


async def test_a_fault_of_the_tool_reaches_the_model_and_the_turn_goes_on(stage: SetStage) -> None:
    """The text says what would be right, and the next request carries it."""
    host = await stage("""
    - {when: {last: user}, reply: {calls: [{tool: session_task, arguments: {action: spwan, task: x}}]}}
    - {reply: {text: "I see."}}
    """)
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    turn = await host.ended(lead)

    assert (turn.state, turn.result) == (TurnState.COMPLETED, "I see.")
    assert "Did you mean 'spawn'?" in said(host.asked()[-1])[-1]["content"]


async def test_a_worker_cannot_spawn(stage: SetStage) -> None:
    """One level of workers; it is told what it can do instead."""
    host = await stage("""
    - when: {model: lead, user: go, last: user}
      reply: {calls: [{tool: session_task, arguments: {action: spawn, task: dig, model: worker}}]}
    - when: {model: worker, last: user}
      reply: {calls: [{tool: session_task, arguments: {action: spawn, task: deeper, model: other}}]}
    - {reply: {text: "${tool}"}}
    """)
    lead = await host.session("lead")
    await host.prompt(lead, "go")
    await host.idle(lead)
    message = next(one for one in await host.exchanges(lead) if one["kind"] == "task")

    (settled,) = await host.settled(message["messageId"])

    assert "PERMISSION_DENIED" in settled["result"]
    assert len(host.asked("other")) == 0
