"""A fault that is put into the product on purpose, as a text file holds it: a header for people, and a diff.

Where a block of a diff belongs is found by its text, which must be there exactly once; its line numbers are for
other programs. So a fault outlives whatever happens around it, and is stale as soon as the code that it breaks changes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[1]
DESIGN: Final = "design"
"""Begins what a fault breaks that is no promise by itself."""

_FIELD: Final = re.compile(r"(Breaks|Caught-by): (.+)")
_FILE: Final = re.compile(r"--- a/(?P<path>src/coterie/\S+)\n\+\+\+ b/(?P=path)\n")
_BLOCK: Final = re.compile(r"^@@ .*\n", re.MULTILINE)


class FaultError(Exception):
    """A fault is not written as it should be, or the code that it breaks has changed."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of one file, and what they become."""

    path: str
    """From the root of the project."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break the product, and who must notice."""

    name: str
    says: str
    """What is broken, in a sentence."""
    breaks: tuple[str, ...]
    """Ids of promises, or `design: …`."""
    caught_by: tuple[str, ...]
    """The tests that must fail, as pytest names them."""
    blocks: tuple[Block, ...]


def read(name: str, text: str) -> Fault:
    """The fault that a file's *text* describes.

    Raises:
        FaultError: The text is not of the form.
    """
    begin = text.find("\n--- ") + 1
    if not begin:
        raise FaultError(f"{name}: there is no diff")
    says, _, fields = text[:begin].strip().partition("\n\n")
    found = [_FIELD.fullmatch(line) for line in fields.splitlines()]
    if not says or not all(found):
        raise FaultError(f"{name}: the header is a sentence, an empty line, one `Breaks:` and a `Caught-by:` a test")
    values = [(match[1], match[2]) for match in found if match]
    breaks = [value for field, value in values if field == "Breaks"]
    tests = [value for field, value in values if field == "Caught-by"]
    if len(breaks) != 1 or not tests:
        raise FaultError(f"{name}: one `Breaks:` and at least one `Caught-by:` are needed")
    broken = (breaks[0],) if breaks[0].startswith(DESIGN) else tuple(breaks[0].split(", "))
    return Fault(name, " ".join(says.split()), broken, tuple(tests), tuple(_blocks(name, text[begin:])))


def _blocks(name: str, diff: str) -> Iterator[Block]:
    files = list(_FILE.finditer(diff))
    if not files or files[0].start():
        raise FaultError(f"{name}: a diff is of files below src/coterie, with --- a/… and +++ b/… before each")
    ends = [*(file.start() for file in files[1:]), len(diff)]
    for file, end in zip(files, ends, strict=True):
        head, *bodies = _BLOCK.split(diff[file.end() : end])
        if head or not bodies:
            raise FaultError(f"{name}: @@ begins each block of a diff")
        for body in bodies:
            yield _block(name, file["path"], body.splitlines(keepends=True))


def _block(name: str, path: str, lines: list[str]) -> Block:
    if any(line[0] not in " +-" for line in lines):
        raise FaultError(f"{name}: a line of a diff begins with a blank, + or -")
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    if not before or before == after:
        raise FaultError(f"{name}: a block changes something, and has a line that tells where")
    return Block(path, before, after)


def broken(fault: Fault, tree: Path) -> Mapping[str, str]:
    """The files of *tree* that *fault* changes, by their paths, as they are with it.

    Raises:
        FaultError: It does not fit the code any more.
    """
    texts: dict[str, str] = {}
    for block in fault.blocks:
        path = tree / block.path
        if not path.is_file():
            raise FaultError(f"{fault.name}: {block.path} is not there any more")
        lines = (texts.get(block.path) or path.read_text("utf-8")).splitlines(keepends=True)
        before = block.before.splitlines(keepends=True)
        places = [at for at in range(len(lines)) if lines[at : at + len(before)] == before]
        if len(places) != 1:
            raise FaultError(f"{fault.name}: these lines are {len(places)} times in {block.path}:\n{block.before}")
        lines[places[0] : places[0] + len(before)] = [block.after]
        texts[block.path] = "".join(lines)
    return texts


def every(folder: Path = FOLDER) -> tuple[Fault, ...]:
    """All faults of a folder, by their names.

    Raises:
        FaultError: One of them is not of the form.
    """
    return tuple(read(file.stem, file.read_text("utf-8")) for file in sorted(folder.glob("*.patch")))
