"""Ledgers as time leaves them: full of messages that are settled, or of some that wait."""

import asyncio
from pathlib import Path
from typing import Final

from benchmarks.copies import Original, copy
from benchmarks.product import product
from coterie.app.sender import Sender
from coterie.bootstrap.files import DATABASE
from coterie.core.ids import SessionId
from coterie.core.ledger.message import Kind

OTHER_PAIRS: Final = 100
MESSAGES_PER_COPY: Final = 2
INPUTS_PER_SESSION: Final = 8
"""As many as a session takes by default (`inbox_max`)."""
YOUNG: Final = 2 * OTHER_PAIRS * MESSAGES_PER_COPY
"""Messages of a ledger whose pairs have all exchanged something."""


async def settled(folder: Path, messages: int) -> tuple[SessionId, SessionId]:
    """Make a ledger of so many settled messages; returns two idle sessions that have half of them.

    One round trip is copied: every second copy is between these two, the others between many pairs more.
    """
    async with product(folder) as host:
        pair = await host.pair()
        await pair.lap(performed=True)
        await host.settle(pair.turn, slot=False)
        opened = await asyncio.gather(*(host.session("A") for _ in range(2 * OTHER_PAIRS)))
        others = list(zip(opened[::2], opened[1::2], strict=True))
    first = (pair.source, pair.target)
    copies = max(0, messages // MESSAGES_PER_COPY - 1)
    places = [first if number % 2 else others[number // 2 % OTHER_PAIRS] for number in range(copies)]
    await asyncio.to_thread(copy, folder / DATABASE, Original(first), places)
    return first


async def queued(folder: Path, inputs: int) -> SessionId:
    """Make a ledger with so many queued inputs, eight in each session; returns one of these sessions."""
    async with product(folder) as host:
        source, other, target = [await host.session(title) for title in ("source", "other", "target")]
        for _ in range(INPUTS_PER_SESSION):
            await host.send(Sender(source, None), target, kind=Kind.MESSAGE, slot=False)
    places = [(source, other)] * max(0, inputs // INPUTS_PER_SESSION - 1)
    await asyncio.to_thread(copy, folder / DATABASE, Original((source, other), own=target), places)
    return target
