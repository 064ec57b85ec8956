"""What a model may write to `session_task`, and what it is told when that cannot be meant."""

import json
from typing import Any, Final

import pytest
from tests.runtime.engine.calls import HANG, gateway, refused, running, told
from tests.runtime.engine.conftest import SetStage

from coterie.core.limits import Limits
from coterie.operations.catalogue import BY_NAME
from coterie.operations.params import SessionList
from coterie.plugins.session_orchestrator import coterie_tools
from coterie.plugins.session_orchestrator.actions import ACTIONS, SUPERVISED_MAX
from coterie.plugins.session_orchestrator.arguments import IDS_MAX, PARAMETERS

ACTION_NAMES: Final = "spawn, send, supervise, status, wait, result, accept, cancel, list, models"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "spwan", "task": "x"}, "Did you mean 'spawn'?"),
        ({"action": "delegate"}, f"is not one of {ACTION_NAMES}."),
        ({"action": "x" * 10_000}, "is not one of spawn"),
        ({"task": "x"}, "is not one of spawn"),
        ({"action": 7}, "is not one of spawn"),
        ({"action": "spawn"}, "spawn needs task"),
        ({"action": "spawn", "task": ""}, "spawn needs task"),
        ({"action": "spawn", "task": " \n"}, "is empty"),
        ({"action": "spawn", "task": ["x"]}, "task must be of type string"),
        ({"action": "spawn", "task": "x", "prompt": "y"}, "spawn does not take prompt; it takes task, title, model"),
        ({"action": "spawn", "task": "x", "modell": "y"}, "Did you mean 'model'?"),
        ({"action": "spawn", "task": "x", "title": "y" * 81}, "title"),
        ({"action": "spawn", "task": "x", "notifyOnCompletion": "yes"}, "notifyOnCompletion must be of type boolean"),
        ({"action": "send", "message": "x"}, "send needs sessionId"),
        ({"action": "send", "sessionId": "x"}, "send needs message"),
        (
            {"action": "send", "sessionId": "x", "message": "y", "kind": "completion"},
            "kind must be one of message, task",
        ),
        ({"action": "send", "sessionId": "x", "message": "y", "model": "z"}, "a session keeps its model"),
        ({"action": "send", "sessionId": "x", "message": "y", "expiresAt": "soon"}, "expiresAt"),
        ({"action": "supervise", "message": "x"}, "supervise needs sessionIds"),
        ({"action": "supervise", "sessionIds": ["x"], "message": "y", "idempotencyKey": "k"}, "one key stands for one"),
        ({"action": "wait"}, "wait needs one of sessionIds, messageIds and cursor"),
        ({"action": "wait", "messageIds": []}, "wait needs one of"),
        ({"action": "wait", "sessionIds": [""]}, "wait needs one of"),
        ({"action": "wait", "sessionIds": ["x"], "messageIds": ["y"]}, "wait needs one of"),
        ({"action": "wait", "messageId": "x"}, "wait needs one of"),
        ({"action": "wait", "messageIds": ["x"], "messageId": "x"}, "choose within one session"),
        ({"action": "wait", "sessionIds": ["x", "y"], "messageId": "z"}, "choose within one session"),
        ({"action": "wait", "sessionIds": ["x", "y"], "turnId": "z"}, "choose within one session"),
        ({"action": "wait", "messageIds": "x"}, "messageIds must be of type array"),
        ({"action": "wait", "messageIds": [7, None]}, "messageIds must have strings only"),
        ({"action": "wait", "messageIds": ["x"], "timeoutMs": -1}, "timeoutMs must be from 0 to"),
        ({"action": "wait", "messageIds": ["x"], "timeoutMs": True}, "timeoutMs must be of type integer"),
        ({"action": "wait", "cursor": "x"}, "cursor is not one that a wait returned"),
        ({"action": "status", "sessionId": "x", "workerId": "y"}, "workerId and sessionId mean the same and differ"),
        ({"action": "status", "sessionIds": ["x"], "workerIds": ["x", "y"]}, "workerIds and sessionIds mean the same"),
        ({"action": "status", "sessionIds": ["x"], "sessionId": "y"}, "sessionId and sessionIds mean the same"),
        ({"action": "result"}, "result needs sessionId"),
        ({"action": "accept", "messageId": "x"}, "accept needs sessionId"),
        ({"action": "cancel"}, "cancel needs sessionId"),
        ({"action": "list", "limit": 51}, "limit must be from 1 to 50"),
        ({"action": "models", "model": "x"}, "models does not take model; it takes nothing."),
    ],
)
async def test_what_cannot_be_meant_is_answered_with_what_can(
    stage: SetStage, arguments: dict[str, object], said: str
) -> None:
    """A model corrects itself when it is told how; nothing is done in the meantime."""
    host = await stage(HANG)
    turn = await running(host)

    with host.calling(turn) as invocation:
        fault = await refused(host, invocation, **arguments)

    assert fault["code"] == "INVALID_ARGUMENT"
    assert said in fault["message"]
    assert len(fault["message"]) < 500
    assert len((await host.ask("session.list"))["sessions"]) == 1


@pytest.mark.parametrize("name", ["wrker", "ses_nothing", "\u0130"])
@pytest.mark.parametrize("action", ["send", "status", "wait", "result", "accept", "cancel"])
async def test_a_session_that_is_not_there_is_answered_with_near_ones(stage: SetStage, name: str, action: str) -> None:
    """Whatever the string looks like, it names nothing."""
    host = await stage(HANG)
    turn, worker = await running(host), await host.session("worker")
    message = {"message": "hello"} if action == "send" else {}

    with host.calling(turn) as invocation:
        fault = await refused(host, invocation, action=action, workerId=name, **message)

    assert fault["code"] == "NOT_FOUND"
    assert (name != "wrker") or any(worker in near for near in fault["candidates"])


async def test_what_is_empty_counts_as_absent(stage: SetStage) -> None:
    """Models fill in every field that a schema offers."""
    host = await stage(HANG)
    turn = await running(host)
    empty: dict[str, Any] = {name: [] if schema["type"] == "array" else "" for name, schema in PARAMETERS.items()}
    empty |= {"notifyOnCompletion": None, "timeoutMs": None, "limit": None}
    del empty["task"]

    with host.calling(turn) as invocation:
        spawned = await told(host, invocation, action="spawn", task="do it", **empty)
        again = await told(host, invocation, action="spawn", task="do it", **empty)
        filled = empty | {"sessionId": spawned["sessionId"]}
        shown = await told(host, invocation, action="result", **filled)
        sent = await told(host, invocation, action="send", **filled | {"message": "hello"})

    assert spawned["sessionId"] != again["sessionId"]
    assert shown["message"]["id"] == spawned["messageId"]
    assert sent["sessionId"] == spawned["sessionId"]
    session = (await host.ask("session.get", sessionId=spawned["sessionId"]))["session"]
    assert session["title"] == "do it"


@pytest.mark.parametrize(
    "ids",
    [
        '{"sessionId": "WORKER"}',
        '{"workerId": "WORKER"}',
        '{"sessionIds": ["WORKER"]}',
        '{"workerIds": ["WORKER", "WORKER", ""]}',
        '{"sessionId": "WORKER", "workerIds": ["WORKER"], "sessionIds": ["WORKER"]}',
    ],
)
async def test_one_session_may_be_named_by_any_of_its_parameters(stage: SetStage, ids: str) -> None:
    """They are read as one, and each id once."""
    host = await stage(HANG)
    turn, worker = await running(host), await host.session("worker")
    named: dict[str, Any] = json.loads(ids.replace("WORKER", worker))

    with host.calling(turn) as invocation:
        (row,) = (await told(host, invocation, action="status", **named))["sessions"]

    assert row["sessionId"] == worker


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ({"action": "status", "sessionIds": [str(n) for n in range(IDS_MAX + 1)]}, ("ids_max", IDS_MAX)),
        ({"action": "wait", "workerIds": [str(n) for n in range(IDS_MAX + 1)]}, ("ids_max", IDS_MAX)),
        ({"action": "wait", "messageIds": [str(n) for n in range(IDS_MAX + 1)]}, ("ids_max", IDS_MAX)),
        (
            {"action": "supervise", "sessionIds": [str(n) for n in range(SUPERVISED_MAX + 1)], "message": "x"},
            ("supervised_max", SUPERVISED_MAX),
        ),
        ({"action": "spawn", "task": "x" * 65_537}, ("content_chars_max", 65_536)),
    ],
)
async def test_too_much_is_refused_by_the_name_of_the_limit(
    stage: SetStage, arguments: dict[str, Any], limit: tuple[str, int]
) -> None:
    """And nothing of it is done: half a call would leave a model guessing which half."""
    host = await stage(HANG)
    turn = await running(host)

    with host.calling(turn) as invocation:
        fault = await refused(host, invocation, **arguments)

    assert fault["code"] == "LIMIT_EXCEEDED"
    assert (fault["limit"], fault["value"]) == limit
    assert f"{limit[0]} allows {limit[1]}" in fault["message"]
    assert await host.exchanges(turn.session_id) == []


async def test_ids_are_counted_once_each(stage: SetStage) -> None:
    """A list that repeats itself names no more than it names."""
    host = await stage(HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        answer = await told(host, invocation, action="supervise", sessionIds=[worker] * 17, message="hello")

    assert [one["sessionId"] for one in answer["workers"]] == [worker]
    assert len(await host.exchanges(worker)) == 1


async def test_schema_and_actions_are_of_one_table(stage: SetStage) -> None:
    """A model can write what an action takes, and nothing that none takes."""
    host = await stage(HANG)
    (tool,) = coterie_tools(gateway(host))
    schema: Any = tool.spec.parameters

    assert (schema["additionalProperties"], schema["required"]) == (False, ["action"])
    assert schema["properties"]["action"]["enum"] == ACTION_NAMES.split(", ") == list(ACTIONS)
    taken = {name for action in ACTIONS.values() for name in action.form.takes}
    assert {*schema["properties"]} == taken | {"action", "workerId", "workerIds"}
    assert all(f"{name}{{{action.signature}}}" in tool.spec.description for name, action in ACTIONS.items())
    for parameter in (one for one in PARAMETERS.values() if "enum" not in one and one["type"] != "boolean"):
        assert {"string": "maxLength", "integer": "maximum", "array": "maxItems"}[parameter["type"]] in parameter


async def test_the_schema_promises_what_operations_take() -> None:
    """A bound that differs would let a model write in vain."""
    spawn: Any = BY_NAME["collaboration.spawn"].params.model_json_schema()["properties"]
    accept: Any = BY_NAME["collaboration.accept"].params.model_json_schema()["properties"]
    wait: Any = BY_NAME["collaboration.wait"].params.model_json_schema()["properties"]
    send: Any = BY_NAME["collaboration.send"].params.model_json_schema()["properties"]
    limits = Limits()

    assert PARAMETERS["title"]["maxLength"] == spawn["title"]["anyOf"][0]["maxLength"]
    assert PARAMETERS["note"]["maxLength"] == accept["note"]["maxLength"]
    assert PARAMETERS["cursor"]["maxLength"] == wait["cursor"]["anyOf"][0]["maxLength"]
    assert PARAMETERS["mode"]["enum"] == wait["mode"]["enum"]
    assert PARAMETERS["messageIds"]["maxItems"] <= wait["messageIds"]["maxItems"]
    assert (PARAMETERS["kind"]["enum"], PARAMETERS["deliver"]["enum"]) == (
        send["kind"]["enum"],
        send["deliver"]["enum"],
    )
    assert PARAMETERS["task"]["maxLength"] == PARAMETERS["message"]["maxLength"] == limits.content_chars_max
    assert PARAMETERS["idempotencyKey"]["maxLength"] == limits.idempotency_key_chars_max
    assert SessionList(limit=PARAMETERS["limit"]["maximum"]).limit == 50
