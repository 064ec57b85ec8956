"""What does a ledger full of old messages cost, in time and bytes, and does a statement read a whole table of it?"""

import asyncio
import sqlite3
import time
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Final

from tests.contract.plans import JUDGED, growing

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, ratio, since_ms, values
from benchmarks.old_ledger import YOUNG, settled
from benchmarks.product import Pair, Product, product
from coterie.app import describe
from coterie.app.claim_turn import claim_turn
from coterie.bootstrap.files import DATABASE

_YOUNG: Final = "young ledger"
_OLD: Final = "old ledger"
_MARKS: Final = {
    "send": budgets.GROWTH_SEND,
    "claim": budgets.GROWTH_CLAIM,
    "settle": budgets.GROWTH_SETTLE,
    "append": None,
    "status": budgets.GROWTH_STATUS,
    "list": budgets.GROWTH_LIST,
}


def _block(host: Product, pair: Pair, rounds: int) -> Block:
    async def lap() -> Lap:
        start = time.perf_counter_ns()
        sent = await host.send(pair.sender, pair.target)
        found = {"send": since_ms(start)}
        start = time.perf_counter_ns()
        await host.settle(sent.turn_id)
        found["settle"] = since_ms(start)
        start = time.perf_counter_ns()
        await host.absorb(pair.turn, sent.message.id)
        found["append"] = since_ms(start)
        later = await host.send(pair.sender, pair.target, slot=False)
        start = time.perf_counter_ns()
        claimed = await host.store.run(claim_turn, None)
        found["claim"] = since_ms(start)
        assert claimed is not None, "the message waits for nothing but a slot"
        await host.settle(claimed.id, slot=False)
        await host.absorb(pair.turn, later.message.id)
        start = time.perf_counter_ns()
        await host.store.read(describe.status, pair.target)
        found["status"] = since_ms(start)
        start = time.perf_counter_ns()
        await host.store.read(describe.sessions, (None, 50))
        return found | {"list": since_ms(start)}

    async def block() -> list[Lap]:
        await pair.renew()
        return [await lap() for _ in range(rounds)]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure what people and agents do on a young ledger and on an old one, then look at the plans on the old one."""
    rounds = bench.size(25, 5)
    old, young = bench.place("old"), bench.place("young")
    start = time.perf_counter()
    sessions = await settled(old, bench.old_messages)
    filled, beside = time.perf_counter() - start, await settled(young, YOUNG)
    size = (old / DATABASE).stat().st_size
    async with AsyncExitStack() as stack:
        aged, fresh = await stack.enter_async_context(product(old)), await stack.enter_async_context(product(young))
        old_pair = Pair(aged, *sessions, await aged.begin(sessions[0]))
        new_pair = Pair(fresh, *beside, await fresh.begin(beside[0]))
        blocks = {_YOUNG: _block(fresh, new_pair, rounds), _OLD: _block(aged, old_pair, rounds)}
        found = await alternate(blocks, bench.size(30, 1))
        _, broken = await aged.store.read(describe.verify, None) if bench.quick else ((), ())
    assert not broken, f"the copies are no sound ledger: {broken[0]}"
    figures = [
        Figure(f"{bench.old_messages:,} old messages: written in", filled, "s"),
        Figure(f"{bench.old_messages:,} old messages: bytes of each in the file", size / bench.old_messages, "bytes"),
    ]
    for mark, budget in _MARKS.items():
        what = f"{mark} beside {bench.old_messages:,} old messages"
        figures += [
            Figure(f"{what}: p50", percentile(values(found[_OLD], mark), 0.5), "ms"),
            Figure(f"{what}: p50 by young", ratio(found[_OLD], mark, found[_YOUNG], mark), "x", budget),
        ]
    return figures + await asyncio.to_thread(_plans, old / DATABASE)


def _plans(path: Path) -> list[Figure]:
    """Count the statements that read a whole table, without statistics and with those of the old ledger."""
    without = _growing(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("ANALYZE")
    found = {"without statistics": without, "after ANALYZE": _growing(path)}
    return [
        Figure(f"plans: {len(JUDGED)} statements, {how}: scans", len(names), "scans", budgets.SCANS, ", ".join(names))
        for how, names in found.items()
    ]


def _growing(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        return growing(connection)
