"""A start after the host was gone: it says what it interrupted, keeps what waited, and runs nothing by itself."""

from typing import Final

from tests.guarantees import guarantee
from tests.runtime.engine.conftest import SetStage, Stage

from coterie.core.turn.states import TurnState
from coterie.model_server import ModelServer

HANG_ONCE: Final = """
- {when: {model: worker}, times: 1, reply: {hang: true}}
- {when: {model: worker}, reply: {text: done}}
- {reply: {text: noted}}
"""


async def _is_alive(host: Stage) -> None:
    """Let a fresh session run a turn to its end: whatever else could start would have been claimed with it."""
    session = await host.session("other")
    await host.prompt(session, "hello")
    assert (await host.ended(session)).state is TurnState.COMPLETED


@guarantee("I9")
async def test_a_start_runs_nothing_and_a_release_runs_the_rest_once(stage: SetStage) -> None:
    """Case 101: what ran has unknown effects and is not repeated; what waited had none and still waits."""
    host = await stage(HANG_ONCE)
    source, worker = await host.session("lead"), await host.session("worker")
    ran, *waited = [await host.task(source, worker, text) for text in ("first", "second", "third")]
    await host.until(lambda server: server.answering == 1)

    await host.restart()
    await _is_alive(host)

    assert (host.engine.interrupted, host.engine.held) == (1, 2)
    states = (await host.ask("collaboration.wait", messageIds=[ran, *waited], timeoutMs=0))["messages"]
    assert [one["status"] for one in states] == ["interrupted", "queued", "queued"]
    assert states[0]["error"].startswith("INTERRUPTED: ")
    completion = await host.completion(ran)
    assert (completion["status"], completion["targetSessionId"]) == ("queued", source)
    for session, waiting in ((worker, 2), (source, 1)):
        status = await host.ask("collaboration.status", sessionId=session)
        assert (status["held"], status["waiting"], status["status"]) == ("restart", waiting, "queued")
    assert (len(host.asked("worker")), len(host.asked("lead"))) == (1, 0)

    assert await host.ask("session.release") == {"released": 2}
    await host.idle(worker, source)

    states = await host.settled(ran, *waited)
    assert [one["status"] for one in states] == ["interrupted", "completed", "completed"]
    for message_id in (ran, *waited):
        completion = await host.completion(message_id)
        assert (completion["status"], completion["targetSessionId"]) == ("completed", source)
    assert (len(host.asked("worker")), len(host.asked("lead"))) == (1 + 2, 3)
    assert await host.ask("session.release") == {"released": 0}


@guarantee("I9")
async def test_a_release_of_one_session_leaves_the_others_held(stage: SetStage) -> None:
    """A person looks at each before it goes on."""
    host = await stage(HANG_ONCE)
    source, worker = await host.session("lead"), await host.session("worker")
    await host.task(source, worker, "first")
    second = await host.task(source, worker, "second")
    await host.until(lambda server: server.answering == 1)
    await host.restart()

    await host.ask("session.release", sessionId=worker)
    await host.settled(second)
    await host.idle(worker)
    await _is_alive(host)

    status = await host.ask("collaboration.status", sessionId=source)
    assert (status["held"], status["waiting"]) == ("restart", 2)
    assert len(host.asked("lead")) == 0


@guarantee("I16")
async def test_a_prompt_frees_a_held_session_and_runs_first(stage: SetStage) -> None:
    """The person is there now, and speaks before what had waited."""
    host = await stage(HANG_ONCE)
    source, worker = await host.session("lead"), await host.session("worker")
    first, second = await host.task(source, worker, "first"), await host.task(source, worker, "second")
    await host.until(lambda server: server.answering == 1)
    await host.restart()

    await host.ask("session.prompt", sessionId=worker, text="wait a moment")
    await host.settled(first, second)
    await host.idle(worker)

    texts = [item["text"] for item in await host.items(worker) if item["kind"] != "reply"]
    assert texts == ["first", "wait a moment", "second"]


@guarantee("I9")
async def test_of_a_hundred_tasks_at_a_crash_the_running_are_interrupted_and_the_rest_wait(stage: SetStage) -> None:
    """Case 102: by the host's own count of its lives, and by no look at processes; nothing is lost or runs twice."""
    host = await stage("- {when: {model: worker}, reply: {hang: true}}\n- {reply: {text: noted}}", turns_max=4)
    source = await host.session("lead")
    workers = [await host.session("worker") for _ in range(100)]
    message_ids = [await host.task(source, worker) for worker in workers]

    def full(server: ModelServer) -> bool:
        return server.answering == 4

    await host.until(full)

    await host.restart()

    await _is_alive(host)
    waited = [
        one
        for first in range(0, 100, 50)
        for one in (await host.ask("collaboration.wait", messageIds=message_ids[first : first + 50], timeoutMs=0))[
            "messages"
        ]
    ]
    states = [one["status"] for one in waited]
    assert (states.count("interrupted"), states.count("queued")) == (4, 96)
    assert (host.engine.interrupted, host.engine.held) == (4, 96 + 1)
    held = [(await host.ask("session.get", sessionId=worker))["session"].get("held") for worker in workers]
    assert [one == "restart" for one in held] == [state == "queued" for state in states]
    assert (await host.ask("collaboration.status", sessionId=source))["waiting"] == 4
    assert (len(host.asked("worker")), len(host.asked("lead"))) == (4, 0)


@guarantee("I5")
async def test_a_cancelled_turn_that_a_crash_ends_stays_cancelled(stage: SetStage) -> None:
    """Its message was answered as cancelled, so the turn must not tell another story."""
    host = await stage(HANG_ONCE)
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)
    await host.until(lambda server: server.answering == 1)

    await host.ask("collaboration.cancel", sessionId=worker, messageId=message_id)
    # The worker of the turn has had no time to settle it.
    await host.restart()

    assert host.engine.interrupted == 1
    assert (await host.last_turn(worker)).state is TurnState.CANCELLED
    completion = await host.completion(message_id)
    assert (completion["status"], '"status": "cancelled"' in completion["content"]) == ("queued", True)


@guarantee("I9")
async def test_a_tree_that_a_crash_ends_is_told_level_by_level(stage: SetStage) -> None:
    """Each sender finds the outcome of what it had sent, and works only when a person lets it."""
    host = await stage("""
    - when: {model: lead, user: "^go", requests_since_user: 0}
      reply: {calls: [{tool: session_task, arguments: {action: spawn, task: think, model: worker}}]}
    - when: {model: lead, user: "^go", requests_since_user: 1}
      capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}
      reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}]}
    - {when: {model: worker}, reply: {hang: true}}
    - {reply: {text: noted}}
    """)
    lead = await host.session("lead")
    await host.prompt(lead, "go")
    await host.until(lambda server: server.answering == 1 and len(server.requests) == 3)
    await host.until_items(lead, lambda items: "wait" in str(items[-1].get("calls")))

    await host.restart()

    assert (host.engine.interrupted, host.engine.held) == (2, 1)
    assert (await host.last_turn(lead)).state is TurnState.INTERRUPTED
    await host.ask("session.release")
    turn = await host.ended(lead)
    assert (turn.kind, turn.result) == ("completion", "noted")
    # The call that never got its result is shown as interrupted, or no vendor would take the transcript.
    roles = [message["role"] for message in host.asked("lead")[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "user"]
