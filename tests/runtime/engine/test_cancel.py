"""Stopping work: whatever hangs ends, whoever waits is told, and nothing starts from it."""

import asyncio
import os
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage

from coterie.core.errors import ConflictError, HostError, PermissionDeniedError
from coterie.core.turn.states import TurnState

HANG: Final = """
- when: {model: worker}
  reply: {hang: true}
- when: {user: '"kind": "completion"'}
  reply: {text: noted}
"""


async def _hanging(host: Stage) -> tuple[str, str, str]:
    """Have a worker hang at a task; returns its sender, itself and the task."""
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)
    await host.until(lambda server: server.answering == 1)
    return source, worker, message_id


async def _cancel(host: Stage, session_id: str, message_id: str | None = None, **params: Any) -> dict[str, Any]:
    named = {"messageId": message_id} if message_id else {}
    return await host.ask("collaboration.cancel", sessionId=session_id, **named, **params)


@guarantee("I7")
@pytest.mark.parametrize("named", [True, False])
async def test_a_task_at_a_model_that_hangs_is_cancelled_and_its_sender_is_told(stage: SetStage, named: bool) -> None:  # noqa: FBT001
    """Case 2: the answer lists what was stopped, and the vendor is not left writing for nobody."""
    host = await stage(HANG)
    source, worker, message_id = await _hanging(host)
    running = await host.last_turn(worker)

    stopped = await _cancel(host, worker, message_id if named else None)

    assert stopped == {
        "cancelled": True,
        "sessionRetained": True,
        "messageIds": [message_id],
        "runningTurnIds": [running.id],
    }
    (settled,) = await host.settled(message_id)
    assert settled["status"] == "cancelled"
    assert (await host.ended(worker)).state is TurnState.CANCELLED
    await host.until(lambda server: server.answering == 0)
    told = await host.ended(source)
    completion = await host.completion(message_id)
    assert (told.kind, completion["turnId"], completion["status"]) == ("completion", told.id, "completed")
    assert '"status": "cancelled"' in completion["content"]


@guarantee("I5")
async def test_a_second_cancel_finds_nothing_to_stop(stage: SetStage) -> None:
    """Case 97: it is no error, and changes nothing."""
    host = await stage(HANG)
    source, worker, message_id = await _hanging(host)
    await _cancel(host, worker, message_id)
    await host.idle(worker, source)
    before = await host.chain(message_id)

    again = await _cancel(host, worker, message_id)

    assert (again["messageIds"], again["runningTurnIds"]) == ([], [])
    assert await host.chain(message_id) == before
    assert (await host.last_turn(worker)).state is TurnState.CANCELLED


@guarantee("I5")
async def test_what_has_completed_is_not_cancelled_any_more(stage: SetStage) -> None:
    """Case 96: an end is final, also for a person."""
    host = await stage("- {reply: {text: done}}")
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)
    await host.settled(message_id)
    await host.idle(source)

    stopped = await _cancel(host, worker, message_id)

    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([], [])
    (settled,) = await host.settled(message_id)
    assert (settled["status"], settled["result"]) == ("completed", "done")


async def test_a_prompt_at_a_model_that_hangs_is_cancelled_and_the_next_one_runs(stage: SetStage) -> None:
    """What had been said stays, and is no obstacle: the session goes on."""
    host = await stage("""
    - {when: {user: first}, reply: {hang: true}}
    - {reply: {text: "All is well."}}
    """)
    session = await host.session()
    turn_id = await host.prompt(session, "first")
    await host.ask("session.prompt", sessionId=session, text="second")
    await host.until(lambda server: server.answering == 1)

    stopped = await _cancel(host, session)

    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([], [turn_id])
    assert (await host.ended(session)).result == "All is well."
    kinds = [(item["kind"], item["text"]) for item in await host.items(session)]
    assert kinds == [("person", "first"), ("person", "second"), ("reply", "All is well.")]


TREE: Final = """
- when: {model: lead, user: 'go (?P<leaf>\\S+)', requests_since_user: 0}
  reply: {calls: [{tool: session_task, arguments: {action: spawn, task: "ask ${user.leaf}", model: worker}}]}
- when: {model: worker, user: 'ask (?P<leaf>ses_\\w+)', requests_since_user: 0}
  reply:
    calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.leaf}", message: think, kind: task}}]
- when: {last: tool, requests_since_user: 1}
  capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}
  reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}]}
- when: {model: other}
  reply: {hang: true}
- reply: {text: noted}
"""


async def _tree(host: Stage) -> tuple[str, str, str]:
    """A lead that waits for a worker, which waits for a third session, which hangs."""
    lead, leaf = await host.session("lead"), await host.session("other")
    await host.prompt(lead, f"go {leaf}")
    await host.until(lambda server: [request["model"] for request in server.requests].count("other") == 1)
    worker = (await host.exchanges(lead))[0]["peer"]["sessionId"]
    return lead, cast("str", worker), leaf


async def test_cancelling_the_root_ends_everything_below_and_starts_nothing(stage: SetStage) -> None:
    """Case 93: a stop that only reaches the top leaves its children at work; their ends must not wake it either."""
    host = await stage(TREE)
    sessions = await _tree(host)
    turns = [(await host.last_turn(session)).id for session in sessions]
    requests = len(host.asked())

    stopped = await _cancel(host, sessions[0])

    await host.idle(*sessions)
    await host.until(lambda server: server.answering == 0)
    sent = [one for one in await host.chain(stopped["messageIds"][0]) if one["kind"] == "task"]
    assert sorted(stopped["messageIds"]) == sorted(one["id"] for one in sent)
    assert [one["targetSessionId"] for one in sent] == list(sessions[1:])
    assert sorted(stopped["runningTurnIds"]) == sorted(turns)
    assert {one["status"] for one in await host.chain(sent[0]["id"])} == {"cancelled"}
    assert [(await host.last_turn(session)).state for session in sessions] == [TurnState.CANCELLED] * 3
    # Every queue is empty and every turn has ended, so nothing is left that could begin.
    assert [(await host.ask("collaboration.status", sessionId=session))["waiting"] for session in sessions] == [0] * 3
    assert [await host.turns(session) for session in sessions] == [1] * 3
    assert len(host.asked()) == requests


async def test_without_a_cascade_only_the_root_ends(stage: SetStage) -> None:
    """What it had sent goes on, and answers a session that hears of it in a new turn."""
    host = await stage(TREE)
    lead, worker, leaf = await _tree(host)

    stopped = await _cancel(host, lead, cascade=False)

    assert (stopped["messageIds"], len(stopped["runningTurnIds"])) == ([], 1)
    assert (await host.ended(lead)).state is TurnState.CANCELLED
    assert (await host.last_turn(worker)).state is TurnState.RUNNING
    await _cancel(host, leaf)
    turn = await host.ended(worker)
    assert (turn.kind, turn.state, turn.result) == ("task", TurnState.COMPLETED, "noted")
    told = await host.ended(lead)
    assert (told.kind, told.state) == ("completion", TurnState.COMPLETED)


async def test_cancelling_the_leaf_lets_those_who_wait_for_it_answer(stage: SetStage) -> None:
    """A cancel below is an outcome for those above, not their end."""
    host = await stage(TREE)
    lead, worker, leaf = await _tree(host)

    await _cancel(host, leaf)

    assert (await host.ended(leaf)).state is TurnState.CANCELLED
    ended = [await host.ended(session) for session in (worker, lead)]
    assert [(turn.state, turn.result) for turn in ended] == [(TurnState.COMPLETED, "noted")] * 2
    assert await host.turns(lead) == await host.turns(worker) == 1


async def test_a_cancel_ends_the_programs_that_a_tool_has_started(stage: SetStage) -> None:
    """The whole group of processes: a child in the background is work as well."""
    host = await stage("""
    - reply: {calls: [{tool: bash, arguments: {command: "exec 3> pipe; sleep 60 & echo begun >&3; wait"}}]}
    """)
    session = await host.session(mode="auto", folder=True)
    os.mkfifo(host.project / "pipe")
    await host.prompt(session, "go")
    async with asyncio.timeout(BOUND_S):
        with await asyncio.to_thread((host.project / "pipe").open) as pipe:
            assert await asyncio.to_thread(pipe.readline) == "begun\n"

            await _cancel(host, session)

            assert (await host.ended(session)).state is TurnState.CANCELLED
            # The end of the pipe: nobody who had it open lives.
            assert await asyncio.to_thread(pipe.read) == ""
    assert len(host.asked()) == 1


async def test_a_cancelled_turn_that_had_read_an_outcome_is_not_told_it_again(stage: SetStage) -> None:
    """The result stands in its transcript, so a notice would start the session anew for what it knows."""
    host = await stage("""
    - when: {model: lead, user: '"kind": "task"', requests_since_user: 0}
      reply: {calls: [{tool: session_task, arguments: {action: spawn, task: count, model: other}}]}
    - when: {model: lead, user: '"kind": "task"', requests_since_user: 1}
      capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}
      reply:
        calls:
          - {tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}
          - {tool: bash, arguments: {command: "echo read > pipe; sleep 60"}}
    - reply: {text: "42"}
    """)
    source, lead = await host.session("worker", mode="auto"), await host.session("lead", mode="auto", folder=True)
    os.mkfifo(host.project / "pipe")
    message_id = await host.task(source, lead)
    # The second call of a reply begins when the first one has its result.
    async with asyncio.timeout(BOUND_S):
        assert await asyncio.to_thread((host.project / "pipe").read_text) == "read\n"

    await _cancel(host, lead, message_id)

    turn = await host.ended(lead)
    assert '"result": "42"' in (await host.results(lead))[1]
    assert (turn.kind, turn.state, await host.turns(lead)) == ("task", TurnState.CANCELLED, 1)
    (counted,) = [one for one in await host.chain(message_id) if one["content"] == "count"]
    completion = await host.completion(counted["id"])
    assert (completion["status"], completion["turnId"]) == ("cancelled", turn.id)


@guarantee("I7")
async def test_a_message_that_waits_is_cancelled_where_it_is(stage: SetStage) -> None:
    """It leaves the queue, its sender is told, and the turn before it goes on."""
    host = await stage(HANG)
    source, worker, first = await _hanging(host)
    second, third = await host.task(source, worker), await host.task(source, worker)

    stopped = await _cancel(host, worker, second)

    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([second], [])
    (settled,) = await host.settled(second)
    assert settled["status"] == "cancelled"
    assert (await host.completion(second))["targetSessionId"] == source
    assert (await host.ended(source)).kind == "completion"
    waiting = await host.ask("collaboration.wait", messageIds=[first, third], timeoutMs=0)
    assert [one["status"] for one in waiting["messages"]] == ["running", "queued"]
    assert len(host.asked("worker")) == 1


async def test_an_agent_cancels_what_its_session_has_sent_and_nothing_else(stage: SetStage) -> None:
    """Also one that has been told the id of another's message: the id is no credential."""
    host = await stage("- {when: {model: '*'}, reply: {hang: true}}")
    lead, other, worker = [await host.session(model) for model in ("lead", "other", "worker")]
    await host.prompt(lead, "go")
    foreign = await host.task(other, worker)
    turn = await host.last_turn(lead)

    with host.calling(turn) as invocation:
        sent = await host.act(invocation, "collaboration.send", sessionId=worker, content="mine")
        with pytest.raises(PermissionDeniedError):
            await host.act(invocation, "collaboration.cancel", sessionId=worker, messageId=foreign)
        stopped = await host.act(invocation, "collaboration.cancel", sessionId=worker)

    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([sent["messageId"]], [])
    waiting = await host.ask("collaboration.wait", messageIds=[foreign], timeoutMs=0)
    assert waiting["messages"][0]["status"] == "running"


async def test_an_agent_does_not_cancel_the_turn_of_a_person(stage: SetStage) -> None:
    """Nor its own: only messages are an agent's to stop."""
    host = await stage("- {reply: {hang: true}}")
    lead, other = await host.session("lead"), await host.session("other")
    await host.prompt(lead, "go")
    await host.prompt(other, "go")
    turn = await host.last_turn(lead)

    with host.calling(turn) as invocation:
        for session in (other, lead):
            stopped = await host.act(invocation, "collaboration.cancel", sessionId=session)
            assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([], [])

    assert [(await host.last_turn(session)).state for session in (lead, other)] == [TurnState.RUNNING] * 2


async def test_an_agent_does_not_cancel_the_notice_of_its_own_work(stage: SetStage) -> None:
    """The host sends a completion, not the worker: else a worker could keep its sender from ever hearing of it."""
    host = await stage("""
    - {when: {model: worker, user: quick}, reply: {text: done}}
    - {reply: {hang: true}}
    """)
    lead, worker = await host.session("lead"), await host.session("worker")
    await host.prompt(lead, "go")
    message_id = await host.task(lead, worker, "be quick")
    await host.settled(message_id)
    await host.idle(worker)
    await host.prompt(worker, "go on")
    turn = await host.last_turn(worker)

    with host.calling(turn) as invocation:
        completion = await host.completion(message_id)
        stopped = await host.act(invocation, "collaboration.cancel", sessionId=lead)
        with pytest.raises(PermissionDeniedError):
            await host.act(invocation, "collaboration.cancel", sessionId=lead, messageId=completion["id"])

    assert stopped["messageIds"] == []
    assert (await host.completion(message_id))["status"] == "queued"


async def test_nothing_begins_in_a_turn_that_is_being_cancelled(stage: SetStage) -> None:
    """Case 94: what a cancelled turn still sends would escape the cancel."""
    host = await stage(HANG)
    source, worker, message_id = await _hanging(host)
    turn = await host.last_turn(worker)

    with host.calling(turn) as invocation:
        await _cancel(host, worker, message_id)
        for operation, params in (("spawn", {}), ("send", {"sessionId": source})):
            with pytest.raises(ConflictError):
                await host.act(invocation, f"collaboration.{operation}", content="escape", **params)

    assert [one["kind"] for one in await host.chain(message_id)] == ["task", "completion"]
    sessions = (await host.ask("session.list"))["sessions"]
    assert {one["id"] for one in sessions} == {source, worker}


@guarantee("I7")
async def test_three_callers_of_one_busy_session_each_get_an_answer(stage: SetStage) -> None:
    """Case 55: each is told its place, or that there is none, and then how it ended."""
    host = await stage(HANG, inbox_max=2)
    source, worker, _ = await _hanging(host)
    second, third = await host.task(source, worker), await host.task(source, worker)

    with pytest.raises(HostError) as busy:
        await host.task(source, worker)

    assert busy.value.code.value == "AGENT_BUSY"
    stopped = await _cancel(host, worker)
    assert stopped["messageIds"][1:] == [second, third]
    assert {one["status"] for one in await host.settled(second, third)} == {"cancelled"}
