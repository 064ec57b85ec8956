"""How long does a person wait for `coterie --help`, and for a host that serves?"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, values
from coterie.bootstrap.files import HOST_FILE

POLL_S: Final = 0.002
BOUND_S: Final = 30.0
_BARE: Final = "bare Python"
_IMPORT: Final = "import coterie.__main__"
_HELP: Final = "coterie --help"
_SERVING: Final = "process start to serving"


async def started(*arguments: str) -> asyncio.subprocess.Process:
    """Start a program in the interpreter of this one."""
    quiet = asyncio.subprocess.DEVNULL
    # Without a terminal's width the help is laid out for 80 columns.
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=quiet, stderr=quiet)


def _ended(*arguments: str) -> Block:
    """A block of one run of a program, from its start to its end."""

    async def block() -> list[Lap]:
        start = time.perf_counter()
        program = await started(*arguments)
        status = await program.wait()
        assert status == 0, f"{' '.join(arguments)} ended with {status}"
        return [{"s": time.perf_counter() - start}]

    return block


def _serving(parent: Path) -> Block:
    """A block of one start of a host on a new data directory; its file is written when it answers."""
    number = 0

    async def block() -> list[Lap]:
        nonlocal number
        number += 1
        data = parent / str(number)
        start = time.perf_counter()
        host = await started("-m", "coterie", "up", "--data", str(data), "--port", "0", "--no-open")
        try:
            async with asyncio.timeout(BOUND_S):
                while not (data / HOST_FILE).exists():
                    assert host.returncode is None, f"the host ended with {host.returncode}"
                    await asyncio.sleep(POLL_S)
            took = time.perf_counter() - start
        finally:
            if host.returncode is None:
                os.kill(host.pid, signal.SIGTERM)
                await host.wait()
        return [{"s": took}]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure whole processes, the interpreter's own start beside them."""
    blocks = {
        _BARE: _ended("-c", "pass"),
        _IMPORT: _ended("-c", "import coterie.__main__"),
        _HELP: _ended("-m", "coterie", "--help"),
        _SERVING: _serving(bench.place("startup")),
    }
    found = await alternate(blocks, bench.size(9, 1))
    kept = {_HELP: budgets.HELP, _SERVING: budgets.SERVING}
    return [
        Figure(f"{name}: p50", percentile(values(laps, "s"), 0.5), "s", kept.get(name)) for name, laps in found.items()
    ]
