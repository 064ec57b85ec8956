"""Run one program in a process group of its own; nothing of the group outlives the call.

The output goes through a pipe of ours, not of `asyncio.subprocess`: with one of its own, `Process.wait` waits on some
Python versions until every process that inherited the pipe is gone (https://github.com/python/cpython/issues/119710).
"""

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from coterie.core.text import mend
from coterie.runtime.tools.leftover import Mark
from coterie.runtime.tools.native import see_through

OUTPUT_BYTES_MAX: Final = 16_000_000
"""How much of one output is held in memory; the caller keeps it and shows head and tail."""
_DRAIN_S: Final = 1.0
_PASSED_ON: Final = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"})


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and how."""

    line: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    """All of it: nothing is inherited."""
    stdin: IO[bytes] | None = None
    merge_stderr: bool = True
    records: Path | None = None
    """Where its group is on record while it runs."""
    show: Callable[[str], None] | None = None
    """Told what it prints as it comes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended."""

    status: int | None
    """Exit status, negative for a signal; None when the time was up."""
    output: str


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of *environment* that a program may see. Keys and tokens live in variables, so only known names pass."""
    return {name: value for name, value in environment.items() if name in _PASSED_ON or name.startswith("LC_")}


async def run_group(program: Program, timeout_s: float) -> Ended:
    """Run *program* until it ends, the time is up, or the caller is cancelled; then its whole group is killed."""
    async with _sink(program.show) as (sink, entry):
        # Not to be cancelled half-way: a process that was started must be known, or nobody would stop it.
        started = list[asyncio.subprocess.Process]()
        with contextlib.ExitStack() as records:
            try:
                await see_through(_start(program, entry, started, records))
                status = await _await_exit(started[0], timeout_s)
            finally:
                os.close(entry)
                for process in started:
                    await _kill_group(process)
        # A process that left the group may hold the pipe for ever.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await sink.closed.wait()
        return Ended(status, await asyncio.to_thread(sink.text))


async def _start(
    program: Program, entry: int, started: list[asyncio.subprocess.Process], records: contextlib.ExitStack
) -> None:
    mark = Mark.fresh(program.records)
    process = await asyncio.create_subprocess_exec(
        *program.line,
        cwd=program.folder,
        env=mark.on(program.environment),
        stdin=program.stdin or asyncio.subprocess.DEVNULL,
        stdout=entry,
        stderr=asyncio.subprocess.STDOUT if program.merge_stderr else asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    started.append(process)
    records.enter_context(mark.recorded(process.pid))


async def _await_exit(process: asyncio.subprocess.Process, timeout_s: float) -> int | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait()
    except TimeoutError:
        return None


async def _kill_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


@dataclass(slots=True)
class _Sink(asyncio.Protocol):
    """Keeps the start and the end of what arrives."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    left_out: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    show: Callable[[str], None] | None = None
    live: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    """Knows of the character that has only come in part."""

    def data_received(self, data: bytes) -> None:
        """Keep what has room."""
        if self.show is not None:
            self.show(self.live.decode(data))
        room = _HEAD_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > 2 * _TAIL_BYTES:
            self._trim()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
        """Nobody holds the other end any more."""
        self.closed.set()

    def text(self) -> str:
        """What arrived, with a line in place of what had no room."""
        self._trim()
        if not self.left_out:
            return mend(bytes(self.head + self.tail).decode("utf-8", "replace"))
        head, tail = (part.decode("utf-8", "replace") for part in (self.head, self.tail))
        return mend(f"{head}\n… {self.left_out} bytes are left out …\n{tail}")

    def _trim(self) -> None:
        excess = len(self.tail) - _TAIL_BYTES
        if excess > 0:
            self.left_out += excess
            del self.tail[:excess]


_TAIL_BYTES: Final = OUTPUT_BYTES_MAX // 3
_HEAD_BYTES: Final = OUTPUT_BYTES_MAX - _TAIL_BYTES


@contextlib.asynccontextmanager
async def _sink(show: Callable[[str], None] | None) -> AsyncGenerator[tuple[_Sink, int], None]:
    """A sink, and the descriptor that leads into it, which the user of this closes."""
    exit_, entry = os.pipe()
    loop = asyncio.get_running_loop()
    try:
        transport, sink = await loop.connect_read_pipe(lambda: _Sink(show=show), os.fdopen(exit_, "rb", 0))
    except BaseException:
        os.close(entry)
        raise
    try:
        yield sink, entry
    finally:
        transport.close()
