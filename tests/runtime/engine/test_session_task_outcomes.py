"""`session_task` shows outcomes: whole, of the message that is meant, and no longer than fits before a model."""

import json
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.calls import HANG, call, refused, running, told
from tests.runtime.engine.conftest import SetStage, Stage

from coterie.core.limits import Limits
from coterie.operations.projection import OUTCOME_CHARS_MAX
from coterie.plugins.session_orchestrator.actions import RESULTS_CHARS_MAX
from coterie.ports.tool import Invocation

LOOK: Final = "{tool: session_task, arguments: {action: list}}"
WORKS: Final = f"""
- {{when: {{user: stall}}, reply: {{hang: true}}}}
- {{when: {{model: worker, user: fail, last: user}}, reply: {{text: "so far, so good", calls: [{LOOK}]}}}}
- {{when: {{model: worker, user: fail}}, reply: {{error: {{status: 400, message: "no more"}}}}}}
- {{when: {{model: worker, user: first}}, reply: {{text: "one"}}}}
- {{when: {{model: worker, user: second}}, reply: {{text: "two"}}}}
"""


def _long(chars: int) -> str:
    """A worker that answers with so many characters."""
    return f"- {{when: {{model: worker}}, reply: {{text: '{'x' * chars}'}}}}\n"


async def _sent(host: Stage, invocation: Invocation, target: str, message: str) -> str:
    """Send a task that is not awaited; returns the message."""
    answer = await told(host, invocation, action="send", sessionId=target, message=message, kind="task")
    found: str = answer["messageId"]
    return found


async def _settled(host: Stage, invocation: Invocation, target: str, message: str) -> str:
    """Send a task and let it settle unseen; returns the message."""
    message_id = await _sent(host, invocation, target, message)
    await host.settled(message_id)
    await host.idle(target)
    return message_id


async def test_a_result_is_of_the_message_or_turn_that_is_named(stage: SetStage) -> None:
    """What is queued or runs since has no part in it; without a name it is the newest that one sent."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        first = await _settled(host, invocation, worker, "first")
        newest = await _sent(host, invocation, worker, "stall")
        by_message = await call(host, invocation, action="result", sessionId=worker, messageId=first)
        turn_id = json.loads(by_message.text)["message"]["turnId"]
        by_turn = await call(host, invocation, action="result", sessionId=worker, turnId=turn_id)
        by_none = await call(host, invocation, action="result", sessionId=worker)

    for output in (by_message, by_turn):
        answer = json.loads(output.text)
        assert (answer["ready"], answer["message"]["id"], answer["message"]["result"]) == (True, first, "one")
        assert output.shows == (first,)
    assert (json.loads(by_none.text)["ready"], json.loads(by_none.text)["message"]["id"]) == (False, newest)
    assert by_none.shows == ()


async def test_a_session_that_was_never_written_to_has_no_result(stage: SetStage) -> None:
    """That is an answer, not a fault; nor is what another one sent there its result."""
    host = await stage(WORKS, HANG)
    turn, fresh, worker = await running(host), await host.session("other"), await host.session("worker")
    await host.settled(await host.task(fresh, worker, "first"))

    with host.calling(turn) as invocation:
        for session_id in (fresh, worker):
            assert await told(host, invocation, action="result", sessionId=session_id) == {"ready": False}


async def test_a_result_has_room_beside_a_long_task(stage: SetStage) -> None:
    """The task is known to who sent it; repeated whole it would push the result out of what a model is shown."""
    host = await stage(_long(12_000), HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        message_id = await _settled(host, invocation, worker, "dig " * 16_000)
        output = await call(host, invocation, action="result", sessionId=worker)

    message = json.loads(output.text)["message"]
    assert (message["result"], output.shows) == ("x" * 12_000, (message_id,))
    assert len(message["content"]) <= 500
    assert message["content"].startswith("dig dig")
    assert len(output.text) < Limits().tool_result_chars_max


async def test_what_a_failed_turn_said_before_is_no_result(stage: SetStage) -> None:
    """It has an error and no result, and there is nothing to accept."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        message_id = await _settled(host, invocation, worker, "fail")
        message = (await told(host, invocation, action="result", sessionId=worker))["message"]
        waited = await told(host, invocation, action="wait", messageIds=[message_id])
        status = await told(host, invocation, action="status", sessionId=worker)
        fault = await refused(host, invocation, action="accept", sessionId=worker)

    assert (message["status"], message.get("result")) == ("failed", None)
    assert "no more" in message["error"]
    assert (waited["messages"][0]["status"], waited["messages"][0].get("result")) == ("failed", None)
    assert (status["sessions"][0]["status"], status["sessions"][0]["acceptanceStatus"]) == ("failed", "pending")
    assert fault["code"] == "WORKER_NOT_READY"


async def test_only_what_one_has_sent_and_has_a_result_is_accepted(stage: SetStage) -> None:
    """Each refusal says what is missing, and nothing is noted."""
    host = await stage(WORKS, HANG)
    turn, friend, worker = await running(host), await running(host, "other"), await host.session("worker")
    inbound = await host.task(worker, turn.session_id, "first")
    with host.calling(friend) as invocation:
        foreign = await _settled(host, invocation, worker, "first")

    with host.calling(turn) as invocation:
        faults = [await refused(host, invocation, action="accept", sessionId=worker)]
        await _sent(host, invocation, worker, "stall")
        faults += [
            await refused(host, invocation, action="accept", sessionId=worker),
            await refused(host, invocation, action="accept", sessionId=worker, messageId=foreign),
            await refused(host, invocation, action="accept", sessionId=turn.session_id, messageId=inbound),
            await refused(host, invocation, action="accept", sessionId=worker, note="x" * 4097),
        ]

    codes = ["WORKER_NOT_READY", "WORKER_NOT_READY", "NOT_FOUND", "PERMISSION_DENIED", "INVALID_ARGUMENT"]
    assert [one["code"] for one in faults] == codes
    for message_id in (foreign, inbound):
        assert (await host.ask("collaboration.message", messageId=message_id))["acceptanceStatus"] == "pending"


async def test_an_acceptance_is_of_one_message(stage: SetStage) -> None:
    """The next one to the same session is pending again, and an earlier one may be accepted by its id."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")
    seen: list[tuple[str, str]] = []

    async def look(invocation: Invocation) -> None:
        (row,) = (await told(host, invocation, action="status", sessionId=worker))["sessions"]
        seen.append((row["lastSentMessageId"], row["acceptanceStatus"]))

    with host.calling(turn) as invocation:
        first = await _settled(host, invocation, worker, "first")
        await look(invocation)
        accepted = await told(host, invocation, action="accept", sessionId=worker, note="good")
        await look(invocation)
        second = await _settled(host, invocation, worker, "second")
        await look(invocation)
        await told(host, invocation, action="accept", sessionId=worker, messageId=first)
        await look(invocation)

    assert accepted == {"accepted": True, "messageId": first}
    assert seen == [(first, "pending"), (first, "accepted"), (second, "pending"), (second, "pending")]
    noted = await host.ask("collaboration.message", messageId=first)
    assert (noted["acceptanceStatus"], noted["message"]["status"]) == ("accepted", "completed")


async def test_a_status_without_names_is_of_those_one_works_with(stage: SetStage) -> None:
    """Case 66: who works for one is found without remembering any id; strangers and deleted ones are left out."""
    host = await stage(WORKS, HANG)
    turn = await running(host)
    stranger, friend, writer, gone = [await host.session("other") for _ in range(4)]

    with host.calling(turn) as invocation:
        alone = await told(host, invocation, action="status")
        spawned = await told(host, invocation, action="spawn", task="first", title="Digger", model="worker")
        await host.settled(spawned["messageId"])
        # After these four the spawned session is in no recent message any more.
        for session_id in (gone, friend, friend):
            await told(host, invocation, action="send", sessionId=session_id, message="stall")
        await host.task(writer, turn.session_id)
        await host.ask("session.delete", sessionId=gone)
        found = await told(host, invocation, action="status")

    assert alone == {"sessions": [], "failures": []}
    rows = {one["sessionId"]: one for one in found["sessions"]}
    assert {*rows} == {spawned["sessionId"], friend, writer}
    assert found["failures"] == []
    assert stranger not in rows
    assert "acceptanceStatus" not in rows[writer]
    assert rows[spawned["sessionId"]]["createdBySession"]["sessionId"] == turn.session_id
    assert rows[friend]["currentTask"]["text"] == "stall"


async def test_one_session_that_is_gone_hides_no_other(stage: SetStage) -> None:
    """Of several the rest is shown, with what is wrong beside it."""
    host = await stage(HANG)
    turn, worker = await running(host), await host.session("worker")

    with host.calling(turn) as invocation:
        answer = await told(host, invocation, action="status", sessionIds=["wrker", worker])

    assert [one["sessionId"] for one in answer["sessions"]] == [worker]
    (failure,) = answer["failures"]
    assert (failure["sessionId"], failure["code"]) == ("wrker", "NOT_FOUND")
    assert any(worker in near for near in failure["candidates"])


async def test_a_status_tells_nothing_of_what_others_have_written(stage: SetStage) -> None:
    """State and links of a session are for all, text is for who sent or received it."""
    host = await stage(WORKS, HANG)
    turn, friend, worker = await running(host), await running(host, "other"), await host.session("worker")
    with host.calling(friend) as invocation:
        await _settled(host, invocation, worker, "first secret")

    with host.calling(turn) as invocation:
        for sessions in ([worker], [worker, friend.session_id]):
            output = await call(host, invocation, action="status", sessionIds=sessions)
            assert '"completed"' in output.text
            assert "secret" not in output.text
            assert '"one"' not in output.text


@pytest.mark.parametrize("beside", [0, 1])
@pytest.mark.parametrize(("chars", "whole"), [(3, True), (OUTCOME_CHARS_MAX - 1, True), (OUTCOME_CHARS_MAX + 1, False)])
async def test_a_status_counts_as_read_if_it_shows_the_whole_outcome(
    stage: SetStage,
    beside: int,
    chars: int,
    whole: bool,  # noqa: FBT001
) -> None:
    """Of what was cut out the notice has something to tell, so it is to come still."""
    host = await stage(_long(chars), HANG)
    turn, worker = await running(host), await host.session("worker")
    others = [await host.session("other") for _ in range(beside)]

    with host.calling(turn) as invocation:
        message_id = await _settled(host, invocation, worker, "first")
        output = await call(host, invocation, action="status", sessionIds=[worker, *others])

    row = json.loads(output.text)["sessions"][0]
    assert ({*output.shows} == {message_id}) == whole
    assert row["lastDelivery"].get("truncated", False) == (not whole)
    assert (row["lastDelivery"]["text"] == "x" * chars) == whole


@guarantee("I7")
@pytest.mark.parametrize(("chars", "turns"), [(3, 1), (OUTCOME_CHARS_MAX + 1, 2)])
async def test_an_outcome_that_a_status_told_starts_no_turn(stage: SetStage, chars: int, turns: int) -> None:
    """The completion joins the turn that was shown all of it; else it comes as a notice."""
    host = await stage(
        """
        - when: {model: lead, user: "^go", requests_since_user: 0}
          reply: {calls: [{tool: session_task, arguments: {action: spawn, task: count, model: worker}}]}
        - when: {model: lead, user: "^go"}
          unless: {tool_result: lastDelivery}
          reply: {calls: [{tool: session_task, arguments: {action: status}}]}
        - when: {model: lead}
          reply: {text: "done"}
        """,
        _long(chars),
    )
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    await host.idle(lead)

    (task,) = [one for one in await host.exchanges(lead) if one["kind"] == "task"]
    assert (await host.completion(task["messageId"]))["status"] == "completed"
    assert await host.turns(lead) == turns


async def test_the_summaries_of_many_sessions_fit_before_a_model(stage: SetStage) -> None:
    """Sixteen of them, each with a long task and a long outcome: all are there, and the answer is whole JSON."""
    host = await stage(WORKS, _long(12_000), HANG, turns_max=17)
    turn = await running(host)
    workers = [await host.session("worker") for _ in range(16)]

    with host.calling(turn) as invocation:
        for worker in workers:
            await _settled(host, invocation, worker, "dig " * 1_000)
            await _sent(host, invocation, worker, "stall " * 1_000)
        output = await call(host, invocation, action="status", sessionIds=workers)

    rows = json.loads(output.text)["sessions"]
    assert [one["sessionId"] for one in rows] == workers
    assert all(one["lastDelivery"]["text"].startswith("xx") and one["currentTask"]["text"] for one in rows)
    assert len(output.text) < Limits().tool_result_chars_max
    assert output.shows == ()


async def test_a_short_result_leaves_its_room_to_the_long_ones(stage: SetStage) -> None:
    """An equal share for each would cut what could be shown."""
    host = await stage(WORKS, _long(12_000), HANG)
    turn = await running(host)
    workers = [await host.session("worker") for _ in range(3)]

    with host.calling(turn) as invocation:
        ids = [
            await _sent(host, invocation, worker, text)
            for worker, text in zip(workers, ("first", "dig", "dig"), strict=True)
        ]
        output = await call(host, invocation, action="wait", sessionIds=workers)

    rows: list[dict[str, Any]] = json.loads(output.text)["messages"]
    lengths = [len(one["result"]) for one in rows]
    assert (lengths[0], sum(lengths)) == (3, RESULTS_CHARS_MAX)
    assert [one.get("truncated", False) for one in rows] == [False, True, True]
    assert output.shows == tuple(ids)
