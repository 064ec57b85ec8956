"""How long does a host take that starts with 100,000 queued inputs, until the first of them runs?"""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.http_client import connected
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, since_ms, values
from benchmarks.old_ledger import queued
from benchmarks.startup import BOUND_S, POLL_S, started
from coterie.app import recover
from coterie.app.delete_session import purge_deleted
from coterie.bootstrap.files import DATABASE, HOST_FILE, TOKEN_FILE
from coterie.bootstrap.system import RandomIds, SystemClock
from coterie.core.ids import HostId, SessionId
from coterie.core.limits import Limits
from coterie.core.permission import Mode
from coterie.operations.lifecycle import PURGE_BATCH
from coterie.ports.rows import HostFacts
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.storage.sqlite.store import SqliteStore

_WHOLE: Final = "whole process"
_STEPS: Final = "steps"
_NONE: Final = "no inputs"


async def run(bench: Bench) -> list[Figure]:
    """Measure whole processes on copies of one ledger, beside one that has nothing to do; then the steps of a start."""
    inputs = bench.size(100_000, 800)
    full, none = bench.place("full"), bench.place("none")
    target, only = await queued(full, inputs), await queued(none, 8)
    blocks = {
        _NONE: _started(none, only),
        _WHOLE: _started(full, target),
        _STEPS: _recovered(full),
    }
    found = await alternate(blocks, bench.size(7, 1))
    what = f"start with {inputs:,} queued inputs"
    marks = ("serving", "released", "begun")
    figures = [
        Figure(f"{what}: process start to {mark}, p50", percentile(values(found[_WHOLE], mark), 0.5), "s", budget)
        for mark, budget in zip(marks, (None, None, budgets.FULL_START), strict=True)
    ]
    figures.append(
        Figure("start with 8 queued inputs: process start to begun, p50", _median(found[_NONE], "begun"), "s")
    )
    figures += [Figure(f"{what}: {step}, p50", _median(found[_STEPS], step), "s") for step in found[_STEPS][0][0]]
    return figures


def _median(blocks: list[list[Lap]], mark: str) -> float:
    return percentile(values(blocks, mark), 0.5)


def _copied(folder: Path) -> Path:
    """A data directory with the ledger of *folder*, which a start changes."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700)
    shutil.copy(folder / DATABASE, data / DATABASE)
    with (data / DATABASE).open("rb") as file:
        os.fsync(file.fileno())
    return data


def _started(folder: Path, session_id: SessionId) -> Block:
    """A block of one host process: until it answers, until a session is released, until that runs its first input."""

    async def block() -> list[Lap]:
        data = await asyncio.to_thread(_copied, folder)
        start = time.perf_counter()
        host = await started("-m", "coterie", "up", "--data", str(data), "--port", "0", "--no-open")
        try:
            async with asyncio.timeout(BOUND_S):
                while not (data / HOST_FILE).exists():
                    assert host.returncode is None, f"the host ended with {host.returncode}"
                    await asyncio.sleep(POLL_S)
                found = {"serving": time.perf_counter() - start}
                port = int(json.loads((data / HOST_FILE).read_text())["url"].rsplit(":", 1)[1].strip("/"))
                async with connected(port, (data / TOKEN_FILE).read_text()) as client:
                    await client.call("session.release", {"sessionId": session_id})
                    found["released"] = time.perf_counter() - start
                    while not await _has_begun(client.call, session_id):
                        pass
                    found["begun"] = time.perf_counter() - start
        finally:
            if host.returncode is None:
                os.kill(host.pid, signal.SIGTERM)
                await host.wait()
        return [found]

    return block


async def _has_begun(call: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]], session_id: SessionId) -> bool:
    """Whether the session has a transcript: a turn writes what it is about when it begins."""
    return bool((await call("session.items", {"sessionId": session_id, "limit": 1}))["items"])


def _recovered(folder: Path) -> Block:
    """A block of what a start does with the ledger, step by step, in this process."""

    async def block() -> list[Lap]:
        data, ids = await asyncio.to_thread(_copied, folder), RandomIds()
        found: Lap = {}

        async def timed(step: str, act: Awaitable[Any]) -> Any:
            start = time.perf_counter_ns()
            result = await act
            found[step] = since_ms(start) / 1000
            return result

        facts = HostFacts(HostId(ids.new("hst")), 0, Mode.ASK, Limits())
        start = time.perf_counter_ns()
        store = SqliteStore(data / DATABASE, facts, SystemClock(), ids, feed=MemoryFeed())
        found["of which open the file"] = since_ms(start) / 1000
        try:
            await timed("of which begin the epoch", store.run(recover.begin_epoch, facts.id))
            await timed("of which hold queues", store.run(recover.hold_queues, None))
            await timed("of which find what ran", store.read(recover.turns_left_running, None))
            await timed("of which expire", store.run(recover.expire, None))
            await timed("of which count what is held", store.read(recover.held_sessions, None))
            await timed("of which purge", store.run(purge_deleted, PURGE_BATCH))
        finally:
            await store.close()
        return [found]

    return block
