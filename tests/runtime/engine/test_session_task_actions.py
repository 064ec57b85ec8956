"""`session_task`: beginning work in other sessions, finding them, and stopping what was begun."""

import asyncio
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.runtime.engine.calls import HANG, refused, running, told
from tests.runtime.engine.conftest import SetStage, Stage

from coterie.operations.perform import Operations
from coterie.plugins.gateway import Gateway
from coterie.plugins.session_orchestrator import OPERATIONS, SessionTask
from coterie.ports.tool import Invocation

WORKS: Final = """
- {when: {model: worker, user: stall}, reply: {hang: true}}
- {when: {model: worker}, reply: {text: "42"}}
"""


async def _model(host: Stage, session_id: str) -> str:
    """The model that a session has."""
    found: str = (await host.ask("session.get", sessionId=session_id))["session"]["model"]
    return found


@pytest.mark.parametrize(
    ("asked", "selection", "has"), [(None, "delegation", "local/one"), ("Worker", "explicit", "local/worker")]
)
async def test_a_spawn_says_which_model_was_asked_for_and_how_it_was_found(
    stage: SetStage, asked: str | None, selection: str, has: str
) -> None:
    """What is chosen for an agent is no secret before it."""
    host = await stage(HANG)
    turn = await running(host)

    with host.calling(turn) as invocation:
        receipt = await told(host, invocation, action="spawn", task="dig", title="Digger", model=asked)

    assert (receipt["accepted"], receipt["status"], receipt["remainingHops"]) == (True, "running", 8)
    assert (receipt.get("requestedModel"), receipt["modelSelection"]) == (asked, selection)
    assert await _model(host, receipt["sessionId"]) == has
    (message,) = await host.chain(receipt["messageId"])
    assert (message["sourceSessionId"], message["kind"], message["content"]) == (turn.session_id, "task", "dig")


async def test_three_spawns_at_once_run_side_by_side(stage: SetStage) -> None:
    """Each is answered with its own session, before any of them has ended."""
    host = await stage(HANG)
    turn = await running(host)

    with host.calling(turn) as invocation:
        receipts = await asyncio.gather(
            *(told(host, invocation, action="spawn", task=f"part {n}", model="worker") for n in range(3))
        )
    await host.until(lambda server: server.answering == 4)

    assert len({one["sessionId"] for one in receipts}) == len({one["messageId"] for one in receipts}) == 3
    assert {one["status"] for one in receipts} == {"running"}
    assert {len(await host.exchanges(one["sessionId"])) for one in receipts} == {1}
    asked = [request["messages"][-1]["content"] for request in host.asked("worker")]
    assert all(any(f"part {n}" in text for text in asked) for n in range(3))


@pytest.mark.parametrize("kind", ["message", "task"])
async def test_sessions_write_to_each_other_and_keep_their_models(stage: SetStage, kind: str) -> None:
    """No link is needed in either direction, and none comes of it."""
    host = await stage(HANG)
    lead, worker = await running(host), await running(host, "worker")

    for source, target in ((lead, worker), (worker, lead)):
        with host.calling(source) as invocation:
            answer = await told(
                host, invocation, action="send", sessionId=target.session_id, message="hello", kind=kind
            )
            (sent,) = await host.chain(answer["messageId"])
        assert (answer["status"], answer["position"], sent["kind"]) == ("queued", 1, kind)
        assert (sent["sourceSessionId"], sent["targetSessionId"]) == (source.session_id, target.session_id)

    assert [await _model(host, turn.session_id) for turn in (lead, worker)] == ["local/lead", "local/worker"]
    assert {one.get("createdBySessionId") for one in (await host.ask("session.list"))["sessions"]} == {None}


async def test_a_send_says_when_it_is_to_arrive_and_until_when(stage: SetStage) -> None:
    """What the target does not allow is told, instead of being done in silence."""
    host = await stage(HANG)
    turn, worker = await running(host), await running(host, "worker")
    late = "2100-01-01T00:00:00.000Z"

    with host.calling(turn) as invocation:
        answer = await told(
            host,
            invocation,
            action="send",
            workerId=worker.session_id,
            message="hello",
            deliver="current_turn",
            expiresAt=late,
            notifyOnCompletion=True,
            idempotencyKey="k",
        )

    assert answer["deliver"] == "next_turn"
    (message,) = await host.chain(answer["messageId"])
    assert message["expiresAt"] == late


async def test_supervise_keeps_what_was_sent_when_one_target_refuses(stage: SetStage) -> None:
    """And says of each that failed why, so that the rest need not be sent again."""
    host = await stage(HANG)
    turn = await running(host)
    closed, gone, *open_ = [await host.session("worker") for _ in range(3)] + [await host.session("other")]
    await host.ask("session.configure", sessionId=closed, inbound="refuse")
    await host.ask("session.delete", sessionId=gone)

    with host.calling(turn) as invocation:
        answer = await told(
            host,
            invocation,
            action="supervise",
            sessionIds=[closed, open_[0], gone, open_[1]],
            message="go",
            kind="task",
        )

    assert not answer["accepted"]
    assert [(one["sessionId"], one["code"]) for one in answer["failures"]] == [
        (closed, "PERMISSION_DENIED"),
        (gone, "NOT_FOUND"),
    ]
    assert all(one["message"] for one in answer["failures"])
    assert [one["sessionId"] for one in answer["workers"]] == open_
    assert {(await host.chain(one["messageId"]))[0]["kind"] for one in answer["workers"]} == {"task"}
    assert await host.exchanges(closed) == []


async def test_supervise_reaches_all_at_once(stage: SetStage) -> None:
    """Without a failure there is nothing to repeat."""
    host = await stage(HANG)
    turn = await running(host)
    workers = [await host.session("worker") for _ in range(4)]

    with host.calling(turn) as invocation:
        answer = await told(host, invocation, action="supervise", sessionIds=workers, message="go on")
    await host.until(lambda server: server.answering == 5)

    assert (answer["accepted"], answer["failures"]) == (True, [])
    assert [one["sessionId"] for one in answer["workers"]] == workers
    assert {(await host.exchanges(worker))[0]["kind"] for worker in workers} == {"message"}


async def test_the_list_shows_who_was_spawned_and_invents_no_creator(stage: SetStage) -> None:
    """A session that a person made belongs to nobody, however much it is written with."""
    host = await stage(HANG)
    turn, friend = await running(host), await host.session("other")

    with host.calling(turn) as invocation:
        spawned = await told(host, invocation, action="spawn", task="dig")
        await told(host, invocation, action="send", sessionId=friend, message="hello")
        first = await told(host, invocation, action="list", limit=2)
        rest = await told(host, invocation, action="list", limit=2, cursor=first["cursor"])

    rows = {one["sessionId"]: one for one in first["sessions"] + rest["sessions"]}
    creators = {session_id: row.get("createdBySessionId") for session_id, row in rows.items()}
    assert creators == {turn.session_id: None, friend: None, spawned["sessionId"]: turn.session_id}
    assert not {"content", "preview", "text", "projectPath"} & {name for row in rows.values() for name in row}


async def _asked(tool: SessionTask, invocation: Invocation, **arguments: object) -> str:
    return (await tool.run(invocation, arguments)).text


async def test_models_are_read_again_at_each_call(stage: SetStage) -> None:
    """A person may open or close one at any time; what is not there any more is told, and nothing is begun with it."""
    host = await stage(HANG)
    turn = await running(host)
    shown = list(host.engine.operations.host.models)
    operations = Operations(replace(host.engine.operations.host, models=shown))
    tool = SessionTask(Gateway(operations, OPERATIONS, "test"))

    with host.calling(turn) as invocation:
        before = await _asked(tool, invocation, action="models")
        worker = shown.pop(2)
        after = await _asked(tool, invocation, action="models")
        fault = await _asked(tool, invocation, action="spawn", task="dig", model="worker")
        shown.append(replace(worker, available_for_subagents=False))
        denied = await _asked(tool, invocation, action="spawn", task="dig", model="worker")
        shown.clear()
        none = await _asked(tool, invocation, action="models")

    assert '"local/worker"' in before
    assert '"local/worker"' not in after
    assert '"MODEL_NOT_FOUND"' in fault
    assert '"local/other"' in fault
    assert '"PERMISSION_DENIED"' in denied
    assert none == '{"defaultModel": null, "models": [], "automaticCandidates": []}'
    assert await host.exchanges(turn.session_id) == []


async def test_models_say_what_is_taken_when_none_is_named(stage: SetStage) -> None:
    """Every row is there, with what a spawned session may have."""
    host = await stage(HANG)
    turn = await running(host)

    with host.calling(turn) as invocation:
        answer = await told(host, invocation, action="models")

    assert answer["defaultModel"] == "local/one"
    opened = [one["key"] for one in answer["models"] if one["availableForSubagents"]]
    assert answer["automaticCandidates"] == opened
    assert len(answer["models"]) == len(host.settings.models)


async def test_a_session_stops_what_it_has_sent_and_nothing_else(stage: SetStage) -> None:
    """Neither by name nor with all others, and as often as it likes; the session stays."""
    host = await stage(HANG)
    turn, friend, worker = await running(host), await running(host, "other"), await host.session("worker")
    with host.calling(friend) as invocation:
        foreign = await told(host, invocation, action="send", sessionId=worker, message="first", kind="task")

    with host.calling(turn) as invocation:
        own = await told(host, invocation, action="send", sessionId=worker, message="second", kind="task")
        fault = await refused(host, invocation, action="cancel", sessionId=worker, messageId=foreign["messageId"])
        stopped = await told(host, invocation, action="cancel", sessionId=worker)
        again = await told(host, invocation, action="cancel", sessionId=worker, messageId=own["messageId"])

    assert fault["code"] == "PERMISSION_DENIED"
    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([own["messageId"]], [])
    assert (again["cancelled"], again["messageIds"], again["sessionRetained"]) == (True, [], True)
    assert (await host.chain(foreign["messageId"]))[0]["status"] == "running"


@pytest.mark.parametrize(("lead_mode", "worker_mode"), [("auto", "ask"), ("ask", "auto"), ("accept-edits", "auto")])
async def test_a_task_has_the_least_of_both_modes(stage: SetStage, lead_mode: str, worker_mode: str) -> None:
    """A stronger lead lends nothing to a weaker worker, and a weaker one borrows nothing from a stronger worker."""
    host = await stage(WORKS, HANG)
    turn = await running(host, mode=lead_mode)
    worker = await host.session("worker", mode=worker_mode)

    with host.calling(turn) as invocation:
        sent = await told(host, invocation, action="send", sessionId=worker, message="count", kind="task")
        waited = await told(host, invocation, action="wait", sessionIds=[worker])
        status = await told(host, invocation, action="status", sessionId=worker)

    weaker = "ask" if "ask" in (lead_mode, worker_mode) else "accept-edits"
    (message, _) = await host.chain(sent["messageId"])
    ran: dict[str, Any] = await host.ask("session.turn", turnId=message["turnId"])
    assert (sent["ceiling"], message["ceiling"]) == (lead_mode, lead_mode)
    assert (ran["permission"], waited["messages"][0]["result"]) == (weaker, "42")
    assert status["sessions"][0]["permissionMode"] == worker_mode


async def test_a_plugin_may_not_ask_for_more_than_it_declares(stage: SetStage) -> None:
    """What the official plugin declares is what its actions need, and each of it is needed."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")
    asked: set[str] = set()

    class Noting(Gateway):
        """Notes what passes."""

        async def call(self, invocation: Invocation, operation: str, params: Any) -> dict[str, Any]:
            """See `Gateway`."""
            asked.add(operation)
            return await super().call(invocation, operation, params)

    tool = SessionTask(Noting(host.engine.operations, OPERATIONS, "test"))
    with host.calling(turn) as invocation:
        for arguments in (
            {"action": "spawn", "task": "dig"},
            {"action": "send", "sessionId": worker, "message": "count"},
            {"action": "wait", "sessionIds": [worker]},
            {"action": "result", "sessionId": worker},
            {"action": "accept", "sessionId": worker},
            {"action": "status"},
            {"action": "supervise", "sessionIds": [worker], "message": "count"},
            {"action": "cancel", "sessionId": worker},
            {"action": "list"},
            {"action": "models"},
        ):
            assert not (await tool.run(invocation, arguments)).error, arguments

    assert asked == OPERATIONS
