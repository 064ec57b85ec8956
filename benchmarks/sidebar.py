"""What do 10,000 sessions that do nothing cost: the first page of their list, and memory?"""

import asyncio
import gc
import os
import time
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.hosted import Hosted, hosted
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, since_ms, values
from benchmarks.product import product
from coterie.app import describe
from coterie.operations import events
from coterie.operations.caller import Person
from coterie.storage.sqlite.store import READERS

SESSIONS: Final = 10_000
_PAGE: Final = 50
_AT_ONCE: Final = 32
_BOUND_S: Final = 600.0


async def _opened(folder: Path, count: int) -> list[str]:
    """Make a ledger of so many sessions that have done nothing yet."""
    async with product(folder) as host:
        return [str(one) for one in await asyncio.gather(*(host.session(str(number)) for number in range(count)))]


def _pages(host: Hosted, rounds: int) -> Block:
    async def lap() -> Lap:
        start = time.perf_counter_ns()
        await host.engine.operations.perform(Person(), "session.list", {"limit": _PAGE})
        return {"page": since_ms(start)}

    async def block() -> list[Lap]:
        return [await lap() for _ in range(rounds)]

    return block


def _traced() -> int:
    """Bytes of Python's own."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _resident() -> int:
    """Bytes of the whole process, where the system tells; else 0."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if told.exists() else 0


async def _one_turn_each(host: Hosted, sessions: list[str]) -> None:
    async def turns(mine: list[str]) -> None:
        for session_id in mine:
            await host.engine.operations.perform(Person(), "session.prompt", {"sessionId": session_id, "text": "go"})
            await host.idle(session_id)

    await asyncio.gather(*(turns(sessions[number::_AT_ONCE]) for number in range(_AT_ONCE)))
    host.model.asked_ns.clear()


@asynccontextmanager
async def _watched(host: Hosted, sessions: list[str]) -> AsyncGenerator[None]:
    """Follow the changes of each session, as an open page does, without a connection."""
    parts = host.engine.operations.host
    streams = [events.changes(parts, session_id, 1 << 40, beat_s=_BOUND_S) for session_id in sessions]
    following = [asyncio.ensure_future(anext(stream)) for stream in streams]
    try:
        # Reads are done in their order, so the last ones have looked when this one has.
        await asyncio.gather(*(host.engine.store.read(describe.newest_change, None) for _ in range(2 * READERS)))
        await asyncio.sleep(0)
        yield
    finally:
        for one in following:
            one.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


async def _memory(folder: Path, sessions: list[str], active: list[str]) -> Lap:
    """What a host has in bytes, with all *sessions* in its ledger, at several moments."""
    found: Lap = {}
    tracemalloc.start()
    try:
        async with hosted(folder) as host:
            # What the first turn of a host leaves is no session's.
            await _one_turn_each(host, sessions[:1])
            found["started"] = _traced()
            await _one_turn_each(host, active)
            found["active"] = _traced()
            async with _watched(host, active):
                found["watched"] = _traced()
    finally:
        tracemalloc.stop()
    return found


async def run(bench: Bench) -> list[Figure]:
    """Measure the first page, then the memory of a host with one session and of one with many."""
    count, turns = bench.size(SESSIONS, 60), bench.size(1000, 20)
    many, one = bench.place("many"), bench.place("one")
    sessions, alone = await _opened(many, count), await _opened(one, 1)
    async with hosted(many) as host:
        pages = (await alternate({"pages": _pages(host, bench.size(25, 3))}, bench.size(8, 1)))["pages"]
        before = _resident()
        await _one_turn_each(host, sessions[:turns])
        grown = _resident() - before
    with_one = await _memory(one, alone, alone * 2)
    with_many = await _memory(many, sessions, sessions[:turns])
    idle = (with_many["started"] - with_one["started"]) / count
    after_turns = (with_many["active"] - with_many["started"]) / turns
    watched = (with_many["watched"] - with_many["active"]) / turns
    what = f"{count:,} sessions"
    return [
        Figure(f"{what}: first page, p50", percentile(values(pages, "page"), 0.5), "ms", budgets.PAGE),
        Figure(f"{what}: bytes of each in a host that has started", round(idle), "bytes", budgets.MEMORY_IDLE),
        Figure(f"{what}: bytes of each once it has run a turn", round(after_turns), "bytes", budgets.MEMORY_LOADED),
        Figure(f"{what}: bytes of each that somebody watches", round(watched), "bytes", budgets.MEMORY_LOADED),
        Figure(f"{what}: growth of the process by a turn in each of {turns:,}", grown / 1024, "KiB"),
    ]
