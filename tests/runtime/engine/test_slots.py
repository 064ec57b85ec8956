"""The places that turns run in: one that is free is never lost."""

import asyncio
from typing import Any, cast

from tests.runtime.engine.conftest import BOUND_S

from coterie.app import recover
from coterie.app.claim_turn import anything_ready
from coterie.core.ids import TurnId
from coterie.core.limits import Limits
from coterie.core.permission import Mode
from coterie.operations.invocations import Invocations
from coterie.ports.model_provider import ModelProvider
from coterie.ports.store import C, Query, R, UseCase
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.supervisor import Supervisor
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds


class OvertakenStore:
    """A store in which somebody else takes the input that the supervisor has seen, before it can claim it."""

    def __init__(self) -> None:
        self.claiming, self.overtaken = asyncio.Event(), asyncio.Event()

    async def read(self, query: Query[C, R], command: C) -> R:
        """What is ready is so until it is taken."""
        del command
        answers: dict[Any, object] = {
            anything_ready: not self.overtaken.is_set(),
            recover.turns_running_here: (),
        }
        return cast("R", answers[query])

    async def run(self, use_case: UseCase[C, R], command: C) -> R:
        """The claim comes too late."""
        del use_case, command
        self.claiming.set()
        await self.overtaken.wait()
        return cast("R", None)


async def test_a_claim_that_comes_too_late_leaves_its_slot_to_a_turn_that_has_waited() -> None:
    """Else the turn sleeps on beside a free slot, and no other turn is let before it: the host stands still."""
    store, ids = OvertakenStore(), SeededIds()
    # The model is never asked.
    provider = cast("ModelProvider", None)
    parts = RuntimeParts(
        store=store,
        feed=MemoryFeed(),
        clock=FakeClock(),
        invocations=Invocations(ids),
        models=(),
        provider=provider,
        tools={},
        limits=Limits(),
        permission_default=Mode.ASK,
        model_hint="",
    )
    supervisor = Supervisor(parts, turns_max=1)
    assert supervisor.reserve()
    supervisor.start()
    try:
        async with asyncio.timeout(BOUND_S):
            async with supervisor.parked(TurnId("turn_that_waits")):
                await store.claiming.wait()
                store.overtaken.set()
            supervisor.give_back()
        assert supervisor.reserve()
    finally:
        await supervisor.stop()
