"""Each fault of a provider, at each place of a turn, on each wire: over real HTTP, in time that does not pass."""

import asyncio
import importlib
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import product
from typing import Final

import pytest
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage
from tests.runtime.engine.provider_faults import AWAY, FAULTS, PLACES, SAYS, Fault, Place
from tests.runtime.engine.test_approvals import answer, questions
from tests.runtime.engine.wire import WIRES, mute

from coterie.core.codes import Code
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.feed import Listener

CASES: Final = [
    pytest.param(api, place, fault, id=f"{api}, {place.title}, {fault.title}")
    for api, place, fault in product(WIRES, PLACES, FAULTS)
]
_CALL: Final = "{tool: write, arguments: {path: a.txt, content: x}}"
"""A call that waits for a person, so that a test can act in between."""
_GIVE: Final = "{tool: task, arguments: {prompt: 'sub ${user.what}', wait: true}}"
_USAGE: Final = "{input_tokens: 11, output_tokens: 7}"


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """Load the SDKs before any test: no bound of a wait should have to cover that."""
    for api in ("_anthropic", "_openai", "_openai_responses"):
        importlib.import_module(f"coterie.runtime.providers.{api}")


def rules(place: Place, fault: Fault) -> str:
    """A script in which the first prompt meets the fault, and the second one meets it once if it may pass."""
    lines: list[str] = []
    if place.rounds:
        going_well = f"requests_since_user: '<{place.rounds}', user: '(?<!sub )(?P<what>first|second)$'"
        calls = f"{_CALL}, {_GIVE}, {_CALL}" if place.delegated else _CALL
        lines.append(f"- {{when: {{{going_well}}}, reply: {{text: Well., calls: [{calls}], usage: {_USAGE}}}}}")
    prompts = [("first", fault.times), ("second", 1)] if fault.waits else [("first", fault.times)]
    if fault.reply == AWAY:
        prompts = []
    sub, rounds = ("sub ", 0) if place.delegated else ("", place.rounds)
    for user, times in prompts:
        bound = "" if times is None else f"times: {times}, "
        here = f"requests_since_user: {rounds}, user: {sub}{user}$"
        lines.append(f"- {{when: {{{here}}}, {bound}reply: {{{fault.reply}}}}}")
    return "\n".join([*lines, f"- reply: {{text: {SAYS}}}", ""])


async def speak(host: Stage, api: str) -> None:
    """Have all models spoken to by this wire."""
    await host.stop()
    url = f"{host.server.url}{WIRES[api]}"
    models = tuple(replace(model, api=api, base_url=url) if model.base_url else model for model in host.settings.models)
    host.settings = replace(host.settings, models=models)
    await host.start()


async def prompted(host: Stage, session: str, text: str, place: Place, *, away: bool) -> None:
    """Prompt the session and let its turn come to the place; there the server is away, if it is to be."""
    async with AsyncExitStack() as gone:
        if away and not place.rounds:
            await gone.enter_async_context(host.server.away())
        await host.prompt(session, text)
        if place.rounds:
            await questions(host)
            if away:
                await gone.enter_async_context(host.server.away())
            await answer(host, "once")
        if away:
            await (questions(host) if place.delegated else host.idle(session))


async def ended(host: Stage, session: str, place: Place) -> Turn:
    """Let the turn go on behind its delegation, and wait for its end."""
    if place.delegated:
        await answer(host, "once")
    return await host.ended(session)


async def interrupted(host: Stage, session: str, place: Place, listener: Listener) -> Turn:
    """Interrupt the turn when the first words of the stream are there; a subagent shows none."""
    async with asyncio.timeout(BOUND_S):
        while not place.delegated and not any(delta.text == "one" for delta in listener.deltas()):
            await listener.wait()
    await host.until(lambda server: server.answering == 1)
    await host.ask("session.interrupt", sessionId=session)
    return await host.ended(session)


async def replies(host: Stage, turn: Turn) -> list[str]:
    """What the model has said in a turn."""
    items = await host.items(turn.session_id)
    return [one["text"] for one in items if (one["turnId"], one["kind"]) == (turn.id, "reply")]


async def must_end_as_told(host: Stage, turn: Turn, place: Place, fault: Fault) -> None:
    """The end of the turn that met the fault, what it has cost, and what stays of it."""
    state = TurnState.CANCELLED if fault.cancelled else TurnState.FAILED if fault.code else TurnState.COMPLETED
    assert (turn.state, turn.error_code) == (state, fault.code.value if fault.code else None)
    assert fault.told in "\n".join([turn.error or "", *await host.results(turn.session_id)])
    said = ["Well."] * place.rounds + ([fault.kept] if fault.kept else [])
    if state is TurnState.COMPLETED:
        assert (await replies(host, turn))[-1] == turn.result == SAYS
    elif fault.code is not Code.EMPTY_MODEL_RESPONSE:
        assert (turn.result, await replies(host, turn)) == (None, said)
        # What the request in vain has used is unknown, which is not zero.
        assert (turn.input_tokens, turn.output_tokens) == ((11, 7) if place.rounds else (None, None))


async def must_be_reported(host: Stage, turn: Turn, fault: Fault) -> None:
    """The end of the subagent that met the fault, and that its turn went on."""
    items = await host.items(turn.session_id)
    if fault.cancelled:
        assert turn.state is TurnState.CANCELLED
        assert [one["delegation"]["status"] for one in items if one["kind"] == "report"] == ["stopped"]
        return
    assert (turn.state, turn.result) == (TurnState.COMPLETED, SAYS)
    (given,) = (one["text"] for one in items if one.get("tool") == "task")
    (one,) = json.loads(given)["delegations"]
    if fault.code is None:
        assert (one["status"], one["report"]) == ("completed", SAYS)
        assert fault.told in json.dumps(host.asked())
    else:
        assert (one["status"], one["report"].partition(":")[0]) == ("failed", fault.code.value)
        assert fault.told in one["report"]


@pytest.mark.parametrize(("api", "place", "fault"), CASES)
async def test_a_turn_that_meets_a_fault_ends_as_the_table_says_and_the_next_one_runs(
    stage: SetStage, api: str, place: Place, fault: Fault
) -> None:
    """Cases 108, 109, 111 and 112: one turn fails at most, nothing looks like an answer that is none."""
    host = await stage(rules(place, fault))
    await speak(host, api)
    session = await host.session(folder=True)
    with host.engine.operations.host.feed.listen(None) as listener:
        await prompted(host, session, "first", place, away=fault.reply == AWAY)
        ending = interrupted(host, session, place, listener) if fault.cancelled else ended(host, session, place)
        turn = await ending

    if place.delegated:
        await must_be_reported(host, turn, fault)
    else:
        await must_end_as_told(host, turn, place, fault)
    assert host.clock.slept == list(fault.waits)
    goes_on = 1 if place.delegated and not fault.cancelled else 0
    assert len(host.asked()) == place.rounds + (0 if fault.reply == AWAY else fault.requests) + goes_on

    await prompted(host, session, "second", place, away=False)

    turn = await ended(host, session, place)
    assert (turn.state, turn.result) == (TurnState.COMPLETED, SAYS)
    assert await replies(host, turn) == ["Well."] * place.rounds + [SAYS]
    assert host.clock.slept[len(fault.waits) :] == ([] if fault.reply == AWAY else list(fault.waits[:1]))
    assert not [found for request in host.asked() for found in mute(request)]
