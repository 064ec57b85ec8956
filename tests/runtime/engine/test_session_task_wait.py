"""`session_task` asleep: what a wait is for is fixed when it begins."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

import pytest
from tests.runtime.engine.calls import HANG, refused, running, told
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage

from coterie.plugins.gateway import Gateway
from coterie.plugins.session_orchestrator import OPERATIONS, SessionTask
from coterie.ports.tool import Invocation

WORKS: Final = """
- {when: {model: worker, user: stall}, reply: {hang: true}}
- {when: {model: worker, user: first}, reply: {text: "one"}}
- {when: {model: worker}, reply: {text: "two"}}
"""


class Gated(Gateway):
    """Holds the calls of one operation until they are let go."""

    def __init__(self, host: Stage, operation: str) -> None:
        super().__init__(host.engine.operations, OPERATIONS, "test")
        self._operation = operation
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def call(self, invocation: Invocation, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """See `Gateway`."""
        if operation == self._operation:
            self.reached.set()
            await self.open.wait()
        return await super().call(invocation, operation, params)


async def _send(host: Stage, invocation: Invocation, target: str, message: str) -> str:
    """Send a task; returns the message."""
    sent = await told(host, invocation, action="send", sessionId=target, message=message, kind="task")
    found: str = sent["messageId"]
    return found


async def _as_time_passes(host: Stage, waiting: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What a wait answers while the clock goes on."""
    async with asyncio.timeout(BOUND_S):
        task = asyncio.ensure_future(waiting)
        while not task.done():
            host.clock.advance(0.01)
            await asyncio.sleep(0)
        return task.result()


@pytest.mark.parametrize("follow_up", ["again", "stall"])
async def test_what_is_sent_after_a_wait_began_does_not_take_its_place(stage: SetStage, follow_up: str) -> None:
    """The newest message is looked up once: one that comes then, quick or endless, is another matter."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")
    gate = Gated(host, "collaboration.wait")

    with host.calling(turn) as invocation:
        first = await _send(host, invocation, worker, "first")
        waiting = asyncio.ensure_future(SessionTask(gate).run(invocation, {"action": "wait", "sessionIds": [worker]}))
        await asyncio.wait_for(gate.reached.wait(), BOUND_S)
        second = await _send(host, invocation, worker, follow_up)
        gate.open.set()
        output = await asyncio.wait_for(waiting, BOUND_S)

    assert output.shows == (first,)
    assert second not in output.text
    assert '"result": "one"' in output.text


async def test_a_follow_up_does_not_take_the_place_of_what_is_accepted(stage: SetStage) -> None:
    """The result that was seen is the one that is good."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")
    gate = Gated(host, "collaboration.accept")

    with host.calling(turn) as invocation:
        first = await _send(host, invocation, worker, "first")
        await host.settled(first)
        accepting = asyncio.ensure_future(SessionTask(gate).run(invocation, {"action": "accept", "sessionId": worker}))
        await asyncio.wait_for(gate.reached.wait(), BOUND_S)
        second = await _send(host, invocation, worker, "again")
        await host.settled(second)
        gate.open.set()
        output = await asyncio.wait_for(accepting, BOUND_S)
        noted = [await host.act(invocation, "collaboration.message", messageId=one) for one in (first, second)]

    assert first in output.text
    assert [one["acceptanceStatus"] for one in noted] == ["accepted", "pending"]


async def test_a_wait_for_sessions_is_one_for_the_last_message_to_each(stage: SetStage) -> None:
    """The caller need not keep the ids of what it has sent."""
    host = await stage(WORKS, HANG)
    turn = await running(host)
    workers = [await host.session("worker") for _ in range(2)]

    with host.calling(turn) as invocation:
        await host.settled(await _send(host, invocation, workers[0], "first"))
        newest = [await _send(host, invocation, worker, "again") for worker in workers]
        answer = await told(host, invocation, action="wait", sessionIds=workers)

    assert not answer["timedOut"]
    assert [(one["id"], one["sessionId"], one["result"]) for one in answer["messages"]] == [
        (message, worker, "two") for message, worker in zip(newest, workers, strict=True)
    ]
    assert "nothingSentTo" not in answer


async def test_one_of_several_is_enough_if_that_is_asked_for(stage: SetStage) -> None:
    """The others are shown as they are then."""
    host = await stage(WORKS, HANG)
    turn = await running(host)
    slow, quick = [await host.session("worker") for _ in range(2)]

    with host.calling(turn) as invocation:
        await _send(host, invocation, slow, "stall")
        await _send(host, invocation, quick, "first")
        answer = await told(host, invocation, action="wait", sessionIds=[slow, quick], mode="any")

    assert not answer["timedOut"]
    assert [one["status"] for one in answer["messages"]] == ["running", "completed"]


async def test_a_wait_whose_time_is_up_says_what_was_seen_last_and_goes_on_by_its_cursor(stage: SetStage) -> None:
    """Cases 6 and 57: that is no fault; and the cursor stands for the first messages, not for later ones."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        first = await _send(host, invocation, worker, "stall")
        looked = await told(host, invocation, action="wait", workerIds=[worker], timeoutMs=0)
        slept = await _as_time_passes(host, told(host, invocation, action="wait", sessionIds=[worker], timeoutMs=25))
        await _send(host, invocation, worker, "again")
        await told(host, invocation, action="cancel", sessionId=worker, messageId=first)
        resumed = await told(host, invocation, action="wait", cursor=slept["cursor"])

    for answer in (looked, slept):
        assert (answer["timedOut"], [one["status"] for one in answer["messages"]]) == (True, ["running"])
    assert (resumed["timedOut"], resumed["messages"][0]["id"], resumed["messages"][0]["status"]) == (
        False,
        first,
        "cancelled",
    )


@pytest.mark.parametrize(("mode", "timed_out"), [("any", False), ("all", True)])
async def test_a_session_that_was_sent_nothing_counts_as_settled(stage: SetStage, mode: str, timed_out: bool) -> None:  # noqa: FBT001
    """One is enough for `any`; for `all` the others are waited for still."""
    host = await stage(WORKS, HANG)
    turn = await running(host)
    busy, fresh = await host.session("worker"), await host.session("other")

    with host.calling(turn) as invocation:
        alone = await told(host, invocation, action="wait", sessionIds=[fresh, turn.session_id], mode=mode)
        await _send(host, invocation, busy, "stall")
        answer = await _as_time_passes(
            host, told(host, invocation, action="wait", sessionIds=[fresh, busy], mode=mode, timeoutMs=25)
        )

    assert alone == {"timedOut": False, "messages": [], "nothingSentTo": [fresh, turn.session_id]}
    assert (answer["timedOut"], answer["nothingSentTo"]) == (timed_out, [fresh])
    assert [one["status"] for one in answer["messages"]] == ["running"]
    assert ("cursor" in answer) == timed_out


@pytest.mark.parametrize("kind", ["person", "completion"])
async def test_what_others_have_sent_is_not_waited_for(stage: SetStage, kind: str) -> None:
    """Neither what a third one sent there or here, nor the completion that the host wrote for this session."""
    host = await stage(WORKS, HANG)
    lead, worker = await running(host), await host.session("worker")
    if kind == "completion":
        await host.settled(await host.task(lead.session_id, worker, "first"))
    else:
        await host.task(await host.session("other"), lead.session_id)
    await host.prompt(worker, "stall")

    with host.calling(await host.last_turn(worker)) as invocation:
        answer = await told(host, invocation, action="wait", sessionIds=[lead.session_id, worker])

    assert answer == {"timedOut": False, "messages": [], "nothingSentTo": [lead.session_id, worker]}


async def test_an_earlier_message_or_turn_of_a_session_may_be_chosen(stage: SetStage) -> None:
    """What runs there since is not waited for."""
    host = await stage(WORKS, HANG)
    turn, worker, other = await running(host), await host.session("worker"), await host.session("other")

    with host.calling(turn) as invocation:
        first = await _send(host, invocation, worker, "first")
        (settled,) = await host.settled(first)
        await host.idle(worker)
        await _send(host, invocation, worker, "stall")
        by_message = await told(host, invocation, action="wait", sessionIds=[worker], messageId=first)
        by_turn = await told(host, invocation, action="wait", sessionId=worker, turnId=settled["turnId"])
        faults = [
            await refused(host, invocation, action="wait", sessionId=worker, turnId=turn.id),
            await refused(host, invocation, action="wait", sessionId=worker, messageId="msg_nothing"),
            await refused(host, invocation, action="wait", sessionId=other, messageId=first),
        ]

    assert by_message == by_turn
    assert [(one["id"], one["result"]) for one in by_turn["messages"]] == [(first, "one")]
    assert [one["code"] for one in faults] == ["NOT_FOUND"] * 3
