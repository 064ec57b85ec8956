"""What a tool call prints, shown live: a few pieces a second, and so much a call.

A program may print faster than anybody reads; each piece costs every door that watches, so they are put together.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from coterie.core.text import mend

PIECE_S: Final = 0.25
"""How long at least from one piece to the next."""
CHARS_MAX: Final = 30_000
"""How much of one call is shown live."""
_MORE: Final = "\n… more is not shown live …\n"


@dataclass(slots=True)
class _Pieces:
    publish: Callable[[str], None]
    room: int = CHARS_MAX
    waiting: list[str] = field(default_factory=list[str])
    timer: asyncio.TimerHandle | None = None

    def show(self, text: str) -> None:
        """Publish *text* at once, or with what comes soon."""
        if not text or self.room <= 0:
            return
        self.waiting.append(text[: self.room] + (_MORE if len(text) > self.room else ""))
        self.room -= len(text)
        if self.timer is None:
            self.flush()

    def flush(self) -> None:
        """Publish what has come since the last piece."""
        self.timer = None
        if self.waiting:
            self.publish(mend("".join(self.waiting)))
            self.waiting.clear()
            self.timer = asyncio.get_running_loop().call_later(PIECE_S, self.flush)


@contextmanager
def live_text(publish: Callable[[str], None]) -> Generator[Callable[[str], None]]:
    """What shows text by *publish* inside the block; behind it nothing more comes."""
    pieces = _Pieces(publish)
    try:
        yield pieces.show
    finally:
        pieces.flush()
        if pieces.timer is not None:
            pieces.timer.cancel()
        pieces.room = 0
