"""Messages that a running turn takes in between two of its model requests; off unless a person turns it on."""

from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.asleep import ASLEEP, asleep, fall_asleep, given_out, last_said, wake
from tests.runtime.engine.conftest import SetStage, Stage, said, system_text
from tests.runtime.engine.wire import spoken

from coterie.core.errors import ConflictError
from coterie.core.turn.states import TurnState

LOOK: Final = """
- when: {model: lead, last: user, user: '"kind"|left', results_since_user: 0}
  times: 1
  reply: {calls: [{tool: session_task, arguments: {action: list}}]}
"""
"""The lead looks around once before it answers."""
FINE: Final = '- {reply: {text: "Fine."}}\n'


async def _open(host: Stage, *, mode: str = "ask") -> str:
    """A lead whose running turn takes messages in."""
    lead = await host.session("lead", mode=mode)
    await host.ask("session.configure", sessionId=lead, currentTurnDelivery=True)
    return lead


async def _offer(host: Stage, source: str, target: str, content: str = "by the way", **params: Any) -> dict[str, Any]:
    wanted = {"content": content, "deliver": "current_turn", "asSessionId": source, **params}
    return await host.ask("collaboration.send", sessionId=target, **wanted)


async def _message(host: Stage, message_id: str) -> dict[str, Any]:
    message: dict[str, Any] = (await host.ask("collaboration.message", messageId=message_id))["message"]
    return message


def _contents(request: dict[str, Any]) -> list[str]:
    """What other sessions have said in a request, by the first word of each."""
    framed = [text for text in "\n".join(spoken(request, "user")).split("<session-message ") if '"content": "' in text]
    return [text.split('"content": "')[1].split('"')[0] for text in framed]


async def test_a_message_joins_at_the_next_request_in_its_frame(stage: SetStage) -> None:
    """After what the tool has answered; no second turn, and the answer of this one is the message's too."""
    host = await stage(ASLEEP, FINE)
    lead, source = await _open(host), await host.session("other")
    waits_for = await fall_asleep(host, lead)

    receipt = await _offer(host, source, lead, notifyOnCompletion=True)
    undisturbed = await asleep(host, lead)
    await wake(host, waits_for)
    turn = await host.ended(lead)
    (settled,) = await host.settled(receipt["messageId"])
    await host.idle(source)

    assert (receipt["deliver"], receipt["status"], undisturbed) == ("current_turn", "queued", True)
    first, second = host.asked("lead")
    assert said(second)[: len(said(first))] == said(first)
    assert [role for role, _ in last_said(second, 3)] == ["assistant", "tool", "user"]
    ((_, text),) = last_said(second, 1)
    assert text.startswith("<session-message ")
    assert _contents(second) == ["by the way"]
    assert (settled["status"], settled["turnId"], settled["result"]) == ("completed", turn.id, "Fine.")
    assert await host.turns(lead) == 1
    told = await host.completion(receipt["messageId"])
    assert (told["targetSessionId"], told["status"]) == (source, "completed")


@pytest.mark.parametrize("kind", ["message", "task"])
async def test_where_it_is_off_or_for_a_task_the_receipt_says_next_turn(stage: SetStage, kind: str) -> None:
    """A task is work of its own, whatever the setting; a message without the setting waits as ever."""
    host = await stage(ASLEEP, FINE)
    lead = await _open(host) if kind == "task" else await host.session("lead")
    source = await host.session("other")
    waits_for = await fall_asleep(host, lead)

    receipt = await _offer(host, source, lead, kind=kind)
    await wake(host, waits_for)
    await host.settled(receipt["messageId"])
    await host.idle(lead, source)

    assert receipt["deliver"] == "next_turn"
    assert [_contents(request) for request in host.asked("lead")] == [[], [], ["by the way"]]
    assert await host.turns(lead) == 2


async def test_eight_join_at_one_request_and_the_rest_at_the_next(stage: SetStage) -> None:
    """In their order, from whichever session; a model is not buried under what others have to say."""
    host = await stage(ASLEEP, LOOK, FINE, inbox_max=20)
    lead, sources = await _open(host), [await host.session("other") for _ in range(2)]
    waits_for = await fall_asleep(host, lead)
    receipts = [await _offer(host, sources[number % 2], lead, f"{number}") for number in range(10)]
    await wake(host, waits_for)

    turn = await host.ended(lead)

    numbers = [str(number) for number in range(10)]
    assert [_contents(request) for request in host.asked("lead")] == [[], numbers[:8], numbers]
    settled = await host.settled(*[receipt["messageId"] for receipt in receipts])
    assert {(one["status"], one["turnId"]) for one in settled} == {("completed", turn.id)}


@guarantee("I7")
async def test_a_completion_joins_the_turn_of_a_lead_that_does_something_else(stage: SetStage) -> None:
    """It is told at the next request and not in a turn of its own; there is one notice, and no notice of the notice."""
    host = await stage(ASLEEP, FINE)
    lead = await _open(host)
    early = await given_out(host, lead)
    waits_for = await fall_asleep(host, lead)
    await wake(host, early)
    await wake(host, waits_for)

    turn = await host.ended(lead)

    ((_, text),) = last_said(host.asked("lead")[1], 1)
    assert text.startswith("<session-message ")
    assert f'"replyToMessageId": "{early}"' in text
    told = await host.completion(early)
    assert (told["turnId"], told["status"]) == (turn.id, "completed")
    assert [one["kind"] for one in await host.chain(early)] == ["task", "completion"]
    assert await host.turns(lead) == 1


async def test_a_weaker_session_does_not_speak_in_the_turn_of_a_stronger_one(stage: SetStage) -> None:
    """Its message waits for a turn that may do no more than itself."""
    host = await stage(ASLEEP, FINE)
    lead, source = await _open(host, mode="auto"), await host.session("other", mode="ask")
    waits_for = await fall_asleep(host, lead)
    receipt = await _offer(host, source, lead)
    await wake(host, waits_for)
    await host.settled(receipt["messageId"])
    await host.idle(lead)

    asked = host.asked("lead")
    assert [_contents(request) for request in asked] == [[], [], ["by the way"]]
    assert ["mode in this turn is 'ask'" in system_text(request) for request in asked] == [False, False, True]


async def test_what_has_joined_is_not_cancelled_by_name(stage: SetStage) -> None:
    """The turn does a person's work; the session that only spoke in it cannot stop it."""
    host = await stage(ASLEEP, "- {when: {model: lead}, reply: {hang: true}}\n", FINE)
    lead, source = await _open(host), await host.session("other")
    waits_for = await fall_asleep(host, lead)
    receipt = await _offer(host, source, lead)
    await wake(host, waits_for)
    await host.until(lambda server: len(server.requests) == 3)

    with pytest.raises(ConflictError):
        await host.ask("collaboration.cancel", sessionId=lead, messageId=receipt["messageId"])

    assert (await host.last_turn(lead)).state is TurnState.RUNNING
    stopped = await host.ask("session.interrupt", sessionId=lead)
    (settled,) = await host.settled(receipt["messageId"])
    assert (stopped["messageIds"], settled["status"]) == ([], "cancelled")


async def test_an_offer_to_a_turn_that_ends_first_is_an_ordinary_message(stage: SetStage) -> None:
    """It runs once, and not in the next turn of somebody else."""
    host = await stage(ASLEEP, FINE)
    lead, source = await _open(host), await host.session("other")
    await fall_asleep(host, lead)
    receipt = await _offer(host, source, lead)
    await host.ask("session.prompt", sessionId=lead, text="and now")

    await host.ask("session.interrupt", sessionId=lead, cascade=False)
    (settled,) = await host.settled(receipt["messageId"])
    await host.idle(lead)

    assert [_contents(request) for request in host.asked("lead")] == [[], [], ["by the way"]]
    turn = (await host.ask("session.turn", turnId=settled["turnId"]))["kind"]
    assert (settled["status"], turn, await host.turns(lead)) == ("completed", "message", 3)


@guarantee("I9")
async def test_after_a_crash_what_had_joined_is_interrupted_and_what_had_not_waits(stage: SetStage) -> None:
    """The one was shown to a model that was at work; the other to nobody, and runs when a person lets it."""
    host = await stage(ASLEEP, "- {when: {model: lead, user: first}, times: 1, reply: {hang: true}}\n", FINE)
    lead, source = await _open(host), await host.session("other")
    waits_for = await fall_asleep(host, lead)
    first = await _offer(host, source, lead, "first")
    await wake(host, waits_for)
    await host.until(lambda server: len(server.requests) == 3)
    second = await _offer(host, source, lead, "second")

    await host.restart()
    await host.restart()

    states = [(await _message(host, one["messageId"]))["status"] for one in (first, second)]
    assert states == ["interrupted", "queued"]
    assert (await host.ask("session.get", sessionId=lead))["session"]["held"] == "restart"
    await host.ask("session.release", sessionId=lead)
    await host.settled(second["messageId"])
    texts = [item["text"] for item in await host.items(lead) if item["kind"] == "session"]
    assert texts.count("first") == texts.count("second") == 1
