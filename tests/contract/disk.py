"""A disk that tests watch, fill and break: SQLite's own file layer, with a door before each call that changes a file.

The layer (a VFS, https://www.sqlite.org/vfs.html) is made the default one, so whatever opens a database meanwhile goes
through it and need not know. It lives in this process: no compiler, no superuser, no tracing of another process.
"""

import _sqlite3
import ctypes
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
# The arguments are those of xOpen, xDelete and xSleep of sqlite3_vfs, and of xWrite, xTruncate and xSync of
# sqlite3_io_methods.
_OPEN = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _POINTER, _INT, _POINTER)
_DELETE = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT)
_SLEEP = ctypes.CFUNCTYPE(_INT, _POINTER, _INT)
_WRITE = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT, _LONG)
_TRUNCATE = ctypes.CFUNCTYPE(_INT, _POINTER, _LONG)
_SYNC = ctypes.CFUNCTYPE(_INT, _POINTER, _INT)


class _Vfs(ctypes.Structure):
    _fields_ = (
        *((name, _INT) for name in ("version", "file_size", "path_max")),
        *((name, _POINTER) for name in ("next", "name", "own")),
        ("open", _OPEN),
        ("delete", _DELETE),
        *((name, _POINTER) for name in ("access", "full_path")),
        *((name, _POINTER) for name in ("dl_open", "dl_error", "dl_symbol", "dl_close", "randomness")),
        ("sleep", _SLEEP),
        *((name, _POINTER) for name in ("time", "last_error", "time_ms", "set_call", "get_call", "next_call")),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", _INT),
        *((name, _POINTER) for name in ("close", "read")),
        ("write", _WRITE),
        ("truncate", _TRUNCATE),
        ("sync", _SYNC),
        *((name, _POINTER) for name in ("size", "lock", "unlock", "locked", "control", "sector", "traits")),
        *((name, _POINTER) for name in ("shm_map", "shm_lock", "shm_barrier", "shm_unmap", "fetch", "unfetch")),
    )


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes that were given to the system, which may lose them until the file is synced."""

    file: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A file was made this long."""

    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """What the file holds is on the disk."""

    file: str


@dataclass(frozen=True, slots=True)
class NotSynced:
    """What the file holds may never reach the disk, though reading shows it: the system tries once."""

    file: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The file was deleted."""

    file: str


Event = Written | Cut | Synced | NotSynced | Gone
_KEPT: Final[list[object]] = []
"""SQLite holds pointers to these until its last connection is closed."""


class Disk:
    """What happened to the files of one database, in order, and what is to go wrong."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.events: list[Event | Any] = []
        """Files go by the end of their name: "" is the database, "-wal" what is written ahead. A test adds its own."""
        self.room: int | None = None
        """How many bytes all files together may have."""
        self.fault: Callable[[str, str], int] = lambda _act, _file: sqlite3.SQLITE_OK
        """Given `open`, `write`, `truncate` or `sync` and the file, the code to answer instead of doing it."""
        self.slept_ms = 0
        """How long SQLite meant to wait for locks. It does not really: the waits take no time."""
        self.on_sleep: Callable[[], None] = lambda: None
        """Called at each such wait."""

    def fill(self, spare: int = 0) -> None:
        """Leave room for *spare* bytes more."""
        self.room = self._used() + spare

    def file(self, path: str) -> str | None:
        """The end of the name, if it is one of the database's files."""
        return path.removeprefix(str(self._database)) if path.startswith(str(self._database)) else None

    def fits(self, file: str, end: int) -> int:
        """How far *file* can be written, of *end*."""
        if self.room is None:
            return end
        return min(end, max(self.room - self._used(), 0) + _size(f"{self._database}{file}"))

    def _used(self) -> int:
        return sum(_size(f"{self._database}{end}") for end in ("", "-wal", "-journal"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - called at each write
    except FileNotFoundError:
        return 0


class _Layer:
    """The calls that SQLite makes, with the disk asked before each."""

    def __init__(self, disk: Disk, under: _Vfs) -> None:
        self._disk, self._under = disk, under
        self._files: dict[int, str] = {}
        self._doors: dict[int, _Methods] = {}
        self.vfs = _Vfs.from_buffer_copy(under)
        self._name = ctypes.create_string_buffer(b"watched")
        self.vfs.name = ctypes.addressof(self._name)
        doors = (_OPEN(self._open), _DELETE(self._delete), _SLEEP(self._sleep))
        self.vfs.open, self.vfs.delete, self.vfs.sleep = doors
        _KEPT.extend((self, doors))

    def _open(self, vfs: int, path: int | None, file: int, *flags: int | None) -> int:
        name = self._disk.file(os.fsdecode(ctypes.string_at(path))) if path else None
        if name is not None and (fault := self._disk.fault("open", name)):
            _POINTER.from_address(file).value = None
            return fault
        done: int = self._under.open(vfs, path, file, *flags)
        if done == sqlite3.SQLITE_OK and name is not None:
            self._files[file] = name
            methods = _POINTER.from_address(file)
            assert methods.value is not None
            methods.value = ctypes.addressof(self._door(methods.value))
        return done

    def _delete(self, vfs: int, path: int, sync: int) -> int:
        done: int = self._under.delete(vfs, path, sync)
        name = self._disk.file(os.fsdecode(ctypes.string_at(path)))
        if done == sqlite3.SQLITE_OK and name is not None:
            self._disk.events.append(Gone(name))
        return done

    def _sleep(self, _vfs: int, microseconds: int) -> int:
        self._disk.slept_ms += microseconds // 1000
        self._disk.on_sleep()
        return microseconds

    def _door(self, address: int) -> _Methods:
        if address not in self._doors:
            under = _Methods.from_address(address)
            door = self._doors[address] = _Methods.from_buffer_copy(under)
            write = _WRITE(lambda *call: self._write(under, *call))
            truncate = _TRUNCATE(lambda *call: self._truncate(under, *call))
            sync = _SYNC(lambda *call: self._sync(under, *call))
            door.write, door.truncate, door.sync = write, truncate, sync
            _KEPT.append((write, truncate, sync))
        return self._doors[address]

    def _write(self, under: _Methods, file: int, *call: int) -> int:
        name, (data, amount, offset) = self._files[file], call
        if fault := self._disk.fault("write", name):
            return fault
        fits = self._disk.fits(name, offset + amount) - offset
        if fits > 0:
            self._disk.events.append(Written(name, offset, ctypes.string_at(data, fits)))
            done: int = under.write(file, data, fits, offset)
        else:
            done = sqlite3.SQLITE_OK
        return done or (sqlite3.SQLITE_FULL if fits < amount else done)

    def _truncate(self, under: _Methods, file: int, size: int) -> int:
        if fault := self._disk.fault("truncate", self._files[file]):
            return fault
        self._disk.events.append(Cut(self._files[file], size))
        return int(under.truncate(file, size))

    def _sync(self, under: _Methods, file: int, flags: int) -> int:
        if fault := self._disk.fault("sync", self._files[file]):
            self._disk.events.append(NotSynced(self._files[file]))
            return fault
        done: int = under.sync(file, flags)
        if done == sqlite3.SQLITE_OK:
            self._disk.events.append(Synced(self._files[file]))
        return done


def _library() -> ctypes.CDLL:
    """The library that Python's `sqlite3` itself uses."""
    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    except (AttributeError, OSError) as error:
        # Where nothing may be skipped this is a fault.
        if os.getenv("CI"):
            raise
        pytest.skip(f"this Python hides the SQLite that it is built with ({error})")
    return library


@contextmanager
def watched(database: Path) -> Generator[Disk]:
    """Watch the files of *database* inside the block; close what you opened before you leave it."""
    library = _library()
    under = library.sqlite3_vfs_find(None)
    disk = Disk(database)
    layer = _Layer(disk, under.contents)
    library.sqlite3_vfs_register(ctypes.byref(layer.vfs), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(layer.vfs))
        library.sqlite3_vfs_register(under, 1)
