"""A program of its own: close folders to itself for good, then become another program.

Run as a text, with the standard library alone; the folders are a JSON list of path, device and inode; a JSON list of
the folders in them that stay open, and the program follow. The kernel's Landlock only knows what is allowed, so all
that stands beside the line from `/` to a closed folder is allowed, as it is there at the start. It follows that a
program can make, rename and remove nothing directly in a folder of that line, nor use what others make there while it
runs. Landlock has no say over names, sizes and modes of files.

What is started from here inherits all of it, may look into no process outside, and gains nothing from `sudo`.
"""

import contextlib
import ctypes
import json
import os
import re
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

Closed: TypeAlias = "tuple[str, int, int]"
"""A folder: its path without links, its device and its inode."""

ABI_MIN: Final = 3
"""Linux 6.2: before it, a file could be emptied that must not be written."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVS, _DROP = 38, 24
_OF_ROOT: Final = (21, 38)
"""CAP_SYS_ADMIN and CAP_PERFMON: with one of them root reads the variables of any process, Landlock or not."""
_RULESET_VERSION, _RULE_PATH_BENEATH = 1, 1
_OF_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
"""Execute, write, read, truncate."""
_LISTING: Final = 1 << 3
"""Left alone: who may not list the folders of the line could not even look around at home."""
_ALL: Final = (1 << 15) - 1 & ~_LISTING


def abi() -> int:
    """The version of Landlock that the kernel offers; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _RULESET_VERSION))


def places(closed: Closed, mounts: str) -> Iterator[str]:
    """Yield every path of a closed folder: file systems may be mounted more than once.

    Args:
        closed: The folder.
        mounts: What `/proc/self/mountinfo` says.
    """
    path = closed[0]
    yield path
    found = [_mount(line.split()) for line in mounts.splitlines()]
    # Of mounts one upon the other the last one is what is seen.
    around = [mount for mount in reversed(found) if Path(path).is_relative_to(mount[2])]
    device, root, point = max(around, key=lambda mount: len(mount[2]))
    inside = Path(root, os.path.relpath(path, point))
    for other, root, point in found:
        if other == device and inside.is_relative_to(root):
            yield str(Path(point, inside.relative_to(root)))
        elif other == device and Path(root).is_relative_to(inside):
            yield point


def _mount(words: Sequence[str]) -> tuple[str, str, str]:
    device, root, point = (re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word) for word in words[2:5])
    return device, root, point


def beside(folder: str, closed: frozenset[str]) -> Iterator[str]:
    """Yield what lies beside the lines to the *closed* folders below *folder*; links lead to what has its own place."""
    start = f"{folder.rstrip('/')}/"
    steps = {start + one.removeprefix(start).partition("/")[0] for one in closed if one.startswith(start)}
    for step in steps - closed:
        yield from beside(step, closed)
    # A folder that may be walked through need not be one that may be listed.
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        yield from (entry.path for entry in found if entry.path not in steps and not entry.is_symlink())


def close(folders: Sequence[Closed], opened: Sequence[str] = ()) -> None:
    """Close *folders* to this process and all that it will start, but for the folders *opened* in them.

    Raises:
        OSError: The kernel refused, or a folder is not the one that it was.
    """
    mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    for path, device, inode in folders:
        status = Path(path).stat()
        if (status.st_dev, status.st_ino) != (device, inode):
            raise FileNotFoundError(0, "it is not where it was", path)
    shut = frozenset(place for one in folders for place in places(one, mounts))
    rules = _call(_CREATE_RULESET, struct.pack("=Q", _ALL), ctypes.c_size_t(8), 0)
    for path in (*beside("/", shut), *opened):
        _allow(rules, path)
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _OF_ROOT:
        # Refused to who has none to drop.
        libc.prctl(_DROP, capability, 0, 0, 0)
    _check(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        # It is gone, or not ours to use anyway.
        return
    rights = _ALL if stat.S_ISDIR(os.fstat(descriptor).st_mode) else _OF_FILES
    try:
        _call(_ADD_RULE, rules, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    return _check(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))


def _check(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def main(folders: str, opened: str, *line: str) -> NoReturn:
    """Close, and become the program; nothing is run that could not be closed in."""
    try:
        close(json.loads(folders), json.loads(opened))
    except (OSError, ValueError) as error:
        sys.exit(f"The command was not run: the folder of the host could not be closed to it ({error}).")
    os.execv(line[0], line)  # noqa: S606 - the line is the host's own


if __name__ == "__main__":
    main(*sys.argv[1:])
