"""What has happened in a simulated host, line by line, and what was wrong with it."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.simulation.host.chance import brief

TOLD_CHARS_MAX: Final = 300


class Chronicle(logging.Handler):
    """The story, written by whoever does something; also the place where a host's log ends."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self.faults: list[BaseException] = []
        self.excused: tuple[type[BaseException], ...] = ()
        """What a host may log as the cause of a fault: those causes are of our making."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop of those who live; whoever ends with a process that has died says nothing more."""
        self.now_s = 0.0
        self._made: Counter[str] = Counter()

    def tell(self, text: str) -> None:
        """Write what happens now."""
        if self.loop is not None:
            self.now_s = self.loop.time()
            self.lines.append(f"{self.now_s:9.3f} {brief(text)}"[:TOLD_CHARS_MAX])

    def tell_of(self, text: str, about: Mapping[str, Any]) -> None:
        """The same, with values as JSON."""
        self.tell(f"{text} {json.dumps(about)}")

    def wrong(self, fault: BaseException) -> None:
        """Note a fault, and end the life here."""
        if self.loop is not None:
            self.tell(f"WRONG: {type(fault).__name__}: {fault}")
            self.faults.append(fault)
            self.loop.stop()

    def fresh(self, kind: str) -> str:
        """Words that nobody has used yet."""
        self._made[kind] += 1
        return f"{kind}-{self._made[kind]}"

    def emit(self, record: logging.LogRecord) -> None:
        """A host logs an error: that is a fault of its own, unless its cause is excused."""
        cause = record.exc_info[1] if record.exc_info else None
        if cause is None or not isinstance(cause, self.excused):
            self.wrong(cause or AssertionError(record.getMessage()))

    def complained(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """The handler of what a loop finds wrong by itself."""
        del loop
        self.wrong(context.get("exception") or AssertionError(context["message"]))
