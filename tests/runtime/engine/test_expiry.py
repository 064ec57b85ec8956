"""Messages that are worth starting for a time: who ends them, when, and what their senders hear."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.asleep import ASLEEP, fall_asleep, wake
from tests.runtime.engine.conftest import SetStage, Stage

from coterie.core.errors import InvalidArgumentError
from coterie.core.turn.states import TurnState

LIFE_S: Final = 60
"""How long the messages of these tests are worth starting."""
HANG_ONCE: Final = """
- {when: {model: worker}, times: 1, reply: {hang: true}}
- {reply: {text: noted}}
"""


async def _brief(host: Stage, source: str, target: str, *, life_s: int = LIFE_S, **params: Any) -> dict[str, Any]:
    """Send a task that is worth starting for a time."""
    when = datetime.fromtimestamp(host.clock.now_ms() / 1000 + life_s, UTC).isoformat()
    wanted = {"content": "do it", "kind": "task", "asSessionId": source, "expiresAt": when, **params}
    return await host.ask("collaboration.send", sessionId=target, **wanted)


async def _busy(host: Stage) -> tuple[str, str]:
    """A sender, and a worker that hangs at something of a person's."""
    source, worker = await host.session("lead"), await host.session("worker")
    await host.prompt(worker, "go")
    await host.until(lambda server: server.answering == 1)
    return source, worker


async def _audited(host: Stage) -> None:
    """Let the host look after its queues: the end of any turn makes it look."""
    session = await host.session("other")
    await host.prompt(session, "hello")
    await host.idle(session)


async def _is_told(host: Stage, message_id: str) -> dict[str, Any]:
    """Assert that a message has expired and its sender is told; returns the completion."""
    message = (await host.ask("collaboration.message", messageId=message_id))["message"]
    assert (message["status"], message.get("turnId")) == ("cancelled", None)
    assert message["error"].startswith("EXPIRED: ")
    completion = await host.completion(message_id)
    assert '"EXPIRED: ' in completion["content"]
    return completion


async def test_a_time_in_the_past_is_refused_at_once(stage: SetStage) -> None:
    """The sender made a mistake and can mend it; nothing is written that would only be cancelled."""
    host = await stage(HANG_ONCE)
    source, worker = await host.session("lead"), await host.session("worker")
    with pytest.raises(InvalidArgumentError, match="expiresAt"):
        await _brief(host, source, worker, life_s=-1)
    assert await host.exchanges(worker) == []


@guarantee("I7")
async def test_the_audit_ends_what_waits_too_long_behind_a_turn_that_hangs(stage: SetStage) -> None:
    """Case 58: nobody does it hours later, and who sent it learns of it while the other one is still busy."""
    host = await stage(HANG_ONCE)
    source, worker = await _busy(host)
    receipt = await _brief(host, source, worker)
    host.clock.advance(LIFE_S)

    await _audited(host)
    (settled,) = await host.settled(receipt["messageId"])
    told = await host.ended(source)

    assert settled["status"] == "cancelled"
    completion = await _is_told(host, receipt["messageId"])
    assert (completion["status"], completion["turnId"], told.kind) == ("completed", told.id, "completion")
    assert (await host.last_turn(worker)).state is TurnState.RUNNING
    assert (await host.ask("queue.list", sessionId=worker))["inputs"] == []


async def test_the_end_of_a_turn_does_not_start_what_is_too_late(stage: SetStage) -> None:
    """The queue goes on with what is behind it, whether the audit has come round or not."""
    host = await stage(HANG_ONCE)
    source, worker = await _busy(host)
    late, fresh = await _brief(host, source, worker), await host.task(source, worker, "still good")
    host.clock.advance(LIFE_S)

    await host.ask("session.interrupt", sessionId=worker)
    (settled,) = await host.settled(fresh)
    await host.idle(worker, source)

    assert settled["status"] == "completed"
    await _is_told(host, late["messageId"])
    assert [item["text"] for item in await host.items(worker) if item["kind"] == "session"] == ["still good"]


async def test_what_runs_is_not_ended_by_its_time(stage: SetStage) -> None:
    """Neither a task with a turn of its own, nor a message that a running turn has taken in."""
    host = await stage(ASLEEP, "- {when: {model: other}, reply: {text: noted}}\n", "- {reply: {hang: true}}\n")
    source, lead, worker = await host.session("other"), await host.session("lead"), await host.session("worker")
    await host.ask("session.configure", sessionId=lead, currentTurnDelivery=True)
    waits_for = await fall_asleep(host, lead)
    joins = await _brief(host, source, lead, kind="message", deliver="current_turn")
    runs = await _brief(host, source, worker)
    await wake(host, waits_for)
    await host.until(lambda server: len([one for one in server.requests if one["model"] == "lead"]) == 2)
    host.clock.advance(LIFE_S)

    await _audited(host)

    for receipt in (joins, runs):
        message = (await host.ask("collaboration.message", messageId=receipt["messageId"]))["message"]
        assert (message["status"], message.get("error")) == ("running", None)


@guarantee("I9")
async def test_a_start_ends_what_became_too_late_while_the_host_was_gone(stage: SetStage) -> None:
    """Before anything may run; the answer waits for a release like everything else."""
    host = await stage(HANG_ONCE)
    source, worker = await _busy(host)
    receipt = await _brief(host, source, worker)
    await host.stop()
    host.clock.advance(LIFE_S)
    await host.start()

    completion = await _is_told(host, receipt["messageId"])
    assert completion["status"] == "queued"
    assert (await host.ask("session.get", sessionId=source))["session"]["held"] == "restart"
    asked = len(host.asked("lead"))
    await host.ask("session.release")
    await host.idle(source)
    assert len(host.asked("lead")) == asked + 1
    assert (await host.completion(receipt["messageId"]))["status"] == "completed"
