"""How many durable sends go into a second, from 1, 8 and 32 senders at once?"""

import asyncio
import time
from statistics import median
from typing import Final

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.measure import Block, Figure, Lap, alternate, ratio, since_ms, values
from benchmarks.product import Product, product
from coterie.app.sender import Sender
from coterie.core.ids import SessionId
from coterie.core.ledger.message import Kind

_RAW: Final = "raw, single-row commits"
_BUDGETS: Final = {1: budgets.SENDS_ALONE, 32: budgets.SENDS_MANY}


def _block(host: Product, senders: list[Sender], sends: int, *, slot: bool) -> Block:
    """Each sender sends to sessions of its own: idle ones that start at once, or ones that let it wait."""

    async def one(sender: Sender, targets: list[SessionId]) -> None:
        for number in range(sends):
            await host.send(sender, targets[number % len(targets)], kind=Kind.MESSAGE, slot=slot)

    async def block() -> list[Lap]:
        opened = await asyncio.gather(*(host.session("B") for _ in range(len(senders) * (sends if slot else 8))))
        # Fresh targets, so that no block finds the inboxes of the one before.
        targets = [opened[number :: len(senders)] for number in range(len(senders))]
        start = time.perf_counter_ns()
        await asyncio.gather(*map(one, senders, targets))
        return [{"rate": len(senders) * sends / since_ms(start) * 1000}]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure sends that wait in an inbox and sends that start a turn, beside raw single-row commits."""
    folder = bench.place("sends")
    with bench.ground.raw(folder) as raw:
        async with product(folder, bench.ground.open_store) as host:
            senders: list[Sender] = []
            for _ in range(32):
                session_id = await host.session("A")
                senders.append(Sender(session_id, await host.begin(session_id)))
            blocks = {_RAW: raw.rates(bench.size(400, 20), inserts=True)}
            for count in (1, 8, 32):
                sends = bench.size(max(16, 200 // count), 3)
                for kind, slot in (("that wait", False), ("that start a turn", True)):
                    blocks[f"{count} sender(s), sends {kind}"] = _block(host, senders[:count], sends, slot=slot)
            found = await alternate(blocks, bench.size(12, 1))
    baseline = found.pop(_RAW)
    figures = [Figure(f"{_RAW}: rate", median(values(baseline, "rate")), "/s")]
    for name, laps in found.items():
        budget = _BUDGETS.get(int(name.split()[0]))
        figures += [
            Figure(f"{name}: rate", median(values(laps, "rate")), "/s"),
            Figure(f"{name}: rate by raw", ratio(laps, "rate", baseline, "rate"), "x", budget),
        ]
    return figures
