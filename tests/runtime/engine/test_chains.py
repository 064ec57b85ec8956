"""What one human input sets in motion has an end: in depth, in money, and when a person stops it."""

import asyncio
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage

from coterie.core.codes import Code
from coterie.core.errors import ConflictError, RefusedError
from coterie.core.turn.states import TurnState
from coterie.operations.caller import Agent
from coterie.ports.tool import Invocation

RING: Final = """
- when: {user: 'pass it on', last: user}
  capture: {next: {from: system, pattern: 'Your session: .(?P<next>ses_\\w+)'}}
  reply: {calls: [{tool: session_task, arguments: {action: send, sessionId: "${next}", message: "pass it on"}}]}
- when: {last: tool}
  reply: {text: "passed"}
"""
"""Each session sends to the one that its own title names."""


async def _ring(host: Stage, size: int) -> list[str]:
    """Sessions in a ring, each titled by the id of the next one."""
    sessions = [await host.session("one") for _ in range(size)]
    for session, following in zip(sessions, [*sessions[1:], sessions[0]], strict=True):
        await host.ask("session.rename", sessionId=session, title=following)
    return sessions


async def _refusals(host: Stage, sessions: list[str]) -> list[str]:
    results = [text for session in sessions for text in await host.results(session)]
    return [text for text in results if '"error"' in text]


async def _until_refused(host: Stage, sessions: list[str]) -> None:
    """Wait until a tool of one of the sessions was refused, and all of them have come to rest."""
    async with asyncio.timeout(BOUND_S):
        with host.engine.operations.host.feed.listen(sessions) as listener:
            while not await _refusals(host, sessions):
                await listener.wait()
    await host.idle(*sessions)


@guarantee("I12")
@pytest.mark.parametrize("size", [2, 3, 5])
async def test_a_ring_ends_after_eight_deliveries_and_says_why(stage: SetStage, size: int) -> None:
    """Case 79: no pair of sessions exceeds anything, and yet they would go on for ever."""
    host = await stage(RING)
    sessions = await _ring(host, size)

    await host.prompt(sessions[0], "pass it on")
    await _until_refused(host, sessions)

    passed = await host.chain((await host.exchanges(sessions[1]))[0]["messageId"])
    assert [one["remainingHops"] for one in passed] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert {one["status"] for one in passed} == {"completed"}
    refused = await _refusals(host, sessions)
    assert len(refused) == 1
    assert '"code": "LIMIT_EXCEEDED"' in refused[0]
    assert '"limit": "hops_max"' in refused[0]


ROUNDS: Final = """
- when: {model: lead, last: user}
  capture: {worker: {from: user, pattern: 'with (ses_\\w+)'}}
  reply: {calls: [{tool: session_task, arguments: {action: send, sessionId: "${worker}", message: more, kind: task}}]}
- reply: {text: "done"}
"""


@guarantee("I12")
async def test_a_loop_of_tasks_and_notices_gets_four_rounds(stage: SetStage) -> None:
    """A notice costs a hop too, so who gives the next task at each notice comes to an end as well."""
    host = await stage(ROUNDS)
    lead, worker = await host.session("lead"), await host.session("worker")

    await host.prompt(lead, f"work with {worker}")
    await _until_refused(host, [lead, worker])

    sent = (await host.exchanges(worker))[0]["messageId"]
    chain = await host.chain(sent)
    assert [one["remainingHops"] for one in chain if one["kind"] == "task"] == [8, 6, 4, 2]
    assert [one["remainingHops"] for one in chain if one["kind"] == "completion"] == [7, 5, 3, 1]
    assert '"limit": "hops_max"' in (await host.results(lead))[-1]


SPEND: Final = """
- when: {model: lead, user: '^go', requests_since_user: 0}
  capture: {worker: {from: user, pattern: 'to (ses_\\w+)'}}
  reply:
    calls:
    - {tool: session_task, arguments: {action: send, sessionId: "${worker}", message: first, kind: task}}
    - {tool: session_task, arguments: {action: send, sessionId: "${worker}", message: second, kind: task}}
- reply: {text: "done", usage: {input_tokens: 1000000, output_tokens: 10}}
"""


async def _spending(stage: SetStage, *, price: float | None) -> tuple[Stage, str, str]:
    """A lead that gives two tasks and then spends a million tokens, and its worker."""
    host = await stage(SPEND, chain_tokens_max=900_000)
    await host.stop()
    models = tuple(replace(one, input_price=price, output_price=price) for one in host.settings.models)
    limits = replace(host.settings.limits, chain_cost_max=2.5)
    host.settings = replace(host.settings, models=models, limits=limits)
    await host.start()
    return host, await host.session("lead"), await host.session("worker")


async def _queue(host: Stage, session_id: str) -> list[tuple[str, str | None]]:
    listed = await host.ask("queue.list", sessionId=session_id)
    return [(one["kind"], one.get("waiting")) for one in listed["inputs"]]


async def _until_waiting(host: Stage, session_id: str) -> None:
    """Wait until nothing of the session runs and something waits for a person."""
    async with asyncio.timeout(BOUND_S):
        with host.engine.operations.host.feed.listen([session_id]) as listener:
            while (await host.ask("queue.list", sessionId=session_id)).get("blockedBy") != "waiting":
                await listener.wait()


@guarantee("I12")
@pytest.mark.parametrize("price", [3.0, None])
async def test_a_chain_that_has_spent_its_budget_waits_for_a_person(stage: SetStage, price: float | None) -> None:
    """By its price, or by tokens where no price is known; other chains go on, and a release lets this one go on."""
    host, lead, worker = await _spending(stage, price=price)

    await host.prompt(lead, f"go to {worker}")
    await _until_waiting(host, worker)

    assert ("task", "budget") in await _queue(host, worker)
    sent = [one for one in await host.exchanges(worker) if one["kind"] == "task"]
    budget = (await host.ask("collaboration.chain", messageId=sent[0]["messageId"]))["budget"]
    assert (budget["costUsd"] >= 3.0, budget["tokens"] >= 1_000_000) == (price is not None, price is None)
    await host.prompt_later(worker, "a chain of its own")
    await host.until_items(worker, lambda items: any(item["kind"] == "person" for item in items))
    await _until_waiting(host, worker)
    assert (await host.last_turn(worker)).kind == "prompt"
    assert ("task", "budget") in await _queue(host, worker)

    assert (await host.ask("session.release", sessionId=worker))["released"] >= 1
    again = (await host.ask("collaboration.chain", messageId=sent[0]["messageId"]))["budget"]
    assert again["costUsd"] < again["costMaxUsd"]
    assert again["tokens"] < again["tokensMax"]
    assert (again["costMaxUsd"] % 2.5, again["tokensMax"] % 900_000) == (0, 0)


async def _act(host: Stage, invocation: Invocation, operation: str, **params: Any) -> dict[str, Any] | Code:
    try:
        return (await host.engine.operations.perform(Agent(invocation), operation, params)).wire()
    except (ConflictError, RefusedError) as error:
        return error.code


TREE: Final = """
- when: {model: lead, user: '^go'}
  reply: {hang: true}
- when: {model: worker}
  reply: {hang: true}
- when: {model: other}
  reply: {hang: true}
- reply: {text: noted}
"""


@pytest.mark.parametrize("first", ["spawn", "cancel"])
async def test_a_child_that_is_spawned_while_its_tree_is_cancelled_does_not_escape(stage: SetStage, first: str) -> None:
    """Cases 92 and 94: whichever of the two comes first, three levels end, nothing starts, and the answer lists all."""
    host = await stage(TREE, turns_max=16)
    lead, worker, leaf = await host.session("lead"), await host.session("worker"), await host.session("other")
    await host.prompt(lead, "go")
    with host.calling(await host.last_turn(lead)) as call:
        sent = await host.act(call, "collaboration.send", sessionId=worker, content="help", kind="task")
    with host.calling(await host.last_turn(worker)) as call:
        below = await host.act(call, "collaboration.send", sessionId=leaf, content="help", kind="task")
        escaping = _act(host, call, "collaboration.spawn", content="escape", model="other")
        cancelling = host.ask("session.interrupt", sessionId=lead)
        both = [escaping, cancelling] if first == "spawn" else [cancelling, escaping]
        answers = await asyncio.gather(*both)
    spawned, stopped = answers if first == "spawn" else reversed(answers)

    assert isinstance(stopped, dict)
    await host.idle(lead, worker, leaf)
    chain = await host.chain(sent["messageId"])
    assert {one["status"] for one in chain} == {"cancelled"}
    listed = {sent["messageId"], below["messageId"]}
    if isinstance(spawned, dict):
        listed.add(spawned["messageId"])
        await host.idle(spawned["sessionId"])
    else:
        assert spawned is Code.CONFLICT
    assert set(stopped["messageIds"]) == listed
    assert {one["id"] for one in chain if one["kind"] == "task"} == listed
    for session in (lead, worker, leaf):
        assert (await host.last_turn(session)).state is TurnState.CANCELLED
        assert (await host.ask("queue.list", sessionId=session))["inputs"] == []
    assert await host.turns(lead) == 1
