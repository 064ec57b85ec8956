"""The tool `session_task`, and the gateway behind it: who speaks is not for the caller to say."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import SetStage, Stage, said

from coterie.core.errors import ConflictError, PermissionDeniedError
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.plugins.gateway import Gateway
from coterie.plugins.loader import load_tools
from coterie.plugins.session_orchestrator import OPERATIONS
from coterie.ports.tool import Invocation, ToolOutput

HANG: Final = "- {reply: {hang: true}}\n"


async def _running(host: Stage) -> Turn:
    """A turn that runs until the host ends."""
    lead = await host.session("lead")
    await host.prompt(lead, "go")
    return await host.last_turn(lead)


def _gateway(host: Stage, declared: frozenset[str] = OPERATIONS) -> Gateway:
    return Gateway(host.engine.operations, declared)


async def _call(host: Stage, invocation: Invocation, **arguments: object) -> ToolOutput:
    return await load_tools(host.engine.operations, {})["session_task"].run(invocation, arguments)


def _fault(output: ToolOutput) -> dict[str, Any]:
    assert output.error
    fault: dict[str, Any] = json.loads(output.text)["error"]
    return fault


@guarantee("I10")
async def test_the_sender_is_the_session_of_the_call(stage: SetStage) -> None:
    """No argument names it, so none can name another."""
    host = await stage(HANG)
    turn, worker = await _running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        output = await _call(host, invocation, action="send", sessionId=worker, message="hello")

    message_id = json.loads(output.text)["messageId"]
    (message,) = await host.chain(message_id)
    assert (message["sourceSessionId"], message["targetSessionId"]) == (turn.session_id, worker)
    assert message.get("via") is None


@guarantee("I10")
async def test_a_call_that_has_ended_speaks_for_nobody(stage: SetStage) -> None:
    """A plugin that kept its invocation would otherwise act for a session behind its back, even while the turn runs."""
    host = await stage(HANG)
    turn = await _running(host)
    with host.calling(turn) as invocation:
        await _gateway(host).call(invocation, "collaboration.list", {})

    with pytest.raises(PermissionDeniedError, match="has ended"):
        await _gateway(host).call(invocation, "collaboration.list", {})


@guarantee("I10")
@pytest.mark.parametrize("forged", ["session_id", "turn_id", "id", "workspace", None])
async def test_an_invocation_that_the_host_did_not_make_is_refused(stage: SetStage, forged: str | None) -> None:
    """Only the host's own object counts: not even an equal copy does, while the real call still runs."""
    host = await stage(HANG)
    turn, other = await _running(host), await host.session("other")
    changes: dict[str, Any] = {forged: other} if forged else {}

    with host.calling(turn) as invocation:
        copy = replace(invocation, **changes)
        with pytest.raises(PermissionDeniedError):
            await _gateway(host).call(copy, "collaboration.send", {"sessionId": other, "content": "I am another"})

    assert await host.exchanges(other) == []


@guarantee("I10")
@pytest.mark.parametrize("operation", ["collaboration.send", "collaboration.spawn"])
async def test_an_agent_cannot_name_the_session_that_it_speaks_for(stage: SetStage, operation: str) -> None:
    """Not even its own: the parameter is a person's."""
    host = await stage(HANG)
    turn, other = await _running(host), await host.session("other")
    target = {"sessionId": other} if operation.endswith("send") else {}

    with host.calling(turn) as invocation:
        for name in (other, turn.session_id):
            with pytest.raises(PermissionDeniedError):
                await _gateway(host).call(invocation, operation, {"content": "hello", "asSessionId": name, **target})
        # The tool does not know the parameter at all.
        told = _fault(await _call(host, invocation, action="spawn", task="do it", asSessionId=other))

    assert told["code"] == "INVALID_ARGUMENT"
    assert await host.exchanges(other) == []


async def test_a_plugin_has_the_operations_that_it_declared_and_that_agents_may_use(stage: SetStage) -> None:
    """Declaring an operation of people gives nothing."""
    host = await stage(HANG)
    turn = await _running(host)
    declared = frozenset({"collaboration.list", "session.prompt", "session.create", "session.release"})
    gateway = _gateway(host, declared)

    with host.calling(turn) as invocation:
        assert (await gateway.call(invocation, "collaboration.list", {}))["sessions"]
        for operation in ("collaboration.send", "session.prompt", "session.create", "session.release", "no.such"):
            with pytest.raises(PermissionDeniedError):
                await gateway.call(invocation, operation, {"sessionId": turn.session_id, "text": "x", "content": "x"})
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
            assert _fault(await _call(host, invocation, **action))["code"] == "CONFLICT"
        with pytest.raises(ConflictError):
            await host.act(invocation, "collaboration.send", sessionId=other, content="x")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"action": "spwan", "task": "x"}, "Did you mean 'spawn'?"),
        ({"action": "delegate"}, "is not one of spawn, send, status, result, wait, cancel, list"),
        ({"task": "x"}, "is not one of spawn"),
        ({"action": 7}, "is not one of spawn"),
        ({"action": "spawn"}, "spawn needs task"),
        ({"action": "spawn", "task": ""}, "spawn needs task"),
        ({"action": "spawn", "task": "x", "prompt": "y"}, "spawn does not take prompt; it takes task, title, model"),
        ({"action": "send", "message": "x"}, "send needs sessionId"),
        ({"action": "wait", "messageId": "x"}, "wait needs messageIds"),
        ({"action": "wait", "messageIds": "x"}, "messageIds"),
        ({"action": "wait", "messageIds": []}, "messageIds is empty"),
        ({"action": "spawn", "task": "x", "notifyOnCompletion": "yes"}, "notifyOnCompletion"),
    ],
)
async def test_what_cannot_be_meant_is_answered_with_what_can(
    stage: SetStage, arguments: dict[str, object], told: str
) -> None:
    """A model corrects itself when it is told how; nothing is done in the meantime."""
    host = await stage(HANG)
    turn = await _running(host)

    with host.calling(turn) as invocation:
        fault = _fault(await _call(host, invocation, **arguments))

    assert fault["code"] == "INVALID_ARGUMENT"
    assert told in fault["message"]
    assert len((await host.ask("session.list"))["sessions"]) == 1


@pytest.mark.parametrize(
    ("name", "code"), [("wrker", "NOT_FOUND"), ("ses_nothing", "NOT_FOUND"), ("\u0130", "NOT_FOUND")]
)
async def test_a_session_that_is_not_there_is_answered_with_near_ones(stage: SetStage, name: str, code: str) -> None:
    """Whatever the string looks like, it names nothing."""
    host = await stage(HANG)
    turn, worker = await _running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        fault = _fault(await _call(host, invocation, action="send", sessionId=name, message="hello"))

    assert fault["code"] == code
    assert (name != "wrker") or any(worker in near for near in fault["candidates"])


async def test_empty_strings_count_as_absent(stage: SetStage) -> None:
    """Models fill in every field that a schema offers."""
    host = await stage(HANG)
    turn = await _running(host)
    empty = {"title": "", "model": "", "idempotencyKey": "", "sessionId": "", "messageId": "", "cursor": ""}

    with host.calling(turn) as invocation:
        spawned = json.loads((await _call(host, invocation, action="spawn", task="do it", **empty)).text)
        again = json.loads((await _call(host, invocation, action="spawn", task="do it", **empty)).text)
        shown = await _call(host, invocation, action="result", sessionId=spawned["sessionId"], messageId="", turnId="")

    assert spawned["sessionId"] != again["sessionId"]
    assert json.loads(shown.text)["message"]["id"] == spawned["messageId"]
    session = (await host.ask("session.get", sessionId=spawned["sessionId"]))["session"]
    assert session["title"] == "do it"


@guarantee("I14")
async def test_a_repeated_call_with_a_key_spawns_once(stage: SetStage) -> None:
    """A model that saw no answer asks again; another task under that key is a mistake that it must hear of."""
    host = await stage(HANG)
    turn = await _running(host)

    with host.calling(turn) as invocation:
        first, again = [
            json.loads((await _call(host, invocation, action="spawn", task="do it", idempotencyKey="k")).text)
            for _ in range(2)
        ]
        fault = _fault(await _call(host, invocation, action="spawn", task="do that", idempotencyKey="k"))

    assert (first["messageId"], first["sessionId"]) == (again["messageId"], again["sessionId"])
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert fault["code"] == "IDEMPOTENCY_CONFLICT"


SEVEN: Final = """
- when: {model: lead, user: "^go", requests_since_user: 0}
  reply: {calls: [{tool: session_task, arguments: {action: spawn, task: count, title: Counter, model: worker}}]}
- when: {model: lead, user: "^go", requests_since_user: 1}
  capture: &ids
    session: {from: tool_results, pattern: '"sessionId": ?"([^"]+)"'}
    message: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}
  reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${message}"], mode: any}}]}
- when: {model: lead, user: "^go", requests_since_user: 2}
  capture: *ids
  reply:
    calls:
      - {tool: session_task, arguments: {action: result, sessionId: "${session}", messageId: "${message}"}}
      - {tool: session_task, arguments: {action: status, sessionId: "${session}"}}
      - {tool: session_task, arguments: {action: send, sessionId: "${session}", message: stall, kind: task}}
      - {tool: session_task, arguments: {action: cancel, sessionId: "${session}"}}
      - {tool: session_task, arguments: {action: list, limit: 10}}
- when: {model: lead, user: "^go", requests_since_user: 3}
  reply: {text: "done"}
- {when: {model: worker, user: stall}, reply: {hang: true}}
- {when: {model: worker}, reply: {text: "42"}}
- {reply: {text: "noted"}}
"""


async def test_a_model_can_use_all_seven_actions(stage: SetStage) -> None:
    """Over the wire, in the words of the tool's own schema."""
    host = await stage(SEVEN)
    lead = await host.session("lead")
    turn_id = await host.prompt(lead, "go")
    await host.until_items(lead, lambda items: "done" in [item["text"] for item in items])

    spawned, waited, result, status, sent, cancelled, listed = [
        json.loads(text) for text in (await host.results(lead))[:7]
    ]
    assert (spawned["status"], waited["timedOut"]) == ("running", False)
    assert waited["messages"][0]["result"] == result["message"]["result"] == "42"
    assert (result["ready"], status["title"], status["createdBySession"]["sessionId"]) == (True, "Counter", lead)
    assert cancelled["messageIds"] == [sent["messageId"]]
    assert {one["title"] for one in listed["sessions"]} == {"lead", "Counter"}
    tool = next(one for one in host.asked()[0]["tools"] if one["function"]["name"] == "session_task")
    assert len(tool["function"]["parameters"]["properties"]["action"]["enum"]) == 7
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
