"""The tools `write` and `edit`. Files are replaced as a whole, so that a reader never sees half of a text."""

import asyncio
import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import unified_diff
from io import BufferedReader
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from pydantic import Field

from coterie.core.permission import Risk
from coterie.core.text import head_and_tail, mend
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import DIFF_CHARS_MAX, About, ToolOutput
from coterie.runtime.tools.arguments import Arguments, Text, UnfitError, schema_of
from coterie.runtime.tools.ground import Ground, looks_binary, named, open_file
from coterie.runtime.tools.native import NativeTool, see_through

_GIT: Final = ".git"
_EDITED_BYTES_MAX: Final = 10_000_000
_PLACES_SHOWN_MAX: Final = 20
_COMPARED_CHARS_MAX: Final = 400_000
_COMPARED_LINES_MAX: Final = 20_000
_NEW_FILE_MODE: Final = 0o666

_WRITE_DESCRIPTION: Final = (
    "Write a text file of the project: make it, with the folders on the way, or replace all that it holds."
)
_EDIT_DESCRIPTION: Final = (
    "Replace a piece of text in a file of the project. The old text must match exactly, white space included, and "
    "occur once, unless 'all' is true."
)

_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class WriteArguments(Arguments):
    """Which file, and its whole text."""

    path: Text = Field(min_length=1, description="The file, relative to the project folder.")
    content: Text = Field(description="The whole text of the file.")


class EditArguments(Arguments):
    """Which piece of which file, and what comes in its place."""

    path: Text = Field(min_length=1, description="The file, relative to the project folder.")
    old: Text = Field(min_length=1, description="The text to replace, exactly as it is in the file.")
    new: Text = Field(description="The text in its place.")
    all: bool = Field(default=False, description="Replace every occurrence instead of the only one.")


@dataclass(slots=True)
class FileTurns:
    """One writer at a time for each file; tools that share it wait for each other."""

    locks: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary[Path, asyncio.Lock])

    async def take(self, path: Path, act: Callable[[], ToolOutput]) -> ToolOutput:
        """Run *act* on *path*, links resolved, when nobody else is at it."""
        lock = self.locks.setdefault(path, asyncio.Lock())
        async with lock:
            return await see_through(asyncio.to_thread(act))


@dataclass(frozen=True, slots=True)
class _Writing:
    turns: FileTurns

    async def write(self, ground: Ground, arguments: WriteArguments) -> ToolOutput:
        path = await asyncio.to_thread(_located, ground, arguments.path)
        return await self.turns.take(path, lambda: _write(ground, path, arguments))

    async def edit(self, ground: Ground, arguments: EditArguments) -> ToolOutput:
        path = await asyncio.to_thread(_located, ground, arguments.path)
        return await self.turns.take(path, lambda: _edit(ground, path, arguments))


def write_tool(closed: tuple[Path, ...], turns: FileTurns) -> NativeTool[WriteArguments]:
    """The tool `write`.

    Args:
        closed: Folders closed to it.
        turns: Shared with `edit`.
    """
    spec = ToolSpec("write", _WRITE_DESCRIPTION, schema_of(WriteArguments))
    return NativeTool(spec, WriteArguments, Risk.EDIT, closed=closed, about_=_about_write, act=_Writing(turns).write)


def edit_tool(closed: tuple[Path, ...], turns: FileTurns) -> NativeTool[EditArguments]:
    """The tool `edit`.

    Args:
        closed: Folders closed to it.
        turns: Shared with `write`.
    """
    spec = ToolSpec("edit", _EDIT_DESCRIPTION, schema_of(EditArguments))
    return NativeTool(spec, EditArguments, Risk.EDIT, closed=closed, about_=_about_edit, act=_Writing(turns).edit)


def _located(ground: Ground, text: str) -> Path:
    """The path that *text* means, unless it is git's own: what is written there runs when somebody uses git."""
    path = ground.locate(text)
    if any(part.casefold() == _GIT for part in path.relative_to(ground.root).parts):
        raise UnfitError(f"{named(text)} belongs to git, which is not edited as files; use git itself, by bash.")
    return path


def _about_write(ground: Ground, arguments: WriteArguments) -> About:
    path, content = _located(ground, arguments.path), arguments.content
    name = ground.name(path)
    if _mode_of(path, name) is None:
        return About(name, _difference(name, "", content))
    with open_file(path, name) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return About(name, _replacement(file, name, content), found)


def _about_edit(ground: Ground, arguments: EditArguments) -> About:
    path = _located(ground, arguments.path)
    change = _changed(ground, path, arguments)
    found = hashlib.sha256(change.old.encode("utf-8", "surrogateescape")).hexdigest()
    return About(change.name, _difference(change.name, change.old, change.new), found)


def _replacement(file: BufferedReader, name: str, content: str) -> str:
    """What a person is shown where *content* takes the place of all that the file holds."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if looks_binary(file):
        return _becomes(f"{name} is a binary file of {size} bytes", content)
    if size > _EDITED_BYTES_MAX:
        return _becomes(f"{name} has {size} bytes, too many to compare", content)
    return _difference(name, file.read().decode("utf-8", "replace"), content)


def _difference(name: str, old: str, new: str) -> str:
    """What a person is shown of a change; of a very large file only what it becomes, for comparing takes too long."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(old) + len(new) > _COMPARED_CHARS_MAX or len(before) + len(after) > _COMPARED_LINES_MAX:
        return _becomes(f"{name} is too long to compare", new)
    lines = unified_diff(before, after, f"a/{name}", f"b/{name}")
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return mend(head_and_tail(text, DIFF_CHARS_MAX)[0])


def _becomes(reason: str, new: str) -> str:
    return mend(head_and_tail(f"{reason}. It becomes:\n{new}", DIFF_CHARS_MAX)[0])


def _write(ground: Ground, path: Path, arguments: WriteArguments) -> ToolOutput:
    content, name = arguments.content.encode(), ground.name(path)
    existed = path.exists()
    diff = _replaced(path, name, arguments.content) if existed else _difference(name, "", arguments.content)
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, content, name)
    return ToolOutput(f"{'Replaced' if existed else 'Made'} {name}, {len(content)} bytes.", diff=diff)


def _replaced(path: Path, name: str, content: str) -> str:
    """As `_replacement`; what may be written but not read is not compared."""
    try:
        with open_file(path, name) as file:
            return _replacement(file, name, content)
    except PermissionError:
        return ""


@dataclass(frozen=True, slots=True)
class _Change:
    name: str
    old: str
    new: str
    count: int


def _changed(ground: Ground, path: Path, arguments: EditArguments) -> _Change:
    """What an edit makes of the file as it is now.

    Raises:
        UnfitError: It cannot be done.
    """
    if arguments.old == arguments.new:
        raise UnfitError("old and new are the same text, so there is nothing to change.")
    name = ground.name(path)
    with open_file(path, name) as file:
        if looks_binary(file):
            raise UnfitError(f"{name} is a binary file, which edit does not change.")
        raw = file.read(_EDITED_BYTES_MAX + 1)
    if len(raw) > _EDITED_BYTES_MAX:
        raise UnfitError(f"{name} is larger than the {_EDITED_BYTES_MAX} bytes that edit takes.")
    # Bytes that are no UTF-8 come back as they were.
    text = raw.decode("utf-8", "surrogateescape")
    count = _count(text, arguments, name)
    if len(text) + count * (len(arguments.new) - len(arguments.old)) > _EDITED_BYTES_MAX:
        raise UnfitError(f"{name} would become larger than the {_EDITED_BYTES_MAX} bytes that edit takes.")
    return _Change(name, text, text.replace(arguments.old, arguments.new), count)


def _edit(ground: Ground, path: Path, arguments: EditArguments) -> ToolOutput:
    change = _changed(ground, path, arguments)
    _replace(path, change.new.encode("utf-8", "surrogateescape"), change.name)
    count = f"{change.count} {'occurrence' if change.count == 1 else 'occurrences'}"
    return ToolOutput(f"Replaced {count} in {change.name}.", diff=_difference(change.name, change.old, change.new))


def _count(text: str, arguments: EditArguments, name: str) -> int:
    """How often the old text is replaced.

    Raises:
        UnfitError: It is not there, or not unique although it has to be.
    """
    count = text.count(arguments.old)
    if count == 0:
        hint = "; the lines of this file end in CR LF" if "\r\n" in text and "\n" in arguments.old else ""
        raise UnfitError(f"The old text does not occur in {name}. It must match exactly, white space included{hint}.")
    places = _places(text, arguments.old)
    if arguments.all or len(places) == 1:
        return count
    lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
    more = ", …" if count > len(places) else ""
    raise UnfitError(
        f"The old text occurs {max(count, len(places))} times in {name}, at lines {lines}{more}. Give more of its "
        "surroundings, so that it is unique, or set all to true."
    )


def _places(text: str, old: str) -> list[int]:
    """Where *old* starts, occurrences that overlap included: which of them is meant is just as unclear."""
    places = list[int]()
    place = text.find(old)
    while place >= 0 and len(places) < _PLACES_SHOWN_MAX:
        places.append(place)
        place = text.find(old, place + 1)
    return places


def _replace(path: Path, content: bytes, name: str) -> None:
    """Put *content* in the place of *path*, with the mode that the file had."""
    mode = _mode_of(path, name)
    draft = path.parent / f".{secrets.token_hex(8)}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _mode_of(path: Path, name: str) -> int | None:
    """The mode of the file at *path*, or None where there is none yet.

    Raises:
        UnfitError: Something is there that must not be replaced.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise UnfitError(f"{name} is {'a folder' if stat.S_ISDIR(status.st_mode) else 'not a regular file'}.")
    # By its mode too: root may write everything, but the person who set the mode did not mean it to be changed.
    if not (os.access(path, os.W_OK) and status.st_mode & _WRITABLE):
        raise UnfitError(f"{name} is read-only.")
    return stat.S_IMODE(status.st_mode)
