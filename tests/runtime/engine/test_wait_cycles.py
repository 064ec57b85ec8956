"""Turns that would come to wait for each other: the last is told, and all of them end."""

import json
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import MODELS, SetStage, Stage

from coterie.core.errors import RefusedError
from coterie.core.turn.states import TurnState

RING: Final = """
- when: {user: 'pass (?P<next>ses_\\w+) ?(?P<rest>[^\\n]*)', requests_since_user: 0}
  reply:
    calls:
      - tool: session_task
        arguments: {action: send, sessionId: "${user.next}", message: "pass ${user.rest}", kind: task}
- when: {user: 'pass ses_', requests_since_user: 1}
  capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}
  reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}]}
- when: {tool_result: WAIT_CYCLE}
  reply: {text: "I go on without."}
- when: {user: 'pass ses_'}
  reply: {text: "It has come."}
- reply: {text: "Noted."}
"""


async def _refused(host: Stage, session_id: str) -> list[dict[str, Any]]:
    """What tools have refused to a session."""
    results = [json.loads(text) for text in await host.results(session_id)]
    return [result["error"] for result in results if "error" in result]


@guarantee("I12")
@pytest.mark.parametrize("turns_max", [1, 8])
@pytest.mark.parametrize("size", [2, 3, 4])
async def test_the_wait_that_would_close_a_ring_is_refused_and_everything_ends(
    stage: SetStage, size: int, turns_max: int
) -> None:
    """Case 75: each sends to the next and waits; the last one sends to the first, reads the path and goes on."""
    host = await stage(RING, turns_max=turns_max)
    ring = [await host.session(model) for model in MODELS[:size]]
    await host.prompt(ring[0], f"pass {' '.join([*ring[1:], ring[0]])}")

    await host.idle(*ring)

    assert [await _refused(host, session) for session in ring[:-1]] == [[]] * (size - 1)
    (fault,) = await _refused(host, ring[-1])
    assert (fault["code"], fault["path"]) == ("WAIT_CYCLE", [ring[-1], *ring])
    assert " → ".join(fault["path"]) in fault["message"]
    sent = await host.chain((await host.exchanges(ring[1]))[-1]["messageId"])
    tasks = [one for one in sent if one["kind"] == "task"]
    assert [one["targetSessionId"] for one in tasks] == [*ring[1:], ring[0]]
    assert [one["result"] for one in tasks[-3:]] == ["It has come.", "I go on without.", "Noted."][-size:]
    assert {one["status"] for one in sent} == {"completed"}


async def test_a_turn_that_is_cancelled_in_its_sleep_is_waited_for_like_any_other(stage: SetStage) -> None:
    """Its session goes on with what comes next, so nothing of the sleep may be left."""
    host = await stage("- {when: {model: worker}, reply: {hang: true}}", RING, turns_max=1)
    lead, worker = await host.session("lead"), await host.session("worker")
    await host.prompt(lead, f"pass {worker}")
    # There is one slot, so the worker runs because the lead sleeps.
    await host.until(lambda server: server.answering == 1)

    with host.calling(await host.last_turn(worker)) as invocation:
        with pytest.raises(RefusedError) as refused:
            await host.act(invocation, "collaboration.wait", sessionId=lead, until="idle")
        await host.ask("collaboration.cancel", sessionId=lead, cascade=False)
        assert (await host.ended(lead)).state is TurnState.CANCELLED
        sent = await host.act(invocation, "collaboration.send", sessionId=lead, content="And now?")
        waited = await host.act(invocation, "collaboration.wait", messageIds=[sent["messageId"]])

    assert refused.value.detail() == {"path": [worker, lead, worker]}
    assert [one["result"] for one in waited["messages"]] == ["Noted."]
