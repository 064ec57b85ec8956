"""How many durable round trips go into a second when 32 pairs of sessions work at once?"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.budgets import Budget
from benchmarks.measure import Block, Figure, Lap, alternate, ratio, since_ms, values
from benchmarks.product import Pair, product
from coterie.core.ids import MessageId

PAIRS: Final = 32
_RAW: Final = "raw, 4 commits, one connection"


def block_of(pairs: list[Pair], rounds: int, act: Callable[[Pair], Awaitable[MessageId]], *, read: bool) -> Block:
    """A block of one lap: every pair does *rounds* round trips, one after the other.

    Args:
        pairs: All at once.
        rounds: Of each pair.
        act: One round trip.
        read: Whether the item that absorbs an outcome belongs to the round trip, or comes after the block.
    """

    async def one(pair: Pair) -> list[MessageId]:
        shown: list[MessageId] = []
        for _ in range(rounds):
            message_id = await act(pair)
            if read:
                await pair.product.absorb(pair.turn, message_id)
            else:
                shown.append(message_id)
        return shown

    async def block() -> list[Lap]:
        await asyncio.gather(*(pair.renew() for pair in pairs))
        commits = pairs[0].product.store.commits
        start = time.perf_counter_ns()
        shown = await asyncio.gather(*map(one, pairs))
        rate = len(pairs) * rounds / since_ms(start) * 1000
        each = (pairs[0].product.store.commits - commits) / (len(pairs) * rounds)
        # What waits in the inboxes would make the next block another question.
        await asyncio.gather(*(p.product.absorb(p.turn, *ids) for p, ids in zip(pairs, shown, strict=True) if ids))
        return [{"rate": rate, "commits": each}]

    return block


def rows(what: str, laps: list[list[Lap]], baseline: list[list[Lap]], budget: Budget | None) -> list[Figure]:
    """The rate, beside the baseline, and the commits of a round trip."""
    return [
        Figure(f"{what}: rate", median(values(laps, "rate")), "/s"),
        Figure(f"{what}: rate by raw", ratio(laps, "rate", baseline, "rate"), "x", budget),
        Figure(f"{what}: commits per round trip", median(values(laps, "commits")), "commits"),
    ]


async def run(bench: Bench) -> list[Figure]:
    """Measure 32 pairs by use cases and by operations, beside one raw connection."""
    rounds, folder = bench.size(10, 2), bench.place("pairs")
    with bench.ground.raw(folder) as raw:
        async with product(folder, bench.ground.open_store) as host:
            pairs = [await host.pair() for _ in range(PAIRS)]
            blocks = {
                _RAW: raw.rates(rounds * PAIRS // 2, inserts=False),
                "use cases, until the wait answers": block_of(pairs, rounds, Pair.answered, read=False),
                "use cases, with the absorbing item": block_of(pairs, rounds, Pair.answered, read=True),
                "operations, until the wait answers": block_of(pairs, rounds, Pair.performed, read=False),
                "operations, with the absorbing item": block_of(pairs, rounds, Pair.performed, read=True),
            }
            found = await alternate(blocks, bench.size(12, 1))
    baseline = found.pop(_RAW)
    figures = [Figure(f"{_RAW}: rate", median(values(baseline, "rate")), "/s")]
    for name, laps in found.items():
        figures += rows(f"{PAIRS} pairs, {name}", laps, baseline, budgets.PAIRS if "wait" in name else None)
    return figures
