"""Replies as Markdown, block by block as they are written; imported by `chat` alone, for it takes its time."""

import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment

from coterie.interfaces.cli.display import plain

_FENCES = ("```", "~~~")


class Blocks:
    """Shows each block of a reply as soon as it is whole (see `conversation.Paper`)."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False, emoji=False)
        self._text = ""

    def write(self, text: str) -> None:
        """Take more of the reply."""
        self._text += text
        end = _whole(self._text)
        block, self._text = self._text[:end], self._text[end:]
        self._show(block)

    def end(self) -> None:
        """Show what is left."""
        block, self._text = self._text, ""
        self._show(block)

    def _show(self, block: str) -> None:
        if block.strip():
            self._console.print(_Plain(plain(block)))
            self._console.print()


class _Plain:
    """Markdown whose references to characters cannot make what `plain` takes away; links show where they lead."""

    def __init__(self, text: str) -> None:
        self._markdown = Markdown(text, hyperlinks=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._markdown, options):
            yield Segment(plain(segment.text), segment.style)


def _whole(text: str) -> int:
    """Where the last whole block of *text* ends: behind the last empty line that no fence holds."""
    end, at, fence = 0, 0, ""
    for line in _lines(text):
        at += len(line)
        mark = line.strip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
        elif not mark:
            end = at
    return end


def _lines(text: str) -> Iterator[str]:
    """The lines that have ended."""
    return (line for line in text.splitlines(keepends=True) if line.endswith("\n"))
