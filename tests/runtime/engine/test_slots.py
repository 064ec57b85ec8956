"""The places that turns run in: one that is free is never lost."""

import asyncio
from pathlib import Path
from typing import Any, cast

from tests.runtime.engine.conftest import BOUND_S, SetStage

from coterie.app import recover
from coterie.app.claim_turn import anything_ready
from coterie.app.expire import anything_due
from coterie.app.idempotency import anything_old
from coterie.app.recall import outline
from coterie.core.ids import TurnId
from coterie.core.limits import Limits
from coterie.core.permission import Mode
from coterie.operations.invocations import Invocations
from coterie.ports.model_provider import ModelProvider
from coterie.ports.store import C, Query, R, UseCase
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.subagents.delegations import Delegations
from coterie.runtime.supervisor import Supervisor
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds

TURN = TurnId("turn_that_waits")


class OvertakenStore:
    """A store in which somebody else takes the input that the supervisor has seen, before it can claim it."""

    def __init__(self) -> None:
        self.claiming, self.overtaken, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """What is ready is so until it is taken; a turn runs until it is over."""
        del command, brief
        if query is outline:
            await self.over.wait()
            return cast("R", None)
        answers: dict[Any, object] = {
            anything_due: False,
            anything_old: False,
            anything_ready: not self.overtaken.is_set(),
            recover.turns_running_here: (),
        }
        return cast("R", answers[query])

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """The claim comes too late."""
        del use_case, command, brief
        self.claiming.set()
        await self.overtaken.wait()
        return cast("R", None)


def _supervisor(store: OvertakenStore) -> Supervisor:
    # The model is never asked.
    provider = cast("ModelProvider", None)
    parts = RuntimeParts(
        store=store,
        feed=MemoryFeed(),
        clock=FakeClock(),
        invocations=Invocations(SeededIds()),
        models=(),
        provider=provider,
        tools={},
        limits=Limits(),
        permission_default=Mode.ASK,
        model_hint="",
        delegates=Delegations(SeededIds(), FakeClock(), Path(), running_max=1),
    )
    return Supervisor(parts, turns_max=1)


async def test_a_claim_that_comes_too_late_leaves_its_slot_to_a_turn_that_has_waited() -> None:
    """Else the turn sleeps on beside a free slot, and no other turn is let before it: the host stands still."""
    store = OvertakenStore()
    supervisor = _supervisor(store)
    assert supervisor.reserve()
    supervisor.hand_over(TURN)
    supervisor.start()
    try:
        async with asyncio.timeout(BOUND_S):
            async with supervisor.parked(TURN):
                await store.claiming.wait()
                store.overtaken.set()
            assert not supervisor.reserve()
            store.over.set()
            # The worker ends within a few steps of the loop.
            for _ in range(10):
                await asyncio.sleep(0)
        assert supervisor.reserve()
    finally:
        await supervisor.stop()


async def test_sleeps_side_by_side_in_one_turn_give_back_its_one_slot() -> None:
    """A tool may wait for several things at once; the turn has one slot all the same."""
    supervisor = _supervisor(OvertakenStore())
    assert supervisor.reserve()
    supervisor.hand_over(TURN)
    try:
        async with asyncio.timeout(BOUND_S), supervisor.parked(TURN):
            async with supervisor.parked(TURN), supervisor.parked(TURN):
                assert supervisor.reserve()
                assert not supervisor.reserve()
                supervisor.give_back()
            assert supervisor.reserve()
            supervisor.give_back()
        assert not supervisor.reserve()
    finally:
        await supervisor.stop()


async def test_a_sleep_that_outlives_its_turn_holds_no_slot() -> None:
    """A plugin may leave a wait running behind its tool call; it must not make places out of nothing."""
    supervisor = _supervisor(OvertakenStore())
    async with supervisor.parked(TurnId("turn_of_long_ago")):
        assert supervisor.reserve()
        assert not supervisor.reserve()
    assert not supervisor.reserve()


PARKS = """
- when: {model: lead, last: user}
  reply:
    calls:
      - {tool: session_task, arguments: {action: send, sessionId: "${user}", kind: task, message: go}}
- when: {model: lead, last: tool}
  capture:
    sent: {from: tool_results, tool: session_task, pattern: '"messageId":\\s*"([^"]+)"'}
  reply:
    calls:
      - {tool: session_task, arguments: {action: wait, messageIds: ["${sent}"]}}
"""
HANG = "- reply: {hang: true}"


async def test_turns_that_are_cancelled_in_their_sleep_make_no_room_for_more(stage: SetStage) -> None:
    """Each takes its slot on credit, and what is owed is paid before anything new begins."""
    host = await stage(PARKS, HANG, turns_max=1)
    leads = [await host.session("lead") for _ in range(3)]
    workers = [await host.session("worker") for _ in leads]
    for lead, worker in zip(leads, workers, strict=True):
        await host.prompt_later(lead, worker)
    for lead in leads:
        await host.until_items(lead, lambda items: any("wait" in str(item.get("calls")) for item in items))
    others = [await host.session("other") for _ in range(4)]
    for other in others:
        await host.prompt_later(other, "hello")

    for lead in leads:
        await host.ask("collaboration.cancel", sessionId=lead, cascade=False)
    await host.idle(*leads)

    await host.until(lambda server: server.answering == 1)
    running = await host.ask("app.health")
    assert running["turnsRunning"] == 1
