"""What a person does to sessions while a host works: settings, archive, delete, fork, interrupt, and how it starts."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.asleep import ASLEEP, fall_asleep, last_said, wake
from tests.runtime.engine.conftest import SetStage, Stage, said
from tests.runtime.engine.test_approvals import answer
from tests.runtime.engine.wire import spoken

from coterie.app.delete_session import DeleteSession, delete_session
from coterie.core.codes import Code
from coterie.core.errors import HostError, IdempotencyConflictError, NotFoundError
from coterie.core.ids import SessionId
from coterie.core.turn.context import INTERRUPTED
from coterie.core.turn.states import TurnState
from coterie.operations.lifecycle import PURGE_BATCH

FINE: Final = '- {reply: {text: "Fine."}}\n'
HANG_ONCE: Final = """
- {when: {model: worker}, times: 1, reply: {hang: true}}
- {reply: {text: "Fine."}}
"""
WRITES: Final = """
- when: {model: lead, results_since_user: "<2"}
  reply: {calls: [{tool: write, arguments: {path: a.txt, content: new}}]}
"""


async def _hanging(host: Stage) -> tuple[str, str, str]:
    """Have a worker hang at a task; returns its sender, itself and the task."""
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)
    await host.until(lambda server: server.answering == 1)
    return source, worker, message_id


async def _session(host: Stage, session_id: str) -> dict[str, Any]:
    session: dict[str, Any] = (await host.ask("session.get", sessionId=session_id))["session"]
    return session


async def _ids(host: Stage) -> set[str]:
    return {one["id"] for one in (await host.ask("session.list"))["sessions"]}


async def _queue(host: Stage, session_id: str) -> list[str]:
    return [one["kind"] for one in (await host.ask("queue.list", sessionId=session_id))["inputs"]]


def _is_written(host: Stage) -> bool:
    return (host.project / "a.txt").exists()


@pytest.mark.parametrize(("before", "after"), [("auto", "ask"), ("ask", "auto")])
async def test_a_running_turn_loses_rights_at_its_next_tool_and_gains_none(
    stage: SetStage, before: str, after: str
) -> None:
    """Lowering acts while the turn runs; raising is for the next one, which nobody has to fear a tool of by then."""
    host = await stage(ASLEEP, WRITES, FINE)
    lead = await host.session("lead", mode=before, folder=True)
    waits_for = await fall_asleep(host, lead)

    await host.ask("session.configure", sessionId=lead, permissionMode=after)
    await wake(host, waits_for)
    await answer(host, "deny")
    await host.idle(lead)

    denied = "Denied by a person" in (await host.results(lead))[-1]
    assert (denied, _is_written(host)) == (True, False)
    await host.prompt(lead, "now write")
    for _ in range(2 if after == "ask" else 0):
        await answer(host, "deny")
    await host.idle(lead)
    assert _is_written(host) is (after == "auto")


async def test_a_new_title_is_what_others_see_from_then_on(stage: SetStage) -> None:
    """The id stays, and so does what was written under the old one."""
    host = await stage(FINE)
    source, target = await host.session("lead"), await host.session("worker")
    await host.settled(await host.task(source, target))
    await host.idle(source)
    await host.ask("session.rename", sessionId=source, title="the lead")
    await host.settled(await host.task(source, target))
    titles = [item["origin"]["sourceTitle"] for item in await host.items(target) if item["kind"] == "session"]
    assert titles == ["lead", "the lead"]


async def test_an_archived_session_rests_over_a_restart_until_a_person_wants_it(stage: SetStage) -> None:
    """What is sent is refused, what was asked for comes in, and the release of everything is not meant for it."""
    host = await stage(HANG_ONCE)
    lead, worker, message_id = await _hanging(host)
    with pytest.raises(HostError) as runs:
        await host.ask("session.archive", sessionId=worker)
    await host.ask("session.archive", sessionId=lead)
    with pytest.raises(HostError) as rests:
        await host.task(worker, lead)
    await host.ask("session.interrupt", sessionId=worker)
    await host.settled(message_id)
    await host.idle(worker)
    await host.restart()
    released = await host.ask("session.release")

    assert [runs.value.code, rests.value.code] == [Code.CONFLICT] * 2
    assert released == {"released": 0}
    assert ((await _session(host, lead))["held"], await _queue(host, lead)) == ("archived", ["completion"])
    assert host.asked("lead") == []
    await host.ask("session.release", sessionId=lead)
    assert (await host.ended(lead)).kind == "completion"


@guarantee("I7")
async def test_a_session_that_is_deleted_at_work_lets_go_and_tells_its_senders(stage: SetStage) -> None:
    """The vendor is left, the slot is free, the sender is told, and nothing of it starts again."""
    host = await stage(HANG_ONCE, turns_max=1)
    source, worker, message_id = await _hanging(host)
    waiting = await host.task(source, worker, "wait")
    await host.prompt_later(worker, "and this")

    deleted = await host.ask("session.delete", sessionId=worker)

    await host.until(lambda server: server.answering == 0)
    assert (deleted["deleted"], deleted["messageIds"], len(deleted["runningTurnIds"])) == (True, [waiting], 1)
    settled = await host.settled(message_id, waiting)
    assert [one["status"] for one in settled] == ["cancelled", "cancelled"]
    # The only slot is free again, or these could not run.
    await host.idle(source)
    assert [(await host.completion(one))["status"] for one in (message_id, waiting)] == ["completed"] * 2
    assert len(host.asked("worker")) == 1
    assert host.engine.supervisor.workers == 0
    listed = (await host.ask("session.list"))["sessions"]
    assert [one["id"] for one in listed] == [source]
    for operation in ("session.get", "session.items", "collaboration.status", "session.delete"):
        with pytest.raises(NotFoundError):
            await host.ask(operation, sessionId=worker)
    with pytest.raises(NotFoundError):
        await host.task(source, worker)
    peer = (await host.exchanges(source))[0]["peer"]
    assert (peer["sessionId"], peer["title"], peer["available"]) == (worker, "worker", False)


async def test_a_session_that_is_deleted_in_its_sleep_is_not_waited_for(stage: SetStage) -> None:
    """A tool that sleeps is ended like a request, and what the session has sent goes on without it."""
    host = await stage(ASLEEP, FINE)
    lead = await host.session("lead")
    waits_for = await fall_asleep(host, lead)
    await host.ask("session.delete", sessionId=lead)
    other = await host.session("other")
    await host.prompt(other, "hello")
    await host.idle(other)

    message = (await host.ask("collaboration.message", messageId=waits_for))["message"]
    assert message["status"] == "running"
    assert host.engine.supervisor.workers == 1
    await wake(host, waits_for)
    await host.idle(message["targetSessionId"])
    assert [one["kind"] for one in await host.chain(waits_for)] == ["task"]
    assert len(host.asked("lead")) == 1


@guarantee("I9")
async def test_the_start_goes_on_with_a_purge_that_a_crash_has_cut_short(stage: SetStage) -> None:
    """The words of a deleted session are not kept because the host died at the wrong moment."""
    host = await stage(FINE)
    session = SessionId(await host.session())
    await host.prompt(session, "secret")
    await host.idle(session)

    async def left() -> int:
        found = await host.engine.store.read(lambda tx, _: tx.items.page(session, 0, 9), None)
        return len(found)

    # The rest of the verb, which would purge, never came.
    await host.engine.store.run(delete_session, DeleteSession(session, None))
    before = await left()
    await host.restart()

    assert (before, await left()) == (2, 0)
    assert PURGE_BATCH > 1


async def test_a_fork_goes_on_from_what_was_said_with_the_same_frames(stage: SetStage) -> None:
    """A model reads in the fork what it read in the old session, to the byte, and each goes on for itself."""
    host = await stage(FINE)
    source, worker = await host.session("lead"), await host.session("worker")
    await host.settled(await host.task(source, worker))
    await host.idle(source)
    fork = (await host.ask("session.fork", sessionId=worker))["session"]
    for session in (worker, fork["id"]):
        await host.prompt(session, "and then?")
        await host.idle(session)

    old, new = host.asked("worker")[-2:]
    assert said(new) == said(old)
    assert spoken(new, "user")[0].startswith("<session-message ")
    assert (fork["title"], fork.get("createdBySessionId")) == ("worker (fork)", None)
    assert await host.exchanges(fork["id"]) == []


async def test_a_fork_of_a_turn_at_work_shows_its_open_call_as_interrupted(stage: SetStage) -> None:
    """The old one gets its result and the fork never will; no vendor takes a call without one."""
    host = await stage(ASLEEP, FINE)
    lead = await host.session("lead")
    waits_for = await fall_asleep(host, lead)
    fork = (await host.ask("session.fork", sessionId=lead))["session"]["id"]
    await host.prompt(fork, "never mind")
    turn = await host.ended(fork)

    assert turn.state is TurnState.COMPLETED
    _, (answered, result), words = last_said(host.asked("lead")[-1], 3)
    assert (answered, INTERRUPTED in result, words) == ("tool", True, ("user", "never mind"))
    await wake(host, waits_for)
    await host.idle(lead)
    assert await host.turns(lead) == 1
    assert "cancelled" in (await host.results(lead))[-1]


@guarantee("I8")
@pytest.mark.parametrize("busy", [True, False])
async def test_the_answer_to_what_was_sent_before_a_fork_goes_to_the_old_session(
    stage: SetStage, *, busy: bool
) -> None:
    """Case 31: and what the fork spawns answers to the fork."""
    host = await stage(HANG_ONCE.replace("times: 1", "times: 2"))
    old, worker, message_id = await _hanging(host)
    fork = (await host.ask("session.fork", sessionId=old))["session"]["id"]
    spawned = await host.ask("collaboration.spawn", content="do it", model="worker", asSessionId=fork)
    await host.until(lambda server: server.answering == 2)
    if busy:
        await host.prompt(old, "meanwhile")
        await host.idle(old)
    for session in (worker, spawned["sessionId"]):
        await host.ask("session.interrupt", sessionId=session)
    await host.settled(message_id, spawned["messageId"])
    await host.idle(old, fork)

    told = [await host.completion(one) for one in (message_id, spawned["messageId"])]
    assert [one["targetSessionId"] for one in told] == [old, fork]
    assert [one["status"] for one in told] == ["completed", "completed"]


async def test_an_interrupt_stops_one_turn_and_the_queue_goes_on(stage: SetStage) -> None:
    """The task that ran is cancelled and its sender told; what waited runs."""
    host = await stage(HANG_ONCE)
    source, worker, message_id = await _hanging(host)
    waiting = await host.task(source, worker, "wait")
    running = await host.last_turn(worker)

    stopped = await host.ask("session.interrupt", sessionId=worker)
    settled = await host.settled(message_id, waiting)
    await host.idle(source)
    again = await host.ask("session.interrupt", sessionId=worker)

    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([message_id], [running.id])
    assert [one["status"] for one in settled] == ["cancelled", "completed"]
    assert (await host.completion(message_id))["status"] == "completed"
    assert (again["messageIds"], again["runningTurnIds"]) == ([], [])


async def test_a_result_is_accepted_by_who_asked_for_it(stage: SetStage) -> None:
    """The note is kept with the message and changes nothing else."""
    host = await stage(FINE)
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)
    (settled,) = await host.settled(message_id)
    await host.idle(source)
    before = await host.ask("collaboration.message", messageId=message_id)
    await host.ask("collaboration.accept", messageId=message_id, note="good", asSessionId=source)
    after = await host.ask("collaboration.message", messageId=message_id)
    assert settled["status"] == "completed"
    assert (before["acceptanceStatus"], before.get("note")) == ("pending", None)
    assert after == before | {"acceptanceStatus": "accepted", "note": "good"}


@guarantee("I9")
async def test_a_host_that_is_set_to_resume_runs_what_waited_and_not_what_ran(stage: SetStage) -> None:
    """Each once: the interrupted task stays interrupted, and its sender hears of it without a release."""
    host = await stage(HANG_ONCE)
    source, worker, ran = await _hanging(host)
    waited = await host.task(source, worker, "second")
    await host.prompt_later(worker, "third")
    host.settings = replace(host.settings, resume=True)

    await host.restart()
    await host.idle(worker, source)

    assert (host.engine.interrupted, host.engine.held) == (1, 0)
    assert [one["status"] for one in await host.settled(ran, waited)] == ["interrupted", "completed"]
    texts = [item["text"] for item in await host.items(worker) if item["kind"] in {"person", "session"}]
    assert texts == ["do it", "third", "second"]
    assert len(host.asked("worker")) == 1 + 2
    for message_id in (ran, waited):
        told = await host.completion(message_id)
        assert (told["targetSessionId"], told["status"]) == (source, "completed")


Act = Callable[[Stage, str, str, str], Awaitable[dict[str, Any]]]


def _on_session(operation: str, **params: object) -> Act:
    async def act(host: Stage, session: str, _: str, key: str) -> dict[str, Any]:
        return await host.ask(operation, sessionId=session, idempotencyKey=key, **params)

    return act


async def _accept(host: Stage, session: str, message_id: str, key: str) -> dict[str, Any]:
    return await host.ask("collaboration.accept", messageId=message_id, asSessionId=session, idempotencyKey=key)


ACTS: Final[dict[str, Act]] = {
    "rename": _on_session("session.rename", title="B"),
    "configure": _on_session("session.configure", permissionMode="auto", currentTurnDelivery=True),
    "archive": _on_session("session.archive"),
    "delete": _on_session("session.delete"),
    "fork": _on_session("session.fork", title="copy"),
    "interrupt": _on_session("session.interrupt"),
    "steer": _on_session("session.steer", text="go"),
    "accept": _accept,
}


@guarantee("I14")
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_an_act_that_is_repeated_with_its_key_is_done_once(stage: SetStage, act: Act) -> None:
    """Also over a restart; and another act under the same key is a conflict."""
    host = await stage(FINE)
    source, worker = await host.session("lead"), await host.session("worker")
    message_id = await host.task(source, worker)
    await host.settled(message_id)
    await host.idle(source)
    first = await act(host, source, message_id, "k")
    before = await _ids(host)
    again = await act(host, source, message_id, "k")
    await host.restart()
    later = await act(host, source, message_id, "k")

    assert not first.get("replayed")
    assert [again["replayed"], later["replayed"]] == [True, True]
    assert await _ids(host) == before
    with pytest.raises(IdempotencyConflictError):
        await host.ask("session.rename", sessionId=worker, title="other", idempotencyKey="k")
