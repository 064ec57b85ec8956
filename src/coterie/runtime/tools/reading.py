"""The tool `read`."""

import asyncio
import os
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final

from pydantic import Field

from coterie.core.permission import Risk
from coterie.core.text import mend
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, Picture, ToolOutput
from coterie.runtime.tools.arguments import Arguments, Text, UnfitError, schema_of
from coterie.runtime.tools.ground import Ground, looks_binary, open_file
from coterie.runtime.tools.native import OUTPUT_CHARS_MAX, NativeTool

_LINES_DEFAULT: Final = 2_000
_PIECE_BYTES: Final = 65_536
IMAGE_BYTES_MAX: Final = 3_750_000
"""What the strictest vendor takes, for whom it becomes 5 MB of text."""
_MAGIC: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_MAGIC_BYTES: Final = 12
_DESCRIPTION: Final = (
    "Read a text file of the project. The first line of the answer names the lines shown; the rest is the text itself. "
    "A PNG, JPEG, GIF or WebP file is shown as an image, where the model takes images."
)


class ReadArguments(Arguments):
    """Which lines of which file."""

    path: Text = Field(min_length=1, description="The file, relative to the project folder.")
    offset: int | None = Field(default=None, ge=1, description="First line to show, counted from 1. Default 1.")
    limit: int | None = Field(default=None, ge=1, description=f"How many lines at most. Default {_LINES_DEFAULT}.")


@dataclass(slots=True)
class _Lines:
    """Lines taken from a file."""

    text: bytes
    count: int
    goes_on: bool
    is_cut: bool
    """The last line is longer than what one answer holds."""


def read_tool(closed: tuple[Path, ...]) -> NativeTool[ReadArguments]:
    """The tool `read`.

    Args:
        closed: Folders closed to it.
    """
    spec = ToolSpec("read", _DESCRIPTION, schema_of(ReadArguments))
    return NativeTool(spec, ReadArguments, Risk.LOW, closed=closed, about_=_about, act=_read)


def _about(ground: Ground, arguments: ReadArguments) -> About:
    return About(ground.name(ground.locate(arguments.path)))


async def _read(ground: Ground, arguments: ReadArguments) -> ToolOutput:
    return await asyncio.to_thread(_read_now, ground, arguments)


def _read_now(ground: Ground, arguments: ReadArguments) -> ToolOutput:
    path = ground.locate(arguments.path)
    name, first = ground.name(path), arguments.offset or 1
    with open_file(path, name) as file:
        if looks_binary(file):
            return _picture(file, name)
        passed = _pass_lines(file, first - 1)
        lines = _take_lines(file, arguments.limit or _LINES_DEFAULT)
    if lines.count == 0 and first > 1:
        raise UnfitError(f"{name} has {passed} lines; offset {first} is behind its end.")
    if lines.count == 0:
        return ToolOutput(f"{name} is empty.")
    last = first + lines.count - 1
    head = f"{name}, lines {first}-{last}{'; the file goes on' if lines.goes_on else ', the end of the file'}"
    if lines.is_cut:
        head += f"; line {last} is cut"
    if lines.goes_on:
        head += f"; read on with offset {last + 1}"
    return ToolOutput(f"{head}\n{mend(lines.text.decode('utf-8', 'replace'))}")


def _picture(file: BufferedReader, name: str) -> ToolOutput:
    """The file as a picture.

    Raises:
        UnfitError: It is none, or too large.
    """
    media_type = _media_type(file.peek(_MAGIC_BYTES)[:_MAGIC_BYTES])
    size = file.seek(0, os.SEEK_END)
    if media_type is None:
        raise UnfitError(f"{name} is a binary file of {size} bytes, which read does not show.")
    if size > IMAGE_BYTES_MAX:
        text = f"{name} is an image of {size} bytes; read takes images of at most {IMAGE_BYTES_MAX}. Make it smaller."
        raise UnfitError(text)
    file.seek(0)
    data = file.read(IMAGE_BYTES_MAX)
    return ToolOutput(f"{name}, an image ({media_type}, {len(data)} bytes)", picture=Picture(data, media_type))


def _media_type(start: bytes) -> str | None:
    """By what stands in the file, for a name is only a name."""
    if start[:4] == b"RIFF" and start[8:] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def _pass_lines(file: BufferedReader, lines: int) -> int:
    """Skip up to *lines* lines, of any length, and return how many there were."""
    passed = 0
    while passed < lines:
        piece = file.readline(_PIECE_BYTES)
        if not piece:
            break
        if piece.endswith(b"\n") or not file.peek(1):
            passed += 1
    return passed


def _take_lines(file: BufferedReader, lines_max: int) -> _Lines:
    """Take up to *lines_max* lines and as many bytes as characters fit into an output."""
    taken = bytearray()
    count = 0
    while count < lines_max and len(taken) < OUTPUT_CHARS_MAX:
        piece = file.readline(OUTPUT_CHARS_MAX - len(taken))
        if not piece:
            return _Lines(bytes(taken), count, goes_on=False, is_cut=False)
        taken += piece
        count += 1
    goes_on = bool(file.read(1))
    return _Lines(bytes(taken), count, goes_on=goes_on, is_cut=goes_on and not taken.endswith(b"\n"))
