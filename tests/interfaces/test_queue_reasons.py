"""Why a queue does not move: a person who asks must not be told less than the ledger knows."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import pytest
from tests.guarantees import guarantee
from tests.interfaces.conftest import Host

from coterie.app import recover

Prepare: TypeAlias = Callable[[Host, str], Awaitable[None]]


async def _held(host: Host, session: str) -> None:
    host.slots.free = 0
    await host.ask("session.prompt", sessionId=session, text="Go.")
    await host.parts.store.run(recover.hold_queues, None)


async def _archived(host: Host, session: str) -> None:
    host.slots.free = 0
    await host.ask("session.prompt", sessionId=session, text="Go.")
    await host.ask("session.archive", sessionId=session)


async def _running(host: Host, session: str) -> None:
    for text in ("Go.", "And then?"):
        await host.ask("session.prompt", sessionId=session, text=text)


async def _slotless(host: Host, session: str) -> None:
    host.slots.free = 0
    await host.ask("session.prompt", sessionId=session, text="Go.")


async def _empty(host: Host, session: str) -> None:
    await host.ask("session.prompt", sessionId=session, text="Go.")


REASONS: Final[dict[str | None, Prepare]] = {
    "held: restart": _held,
    "held: archived": _archived,
    "running": _running,
    "slot": _slotless,
    None: _empty,
}


@guarantee("I16")
@pytest.mark.parametrize("reason", REASONS)
async def test_a_queue_says_what_it_waits_for(host: Host, reason: str | None) -> None:
    """A hold that looks like a full host is waited out for ever; what holds a queue comes before what would."""
    session = await host.new_session()
    await REASONS[reason](host, session)

    queue = await host.ask("queue.list", sessionId=session)

    assert queue.get("blockedBy") == reason
    assert queue["waiting"] == len(queue["inputs"]) == (reason is not None)
