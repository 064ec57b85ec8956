"""Replies as Markdown, block by block as they are written; imported by `chat` alone, for it takes its time."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.segment import Segment, SegmentLines
from rich.syntax import Syntax

from coterie.interfaces.cli.display import plain

_FENCE: Final = re.compile(r"(?P<before>(?:[\s>]|[-*+] |\d{1,9}[.)] )*)(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_ENTRY: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_PIECE_LINES: Final = 20
"""Lines of code that are waited for before they are shown."""


@dataclass(frozen=True, slots=True)
class _Fence:
    """What code stands in that has not ended."""

    opening: str
    mark: str
    before: str
    """What stands before the mark: nothing, or the indentation of a list."""

    def ends_with(self, line: str) -> bool:
        """Whether *line* closes it: one with as many signs and nothing else, so that Markdown can stand in Markdown."""
        said = line.strip()
        return said.startswith(self.mark) and not said.strip(self.mark[0])


class Blocks:
    """Shows each block of a reply as soon as it is whole, and long code in pieces (see `conversation.Paper`)."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False, emoji=False)
        self._block = list[str]()
        """Whole lines that were not shown yet."""
        self._line = ""
        self._fence: _Fence | None = None

    def write(self, text: str) -> None:
        """Take more of the reply."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._take(line)
        self._show_before(self._line)

    def end(self) -> None:
        """Show what is left."""
        block = [*self._block, self._line]
        self._block, self._line, self._fence = [], "", None
        self._show(block)

    def _take(self, line: str) -> None:
        self._show_before(line)
        self._block.append(line)
        fence, found = self._fence, _FENCE.match(line)
        if fence is not None:
            if fence.ends_with(line):
                self._fence = None
            elif not fence.before and len(self._block) > _PIECE_LINES:
                self._show([*self._block[:-1], fence.mark], goes_on=True)
                self._block = [fence.opening, line]
        elif found is not None:
            self._fence = _Fence(line, found["mark"], found["before"])
        elif not line.strip() and not any(map(_ENTRY.match, self._block)):
            self._show_block()

    def _show_before(self, line: str) -> None:
        """Show the list that ends where *line* begins: behind an empty line it may still go on, indented."""
        if self._fence is None and self._block and not self._block[-1].strip() and line[:1].strip():
            self._show_block()

    def _show_block(self) -> None:
        block, self._block = self._block, []
        self._show(block)

    def _show(self, block: Sequence[str], *, goes_on: bool = False) -> None:
        text = plain("\n".join(block))
        if not text.strip():
            return
        # References to characters must not make what `plain` takes away; links show where they lead.
        lines = self._console.render_lines(_Markdown(text, hyperlinks=False), pad=False)
        shown = [_trimmed([Segment(plain(one.text), one.style) for one in line]) for line in lines]
        while shown and not shown[-1]:
            shown.pop()
        while shown and not shown[0]:
            shown.pop(0)
        self._console.print(SegmentLines(shown, new_lines=True), end="")
        if not goes_on:
            self._console.print()


class _Code(CodeBlock):
    """Code without a frame, so that pieces join and what is copied is what was written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(str(self.text).removesuffix("\n"), self.lexer_name, theme=self.theme, word_wrap=True)


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
    }


def _trimmed(line: list[Segment]) -> list[Segment]:
    """Return *line* without the blanks that pad it: a window that is made narrower would break them into lines."""
    while line and not (line[-1].style is not None and line[-1].style.bgcolor):
        *line, last = line
        if text := last.text.rstrip():
            return [*line, Segment(text, last.style)]
    return line
