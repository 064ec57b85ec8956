"""A turn that sleeps holds no slot, and the next that is free is its own."""

import asyncio
from pathlib import Path
from typing import cast

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

TURN = TurnId("turn_that_sleeps")
STEPS = 10
"""Rounds of the loop in which whatever can happen without the world has happened."""


class SilentStore:
    """A store that never answers: the turn of the test goes on for as long as it lasts."""

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        del query, command, brief
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        del use_case, command, brief
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


def _supervisor() -> Supervisor:
    parts = RuntimeParts(
        store=SilentStore(),
        feed=MemoryFeed(),
        clock=FakeClock(),
        invocations=Invocations(SeededIds()),
        models=(),
        # The model is never asked.
        provider=cast("ModelProvider", None),
        tools={},
        limits=Limits(),
        permission_default=Mode.ASK,
        model_hint="",
        delegates=Delegations(SeededIds(), FakeClock(), Path(), running_max=1),
    )
    return Supervisor(parts, turns_max=1)


async def _sleep(supervisor: Supervisor, woken: asyncio.Event) -> None:
    async with supervisor.parked(TURN):
        await woken.wait()


async def _settle_down() -> None:
    for _ in range(STEPS):
        await asyncio.sleep(0)


async def test_a_turn_that_sleeps_leaves_its_slot_and_takes_the_next_that_is_free() -> None:
    """Sessions that wait for each other's work would otherwise fill the host, and new work would keep it full."""
    supervisor, woken = _supervisor(), asyncio.Event()
    assert supervisor.reserve()
    supervisor.hand_over(TURN)
    sleeping = asyncio.ensure_future(_sleep(supervisor, woken))
    try:
        await _settle_down()
        assert supervisor.reserve()
        woken.set()
        await _settle_down()
        assert not sleeping.done()

        supervisor.give_back()

        assert not supervisor.reserve()
        await _settle_down()
        assert sleeping.done()
    finally:
        sleeping.cancel()
        await supervisor.stop()
