"""A disk that is full, that fails, or that another process has locked: told as it is, and got over by the same host."""

import asyncio
import itertools
import resource
import shutil
import sqlite3
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import pytest
from tests.contract.disk import Disk, watched
from tests.contract.test_sqlite import open_sqlite
from tests.contract.test_sqlite_faults import together
from tests.guarantees import guarantee

from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted
from coterie.app.receipt import Receipt
from coterie.core.errors import (
    ConflictError,
    DatabaseUnusableError,
    HostError,
    IdempotencyConflictError,
    NotFoundError,
    StorageError,
    StorageUnknownError,
)
from coterie.core.ids import SessionId
from coterie.core.ledger.message import Kind
from coterie.core.session.session import Held
from coterie.ports.store import Tx
from coterie.storage.sqlite.check import check
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.ledger import Ledger

Send: TypeAlias = Callable[[str], Coroutine[Any, Any, Receipt]]

ROOM: Final = 2_000_000
BUSY_MS: Final = 5000
"""How long a write waits for a foreign one."""
HOLD: Final = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    connection.execute(line).fetchall()
    print("done", flush=True)
"""
"""Another program on the file: it does what it is told, a statement a line."""


class Foreign:
    """Another program on the file, which does what it is told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def do(self, statement: str) -> None:
        """Let it run a statement, and wait until it has."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statement}\n".encode())
        assert await asyncio.wait_for(self._process.stdout.readline(), 5) == b"done\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "coterie.db"


@pytest.fixture
def disk(path: Path) -> Generator[Disk]:
    """The disk that the ledger is on."""
    with watched(path) as disk:
        yield disk


@pytest.fixture
async def ledger(disk: Disk, path: Path) -> AsyncGenerator[Ledger]:
    """A started host; whatever the fault was, no promise may be broken in the end, nor a page."""
    ledger = Ledger(open_sqlite, path)
    await ledger.start()
    yield ledger
    disk.room, disk.fault = None, failing("nothing")
    _, broken = check(path)
    await ledger.store.close()
    assert not broken


def connection_of(ledger: Ledger) -> sqlite3.Connection:
    """The very connection that writes."""
    assert isinstance(ledger.store, SqliteStore)
    return ledger.store.writer.driver.connection


async def sender(ledger: Ledger) -> Send:
    """How to send a long message, once for each name."""
    source, target = await ledger.sessions("AB")
    ledger.limit(inbox_max=10_000, chain_messages_max=10_000)
    await ledger.begin(source)

    async def send(name: str) -> Receipt:
        text = name.ljust(2000, ".")
        return await ledger.send(
            source, target, content=text, kind=Kind.MESSAGE, notify=False, key=Key("person", name, "f")
        )

    return send


def times_kept(path: Path) -> dict[str, int]:
    """How often each message is in the file, by its name; read as any other program would."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT RTRIM(content, '.'), COUNT(*) FROM messages GROUP BY 1")
        return dict(found.fetchall())


def copied(path: Path, folder: Path) -> Path:
    """What a process that is killed now leaves behind."""
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", folder)
    return folder / path.name


def size_ahead(path: Path) -> int:
    """How many bytes are written ahead of the file."""
    return Path(f"{path}-wal").stat().st_size


def turns(path: Path) -> int:
    """How many turns the file has."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM turns").fetchone()[0])


def titles(path: Path) -> dict[str, str]:
    """The sessions in the file, with their titles."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT id, title FROM sessions").fetchall())


def failing(act: str, file: str = "", code: int = sqlite3.SQLITE_IOERR) -> Callable[[str, str], int]:
    """A disk on which one kind of call fails on one file."""
    return lambda asked, of: code if (asked, of) == (act, file) else sqlite3.SQLITE_OK


async def until_refused(send: Send, clients: int) -> tuple[set[str], dict[str, BaseException]]:
    """Let clients send at once, each until it is refused; what was accepted, and what was not."""
    accepted, refused = set[str](), dict[str, BaseException]()

    async def client(number: int) -> None:
        # More than ever fit, so that a store that refuses nobody ends too.
        for turn in range(ROOM // 2000):
            name = f"{number}-{turn}"
            try:
                await send(name)
            except HostError as error:
                refused[name] = error
                return
            accepted.add(name)

    await asyncio.gather(*(client(number) for number in range(clients)))
    return accepted, refused


@contextmanager
def _full(disk: Disk, path: Path, how: str) -> Generator[None]:
    """No room for more than a few messages: as SQLite calls a full disk, or by the system's own bound on a file."""
    if how == "disk":
        disk.fill(ROOM)
        yield
        disk.room = None
        return
    size = size_ahead(path) + ROOM
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@guarantee("I4")
@guarantee("I14")
@pytest.mark.parametrize("how", ["disk", "bound"])
async def test_clients_that_fill_the_disk_lose_nothing_and_do_nothing_twice(
    ledger: Ledger, disk: Disk, path: Path, how: str
) -> None:
    """What was accepted stays; what was refused left nothing and is repeated once there is room, on the same store."""
    send = await sender(ledger)

    with _full(disk, path, how):
        accepted, refused = await until_refused(send, 8)
        kept = times_kept(path)
        after_a_kill = times_kept(copied(path, path.parent / "killed"))
        await ledger.last_change()
    for name in refused:
        await send(name)

    assert len(accepted) > 16
    assert all(isinstance(error, StorageError) for error in refused.values())
    assert kept == after_a_kill == dict.fromkeys(accepted, 1)
    assert times_kept(path) == dict.fromkeys((*accepted, *refused), 1)


@guarantee("I4")
async def test_a_commit_that_breaks_off_anywhere_is_no_commit_for_all_of_its_batch(
    ledger: Ledger, disk: Disk, path: Path
) -> None:
    """A replay, a conflict and a refusal rest on rows that were not kept, so they are not told either."""
    session = await ledger.session()
    key, other = Key("person", "k", "f"), Key("person", "k", "other")
    broke_off, answers = 0, []

    for spare in range(0, 400_000, 3001):
        disk.fill(spare)
        used = connection_of(ledger)
        answers = await together(
            ledger,
            [
                ledger.prompt(session, key=key),
                ledger.prompt(session, key=key),
                ledger.prompt(session, key=other),
                ledger.prompt(SessionId("ses_none")),
            ],
        )
        if isinstance(answers[0], Prompted):
            break
        broke_off += 1
        assert {type(answer) for answer in answers} == {StorageUnknownError}
        assert turns(copied(path, path.parent / str(spare))) == 0
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            used.execute("SELECT 1")

    assert broke_off > 5
    assert [type(answer) for answer in answers] == [Prompted, Prompted, IdempotencyConflictError, NotFoundError]
    assert turns(path) == 1


@guarantee("I4")
@guarantee("I14")
async def test_a_sync_that_fails_answers_nobody_and_the_same_key_does_it_once(
    ledger: Ledger, disk: Disk, path: Path
) -> None:
    """Whether it is on the disk nobody knows, so both must do: that it is, and that it is not."""
    sessions = await ledger.sessions("ABC")
    disk.fault = failing("sync", "-wal", sqlite3.SQLITE_IOERR_FSYNC)

    acts = [ledger.prompt(session, key=Key("person", session, "f")) for session in sessions]
    answers = await together(ledger, acts)
    killed = copied(path, path.parent / "killed")
    disk.fault = failing("nothing")

    assert {type(answer) for answer in answers} == {StorageUnknownError}
    for where in (path, killed):
        store = ledger if where == path else Ledger(open_sqlite, where, seed=1)
        if where != path:
            await store.start()
            await store.recover()
        for session in sessions:
            await store.prompt(session, key=Key("person", session, "f"))
            assert len(await store.transcript(session)) == 1
        if where != path:
            await store.store.close()
        assert not check(where)[1]


@guarantee("I4")
@pytest.mark.parametrize("fault", [("write", "", sqlite3.SQLITE_FULL), ("sync", "", sqlite3.SQLITE_IOERR_FSYNC)])
async def test_what_cannot_be_written_back_into_the_file_stays_ahead_of_it(
    ledger: Ledger, disk: Disk, path: Path, fault: tuple[str, str, int]
) -> None:
    """The commit is on the disk already: the file that lags behind is no reason to refuse it."""
    connection_of(ledger).execute("PRAGMA wal_autocheckpoint = 1")
    disk.fault = failing(*fault)

    sessions = await ledger.sessions("ABCDEFGH")
    after_a_kill = titles(copied(path, path.parent / "killed"))
    disk.fault = failing("nothing")
    await ledger.session("I")
    alone = path.parent / "alone.db"
    shutil.copy(path, alone)

    assert after_a_kill.keys() == set(sessions)
    assert len(titles(alone)) == len(titles(path)) == 9, "all is in the file in the end"


async def test_a_file_that_cannot_be_opened_again_is_tried_at_the_next_write(ledger: Ledger, disk: Disk) -> None:
    """After a commit that failed a new connection is needed, and the fault may outlast it."""
    session = await ledger.session()
    disk.fault = failing("sync", "-wal", sqlite3.SQLITE_IOERR_FSYNC)
    with pytest.raises(StorageUnknownError):
        await ledger.session()

    disk.fault = failing("open", "", sqlite3.SQLITE_CANTOPEN)
    answers = await asyncio.gather(*(ledger.prompt(session) for _ in range(3)), return_exceptions=True)
    disk.fault = failing("nothing")

    assert {(type(answer), "cannot be opened now" in str(answer)) for answer in answers} == {(StorageError, True)}
    assert (await ledger.prompt(session)).turn_id is not None


@guarantee("I4")
async def test_a_large_write_that_fills_the_disk_in_the_middle_costs_the_small_nothing(
    ledger: Ledger, disk: Disk
) -> None:
    """SQLite ends the whole batch when pages of it do not fit; each of the others has what it asked for, once."""
    sessions = await ledger.sessions("ABCD")
    connection = connection_of(ledger)
    # Pages that do not fit into this are written before the commit.
    connection.execute("PRAGMA cache_size = 10")
    disk.fill(600_000)

    def large(_: Tx) -> None:
        connection.execute("CREATE TABLE large AS SELECT RANDOMBLOB(900000) FROM sessions")

    acts: list[Coroutine[Any, Any, object]] = [ledger.prompt(session) for session in sessions]
    before = ledger.store.commits
    answers = await together(ledger, [*acts[:2], ledger.change(large), *acts[2:]])

    refused = answers.pop(2)
    assert type(refused) is StorageError
    assert "full" in str(refused)
    assert ledger.store.commits == before + len(sessions)
    for session, answer in zip(sessions, answers, strict=True):
        assert isinstance(answer, Prompted)
        assert len(await ledger.transcript(session)) == 1


@guarantee("I4")
async def test_an_interrupted_write_is_refused_and_the_others_run_again(ledger: Ledger) -> None:
    """SQLite ends the transaction of an interrupted write, with all that others wrote in it before."""
    sessions = await ledger.sessions("ABCD")
    connection = connection_of(ledger)
    ended: list[bool] = []

    def interrupted(_: Tx) -> None:
        connection.set_progress_handler(lambda: 1, 1)
        try:
            connection.execute("UPDATE sessions SET title = 'all of them'")
        finally:
            connection.set_progress_handler(None, 0)
            ended.append(not connection.in_transaction)

    acts: list[Coroutine[Any, Any, object]] = [ledger.prompt(session) for session in sessions]
    answers = await together(ledger, [*acts, ledger.change(interrupted)])

    assert ended == [True, True], "once with the others and once alone"
    refused = answers.pop()
    assert type(refused) is StorageError
    assert "interrupted" in str(refused)
    for session, answer, title in zip(sessions, answers, "ABCD", strict=True):
        assert isinstance(answer, Prompted)
        assert len(await ledger.transcript(session)) == 1
        assert (await ledger.known(session)).title == title


@guarantee("I4")
async def test_a_write_that_cannot_be_undone_alone_takes_the_batch_back_and_nothing_else(ledger: Ledger) -> None:
    """What the failed one wrote would be kept with the others, if they did not run again without it."""
    sessions = await ledger.sessions("ABCD")
    connection = connection_of(ledger)

    def fault(tx: Tx) -> NoReturn:
        tx.sessions.hold(sessions[0], Held.RESTART)
        if connection.execute("SELECT COUNT(*) FROM turns").fetchone()[0]:
            connection.execute("RELEASE one")
        raise ConflictError("It", "this", "that")

    acts: list[Coroutine[Any, Any, object]] = [ledger.prompt(session) for session in sessions]
    answers = await together(ledger, [*acts[:2], ledger.change(fault), *acts[2:]])

    assert isinstance(answers.pop(2), HostError)
    assert (await ledger.known(sessions[0])).held is None
    for session, answer in zip(sessions, answers, strict=True):
        assert isinstance(answer, Prompted)
        assert len(await ledger.transcript(session)) == 1


@pytest.fixture
async def foreign(path: Path, disk: Disk) -> AsyncGenerator[Foreign]:
    """Another program on the file."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLD, str(path), stdin=PIPE, stdout=PIPE)
    yield Foreign(process)
    process.kill()
    await process.wait()


@guarantee("I4")
async def test_a_lock_that_another_process_keeps_is_waited_for_and_then_told_of(
    ledger: Ledger, disk: Disk, foreign: Foreign
) -> None:
    """Every one that waits is refused, nothing of it is done, reading goes on, and trying again works."""
    sessions = await ledger.sessions("ABC")
    change = await ledger.last_change()
    await foreign.do("BEGIN IMMEDIATE")

    answers = await asyncio.gather(*(ledger.prompt(session) for session in sessions), return_exceptions=True)
    waited = disk.slept_ms
    after = await ledger.last_change()
    await foreign.do("COMMIT")
    again = await asyncio.gather(*(ledger.prompt(session) for session in sessions))

    assert {(type(answer), "locked" in str(answer)) for answer in answers} == {(StorageError, True)}
    assert waited >= BUSY_MS
    assert after == change
    assert all(answer.turn_id is not None for answer in again)


@guarantee("I4")
async def test_a_lock_that_is_given_back_in_time_costs_nothing_but_time(
    ledger: Ledger, disk: Disk, foreign: Foreign
) -> None:
    """Somebody who looks into the file with a tool of their own breaks nothing."""
    session = await ledger.session()
    loop = asyncio.get_running_loop()
    await foreign.do("BEGIN IMMEDIATE")
    waits = itertools.count(1)

    def give_back() -> None:
        if next(waits) == 5:
            asyncio.run_coroutine_threadsafe(foreign.do("COMMIT"), loop).result(5)

    disk.on_sleep = give_back
    prompted = await ledger.prompt(session)

    assert prompted.turn_id is not None
    assert 0 < disk.slept_ms < BUSY_MS


@guarantee("I4")
async def test_a_foreign_reader_keeps_pages_ahead_of_the_file_and_refuses_nobody(
    ledger: Ledger, path: Path, foreign: Foreign
) -> None:
    """What an old snapshot still needs is not overwritten, and what is committed meanwhile is as safe as ever."""
    await ledger.session("first")
    connection_of(ledger).execute("PRAGMA wal_autocheckpoint = 20")
    await foreign.do("BEGIN")
    await foreign.do("SELECT * FROM sessions")

    for number in range(40):
        await ledger.session(str(number))
    kept = len(titles(copied(path, path.parent / "killed")))
    behind = size_ahead(path)
    await foreign.do("COMMIT")
    for number in range(40):
        await ledger.session(str(number))

    assert kept == 41
    assert len(titles(path)) == 81
    assert size_ahead(path) < behind + 20 * 4120 * 2


@guarantee("I4")
async def test_after_a_sync_that_failed_nothing_is_written_until_all_could_be_written_back(
    ledger: Ledger, disk: Disk, foreign: Foreign
) -> None:
    """A foreign reader may stand in its way: it is waited for, then told of, and gone it costs nothing."""
    session = await ledger.session()
    await foreign.do("BEGIN")
    await foreign.do("SELECT * FROM sessions")
    disk.fault = failing("sync", "-wal", sqlite3.SQLITE_IOERR_FSYNC)
    with pytest.raises(StorageUnknownError):
        await ledger.prompt(session, key=Key("person", "k", "f"))
    disk.fault = failing("nothing")

    with pytest.raises(StorageError, match="another program reads it") as refused:
        await ledger.prompt(session, key=Key("person", "k", "f"))
    waited = disk.slept_ms
    await foreign.do("COMMIT")
    prompted = await ledger.prompt(session, key=Key("person", "k", "f"))

    assert refused.type is StorageError
    assert waited >= BUSY_MS
    assert len(await ledger.transcript(session)) == 1
    assert prompted.turn_id is not None


async def test_a_start_on_a_locked_or_full_file_says_what_to_do(disk: Disk, path: Path, foreign: Foreign) -> None:
    """And the next start, with nothing in its way, works."""
    await foreign.do("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
    await foreign.do("DROP TABLE schema_version")
    await foreign.do("BEGIN EXCLUSIVE")
    ledger = Ledger(open_sqlite, path)
    with pytest.raises(DatabaseUnusableError, match="Close the program that writes to it"):
        await ledger.start()
    await foreign.do("COMMIT")
    disk.fill(10_000)
    with pytest.raises(DatabaseUnusableError, match="Make room on its disk"):
        await ledger.start()
    disk.room = None
    await ledger.start()
    await ledger.store.close()
    assert not check(path)[1]
