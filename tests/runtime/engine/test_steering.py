"""What a person adds to a running turn, and where its model sees it."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.asleep import ASLEEP, asleep, fall_asleep, last_said, wake
from tests.runtime.engine.conftest import SetStage, Stage, said, system_text
from tests.runtime.engine.test_storage_faults import Moody
from tests.runtime.engine.wire import spoken

from coterie.app.prompt_session import PromptSession, prompt_session, steer_session
from coterie.app.take_news import take_news
from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.ids import SessionId
from coterie.core.turn.silence import INSTRUCTION
from coterie.core.turn.states import TurnState
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.subagents.delegations import Delegations
from coterie.runtime.supervisor import Supervisor
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds

BUSY: Final = "- {when: {model: lead}, times: 1, reply: {error: {status: 503, retry_after: 60}}}\n"
FINE: Final = '- {reply: {text: "Fine."}}\n'


class HeldClock(FakeClock):
    """A clock on which nobody wakes before the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeping, self.over = asyncio.Event(), asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """See the port."""
        await super().sleep(seconds)
        self.sleeping.set()
        await self.over.wait()


async def _on_held_clock(host: Stage) -> HeldClock:
    """Start the host anew, on a clock that holds whoever sleeps."""
    await host.stop()
    host.clock = clock = HeldClock()
    await host.start()
    return clock


async def _steer(host: Stage, session_id: str, text: str = "left", **params: str) -> dict[str, Any]:
    return await host.ask("session.steer", sessionId=session_id, text=text, **params)


def _parts(host: Stage, store: Moody) -> RuntimeParts:
    """What the host runs turns with, on a store of the test."""
    engine, settings = host.engine, host.settings
    return RuntimeParts(
        store=store,
        feed=engine.operations.host.feed,
        clock=host.clock,
        invocations=engine.operations.host.invocations,
        models=settings.models,
        provider=engine.provider,
        tools={},
        limits=settings.limits,
        permission_default=settings.permission_default,
        model_hint="",
        delegates=Delegations(SeededIds(), FakeClock(), Path(), running_max=1),
    )


async def test_steering_joins_at_the_next_request_as_plain_words_of_a_person(stage: SetStage) -> None:
    """Case 58: after what the tool has answered, before the model goes on; the call itself is not disturbed."""
    host = await stage(ASLEEP, FINE)
    lead = await host.session("lead")
    waits_for = await fall_asleep(host, lead)

    steered = await _steer(host, lead)
    undisturbed = await asleep(host, lead)
    await wake(host, waits_for)
    turn = await host.ended(lead)

    assert steered.pop("inputId")
    assert steered == {"accepted": True, "turnId": turn.id, "status": "accepted", "replayed": False}
    assert undisturbed
    first, second = host.asked("lead")
    assert said(second)[: len(said(first))] == said(first)
    assert [role for role, _ in last_said(second, 3)] == ["assistant", "tool", "user"]
    assert last_said(second, 1) == [("user", "left")]
    assert (turn.state, turn.result, await host.turns(lead)) == (TurnState.COMPLETED, "Fine.", 1)
    (item,) = [item for item in await host.items(lead) if item["text"] == "left"]
    assert (item["kind"], item["turnId"], item.keys() & {"origin", "unread"}) == ("person", turn.id, set())


async def test_steering_of_a_delivery_is_a_persons_and_has_no_frame(stage: SetStage) -> None:
    """Who reads the request can tell the person from the agent that gave the task; the answer still goes there."""
    host = await stage(ASLEEP, FINE)
    source, lead = await host.session("other"), await host.session("lead")
    waits_for = await fall_asleep(host, lead, source)
    await _steer(host, lead)
    await wake(host, waits_for)
    turn = await host.ended(lead)

    task, steering = spoken(host.asked("lead")[1], "user")
    assert task.startswith("<session-message ")
    assert steering == "left"
    assert (turn.kind, (await host.completion(turn.message_id or ""))["targetSessionId"]) == ("task", source)
    await host.idle(source)


async def test_several_join_in_the_order_in_which_they_were_said(stage: SetStage) -> None:
    """All at one request: the last word counts, so it must be the last."""
    host = await stage(ASLEEP, FINE)
    lead = await host.session("lead")
    waits_for = await fall_asleep(host, lead)
    for text in ("left", "no, right", "stop there"):
        await _steer(host, lead, text)
    await wake(host, waits_for)
    await host.idle(lead)
    assert "\n".join(spoken(host.asked("lead")[1], "user")).endswith("left\nno, right\nstop there")


async def test_a_request_is_not_ended_for_it(stage: SetStage) -> None:
    """A model that is thinking goes on; stopped by a person, it leaves the words in the history as unread."""
    host = await stage("- {when: {user: hang}, reply: {hang: true}}\n", FINE)
    session, other = await host.session("lead"), await host.session("other")
    await host.prompt(session, "hang")
    await host.until(lambda server: server.answering == 1)
    await _steer(host, session)
    # A whole turn of another session: there was time enough to notice.
    await host.prompt(other, "hello")
    await host.idle(other)
    thinking = host.server.answering

    await host.ask("session.interrupt", sessionId=session)
    stopped = await host.ended(session)
    waiting = (await host.ask("queue.list", sessionId=session))["inputs"]
    await host.prompt(session, "go on")
    await host.idle(session)

    assert (thinking, stopped.state, waiting) == (1, TurnState.CANCELLED, [])
    texts = [(item["text"], item.get("unread", False)) for item in await host.items(session)]
    assert texts == [("hang", False), ("left", True), ("go on", False), ("Fine.", False)]
    assert len(host.asked("lead")) == 2


async def test_unread_when_the_turn_fails_it_is_the_next_prompt(stage: SetStage) -> None:
    """The person had said it in time, so it is not lost, and runs before what had waited."""
    host = await stage(ASLEEP, FINE, model_requests_max=1)
    lead = await host.session("lead")
    waits_for = await fall_asleep(host, lead)
    await host.ask("session.prompt", sessionId=lead, text="old")
    steered = await _steer(host, lead)
    failed = await host.last_turn(lead)
    await wake(host, waits_for)
    await host.idle(lead)

    assert (await host.ask("session.turn", turnId=failed.id))["errorCode"] == Code.LIMIT_EXCEEDED.value
    items = [item for item in await host.items(lead) if item["kind"] == "person"]
    assert [item["text"] for item in items][1:] == ["left", "old"]
    assert len({item["turnId"] for item in items}) == 3
    assert steered["accepted"]


@guarantee("I9")
async def test_a_crash_leaves_it_unread_and_runs_nothing(stage: SetStage) -> None:
    """It was about work that is not done any more."""
    host = await stage(ASLEEP, FINE)
    lead = await host.session("lead")
    await fall_asleep(host, lead)
    await _steer(host, lead)

    await host.restart()

    last = (await host.items(lead))[-1]
    assert (last["text"], last["unread"]) == ("left", True)
    assert (await host.last_turn(lead)).state is TurnState.INTERRUPTED
    kinds = [one["kind"] for one in (await host.ask("queue.list", sessionId=lead))["inputs"]]
    assert kinds == ["completion"]


async def test_to_an_idle_session_it_is_a_prompt(stage: SetStage) -> None:
    """The receipt says so, and the turn runs as for any prompt."""
    host = await stage(FINE)
    session = await host.session()
    steered = await _steer(host, session, "go")
    turn = await host.ended(session)
    assert (steered["accepted"], steered["status"], steered["turnId"]) == (False, "running", turn.id)
    assert (turn.kind, turn.result) == ("prompt", "Fine.")


@guarantee("I14")
async def test_a_repeated_steer_says_it_once(stage: SetStage) -> None:
    """A client that lost the answer asks again, and the model reads one line."""
    host = await stage(ASLEEP, FINE)
    lead = await host.session("lead")
    waits_for = await fall_asleep(host, lead)
    first = await _steer(host, lead, idempotencyKey="k")
    again = await _steer(host, lead, idempotencyKey="k")
    await wake(host, waits_for)
    await host.idle(lead)
    later = await _steer(host, lead, idempotencyKey="k")

    assert again == later == first | {"replayed": True}
    assert len([item for item in await host.items(lead) if item["text"] == "left"]) == 1


async def test_what_is_said_while_a_fault_is_waited_out_is_in_the_request_that_follows(stage: SetStage) -> None:
    """A vendor may ask for a minute: the next request is the one after that minute."""
    host = await stage(BUSY, FINE)
    clock = await _on_held_clock(host)
    session = await host.session("lead")
    await host.prompt(session, "go")
    await clock.sleeping.wait()

    await _steer(host, session)
    clock.over.set()
    await host.idle(session)

    assert ["\n".join(spoken(request, "user")) for request in host.asked()] == ["go", "go\nleft"]


async def test_a_stop_while_a_fault_is_waited_out_sends_no_further_request(stage: SetStage) -> None:
    """The wait is not sat through either."""
    host = await stage(BUSY, FINE)
    clock = await _on_held_clock(host)
    session = await host.session("lead")
    await host.prompt(session, "go")
    await clock.sleeping.wait()

    await host.ask("session.interrupt", sessionId=session)

    assert (await host.ended(session)).state is TurnState.CANCELLED
    assert len(host.asked()) == 1


@guarantee("I6")
@pytest.mark.parametrize("steered", [True, False])
async def test_a_notice_that_a_person_adds_to_may_not_be_left_unanswered(stage: SetStage, *, steered: bool) -> None:
    """Silence answers the host's notice, also after a fault of the vendor; it does not answer a person."""
    host = await stage(
        BUSY, "- {when: {model: lead}, reply: {silence: true}}\n", "- {when: {model: worker}, reply: {text: done}}\n"
    )
    clock = await _on_held_clock(host)
    lead = await host.session("lead")
    await host.task(lead, await host.session("worker"))
    await clock.sleeping.wait()

    if steered:
        await _steer(host, lead)
    clock.over.set()
    turn = await host.ended(lead)

    failed = (TurnState.FAILED, Code.EMPTY_MODEL_RESPONSE.value)
    assert turn.kind == "completion"
    assert (turn.state, turn.error_code) == (failed if steered else (TurnState.COMPLETED, None))
    shown = [
        (spoken(request, "user")[-1].endswith("left"), INSTRUCTION in system_text(request))
        for request in host.asked("lead")
    ]
    assert shown == [(False, False), *([(True, False), (True, True)] if steered else [(False, False)])]


@pytest.mark.parametrize("after", [False, True])
async def test_a_moment_without_the_database_loses_nothing_that_was_said(stage: SetStage, *, after: bool) -> None:
    """Case 133: a commit of unknown end may have let it join, and then a second try finds nothing to take in."""
    host = await stage(FINE)
    session, store = SessionId(await host.session("lead")), host.engine.store
    await host.engine.supervisor.stop()
    prompted = await store.run(prompt_session, PromptSession(session, "go", None, slot=True))
    await store.run(steer_session, PromptSession(session, "left", None, slot=False))
    moody = Moody(store, take_news, after=after)
    supervisor = Supervisor(_parts(host, moody), turns_max=1)
    assert supervisor.reserve()
    assert prompted.turn_id is not None

    supervisor.hand_over(prompted.turn_id)
    turn = await host.ended(session)
    await supervisor.stop()

    assert (moody.refusals, turn.result) == (1, "Fine.")
    (request,) = host.asked("lead")
    assert "\n".join(spoken(request, "user")) == "go\nleft"
    assert [item["text"] for item in await host.items(session)] == ["go", "left", "Fine."]


async def test_a_person_has_so_many_places(stage: SetStage) -> None:
    """Steering and prompts share them, and the refusal names the limit."""
    host = await stage(ASLEEP, FINE, prompts_max=2)
    lead = await host.session("lead")
    await fall_asleep(host, lead)
    await _steer(host, lead)
    await host.prompt_later(lead, "later")
    with pytest.raises(RefusedError) as refused:
        await _steer(host, lead)
    assert (refused.value.code, refused.value.refusal.limit) == (Code.QUEUE_FULL, "prompts_max")
