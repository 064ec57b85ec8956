"""What SQLite and the world can do to the store: a kill, a second host, a full disk, a file that is not ours."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Awaitable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import pytest
from tests.contract.test_sqlite import open_sqlite
from tests.guarantees import guarantee

from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted, PromptSession, prompt_session
from coterie.core.errors import (
    ConflictError,
    DatabaseCorruptError,
    DatabaseUnusableError,
    HostRunningError,
    SchemaNewerError,
    StorageError,
    StorageUnknownError,
)
from coterie.core.ids import NewId, SessionId
from coterie.core.session.session import Held
from coterie.ports.store import Tx
from coterie.storage.sqlite.check import FILE_CHECK, check
from coterie.storage.sqlite.database import SqliteDriver
from coterie.storage.sqlite.lock import DataLock
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.ledger import Ledger

R = TypeVar("R")
ROOT: Final = Path(__file__).parents[2]

ACKNOWLEDGE: Final = """
import asyncio, sys
from pathlib import Path
from tests.contract.test_sqlite import open_sqlite
from coterie.testing.ledger import Ledger

async def main():
    ledger = Ledger(open_sqlite, Path(sys.argv[1]))
    await ledger.start()
    source, target = await ledger.sessions("AB")
    ledger.limit(inbox_max=10_000, chain_messages_max=10_000)
    await ledger.begin(source)
    while True:
        for receipt in await asyncio.gather(*(ledger.note(source, target) for _ in range(5))):
            print(receipt.message.id, flush=True)

asyncio.run(main())
"""


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncGenerator[Ledger]:
    """A started host; whatever the fault was, no promise may be broken in the end."""
    ledger = Ledger(open_sqlite, tmp_path / "coterie.db")
    await ledger.start()
    yield ledger
    broken = await ledger.violations()
    await ledger.store.close()
    assert not broken


def _driver(ledger: Ledger) -> SqliteDriver:
    assert isinstance(ledger.store, SqliteStore)
    # Faults are made on the very connection that writes.
    return ledger.store.writer.driver


async def together(ledger: Ledger, acts: Sequence[Awaitable[R]]) -> list[R | BaseException]:
    """Run *acts* in one batch: the writer is held at a gate until all of them are queued."""
    entered, gate = threading.Event(), threading.Event()

    def wait(_: Tx) -> bool:
        entered.set()
        return gate.wait(5)

    closed = asyncio.ensure_future(ledger.change(wait))
    assert await asyncio.to_thread(entered.wait, 5)
    waiting = [asyncio.ensure_future(act) for act in acts]
    await asyncio.sleep(0)
    gate.set()
    assert await closed
    return await asyncio.gather(*waiting, return_exceptions=True)


@guarantee("I4")
def test_every_acknowledged_message_survives_a_kill(tmp_path: Path) -> None:
    """The process is killed in the middle of its commits, without a chance to tidy up."""
    path = tmp_path / "coterie.db"
    with subprocess.Popen(
        [sys.executable, "-c", ACKNOWLEDGE, str(path)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(40)]
        child.kill()
        told += [line.strip() for line in child.stdout if line.endswith("\n")]

    with sqlite3.connect(path) as connection:
        kept = {row[0] for row in connection.execute("SELECT id FROM messages")}
    connection.close()

    assert all(told)
    assert set(told) <= kept

    async def recovered() -> None:
        again = Ledger(open_sqlite, path)
        await again.start()
        await again.recover()
        assert await again.claim() is None
        assert not await again.violations()
        await again.store.close()

    asyncio.run(recovered())


def test_a_second_host_is_told_who_was_first(tmp_path: Path) -> None:
    """Two writers on one ledger would each believe that they are alone."""
    first = DataLock(tmp_path)
    with pytest.raises(HostRunningError, match=str(os.getpid())):
        DataLock(tmp_path)
    first.release()
    DataLock(tmp_path).release()


def test_a_killed_host_leaves_no_lock_behind(tmp_path: Path) -> None:
    """The lock is the process's, not the file's."""
    hold = "import sys; from pathlib import Path; from coterie.storage.sqlite.lock import DataLock; "
    hold += "lock = DataLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(HostRunningError, match=str(child.pid)):
            DataLock(tmp_path)
        child.kill()
    DataLock(tmp_path).release()


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An old program does not guess at rows that it does not know."""
    ledger = Ledger(open_sqlite, tmp_path / "coterie.db")
    await ledger.start()
    await ledger.store.close()
    with sqlite3.connect(tmp_path / "coterie.db") as connection:
        connection.execute("INSERT INTO schema_version (version) VALUES (999)")
        connection.execute("DROP TABLE audit")
    connection.close()

    with pytest.raises(SchemaNewerError, match="999"):
        await ledger.start()

    with sqlite3.connect(tmp_path / "coterie.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'audit'").fetchone() is None
    connection.close()


@pytest.mark.parametrize("damage", ["text", "header", "schema"])
async def test_a_file_that_is_no_database_is_told_in_words(tmp_path: Path, damage: str) -> None:
    """The file may hold a person's only copy: nothing is overwritten."""
    path = tmp_path / "coterie.db"
    ledger = Ledger(open_sqlite, path)
    if damage == "text":
        path.write_text("this is a letter to my aunt\n" * 200)
    else:
        await ledger.start()
        await ledger.store.close()
        found = bytearray(path.read_bytes())
        start, end = (0, 64) if damage == "header" else (100, 4096)
        found[start:end] = b"\xff" * (end - start)
        path.write_bytes(found)
    before = path.read_bytes()

    with pytest.raises(DatabaseCorruptError, match="Nothing was changed"):
        await ledger.start()

    assert path.read_bytes() == before


async def test_a_migration_is_all_or_nothing(tmp_path: Path) -> None:
    """A table in the way of the second statement must not leave the first one behind."""
    path = tmp_path / "coterie.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE audit (note TEXT)")
    connection.close()

    with pytest.raises(DatabaseUnusableError, match="another program"):
        await Ledger(open_sqlite, path).start()

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("audit",)]
    connection.close()


@contextmanager
def _nobody() -> Generator[None]:
    """Be somebody whom file permissions bind: the superuser may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def _locked_folder() -> Generator[Path]:
    """A folder that everybody may enter and nobody may write to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        assert not list(folder.iterdir())


async def test_a_folder_that_cannot_be_written_starts_no_host(tmp_path: Path) -> None:
    """Nothing runs on a ledger that cannot be kept."""
    with _locked_folder() as folder, _nobody(), pytest.raises(DatabaseUnusableError):
        await Ledger(open_sqlite, folder / "coterie.db").start()
    with pytest.raises(DatabaseUnusableError):
        await Ledger(open_sqlite, tmp_path / "missing" / "coterie.db").start()


def _fills_the_disk(tx: Tx, session: SessionId, now: int, new_id: NewId) -> Prompted:
    return prompt_session(tx, PromptSession(session, "x" * 60_000, None, slot=False), now, new_id)


def _limit_pages(ledger: Ledger, spare: int) -> None:
    connection = _driver(ledger).connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + spare}")


@guarantee("I4")
async def test_on_a_full_disk_the_small_are_written_and_the_large_is_refused(ledger: Ledger) -> None:
    """Each of a batch is answered as what became of it, and what was refused is not there."""
    small = await ledger.sessions("ABCDEF")
    large = await ledger.session("large")
    _limit_pages(ledger, 4)

    answers = await together(
        ledger,
        [
            ledger.store.run(_fills_the_disk, large) if number == 3 else ledger.prompt(session)
            for number, session in enumerate(small)
        ],
    )

    refused = answers.pop(3)
    assert isinstance(refused, StorageError)
    assert "full" in str(refused)
    for session, answer in zip((*small[:3], *small[4:]), answers, strict=True):
        assert isinstance(answer, Prompted)
        assert (await ledger.turn(answer.turn_id)).session_id == session
    assert (await ledger.places(large)).waiting == 0


@guarantee("I4")
async def test_with_no_room_at_all_nothing_is_acknowledged(ledger: Ledger) -> None:
    """And when there is room again, the same store goes on."""
    session = await ledger.session()
    _limit_pages(ledger, 0)

    answers = await together(ledger, [ledger.store.run(_fills_the_disk, session) for _ in range(3)])
    alone = await asyncio.gather(ledger.store.run(_fills_the_disk, session), return_exceptions=True)
    waiting = (await ledger.places(session)).waiting
    _limit_pages(ledger, 1000)
    after = await ledger.store.run(_fills_the_disk, session)

    assert all(isinstance(answer, StorageError) for answer in (*answers, *alone))
    assert waiting == 0
    assert after.position == 1


@guarantee("I4")
async def test_when_sqlite_ends_the_transaction_the_others_run_again(ledger: Ledger) -> None:
    """Nothing of the lost batch is acknowledged; each of the others has what it asked for, once."""
    sessions = await ledger.sessions("ABCD")
    connection = _driver(ledger).connection

    def fault(_: Tx) -> NoReturn:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    answers = await together(
        ledger, [ledger.change(fault) if number == 2 else ledger.prompt(one) for number, one in enumerate(sessions)]
    )

    assert isinstance(answers.pop(2), StorageError)
    sessions.pop(2)
    for session, answer in zip(sessions, answers, strict=True):
        assert isinstance(answer, Prompted)
        assert len(await ledger.transcript(session)) == 1


@guarantee("I4")
@guarantee("I14")
async def test_when_the_commit_fails_nobody_is_told_of_success(ledger: Ledger) -> None:
    """Not even a replay or a refusal of the batch: they may rest on rows that are not there."""
    session = await ledger.session()
    connection = _driver(ledger).connection
    connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    connection.execute("PRAGMA foreign_keys = 1")
    key = Key("person", "k", "f")
    ledger.feed.topics = []

    answers = await together(
        ledger,
        [
            ledger.prompt(session, key=key),
            ledger.prompt(session, key=key),
            ledger.prompt(SessionId("ses_none")),
            ledger.change(lambda _: connection.execute("INSERT INTO child VALUES (1)")),
        ],
    )
    woken = list(ledger.feed.topics)
    again = await ledger.prompt(session, key=key)

    assert {type(answer) for answer in answers} == {StorageUnknownError}
    # What was written is not known, so whoever listens looks anew.
    assert set(woken) == {session}
    assert not again.replayed
    assert again.turn_id is not None


async def test_a_batch_is_one_commit_and_a_fault_in_it_only_its_own(ledger: Ledger) -> None:
    """Savepoints keep apart what one flush writes together."""
    sessions = await ledger.sessions("ABCDEFGH")
    before = ledger.store.commits

    def fault(tx: Tx) -> NoReturn:
        tx.sessions.hold(sessions[0], Held.RESTART)
        raise ConflictError("It", "this", "that")

    answers = await together(ledger, [*(ledger.prompt(session) for session in sessions), ledger.change(fault)])

    assert isinstance(answers.pop(), ConflictError)
    assert all(isinstance(answer, Prompted) and answer.turn_id for answer in answers)
    assert (await ledger.known(sessions[0])).held is None
    # The gate's own transaction writes nothing.
    assert ledger.store.commits == before + 1


async def test_a_foreign_writer_is_waited_for_and_then_told_of(ledger: Ledger, tmp_path: Path) -> None:
    """A person's own tool on the file must not make a request hang for ever."""
    session = await ledger.session()
    _driver(ledger).connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(tmp_path / "coterie.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StorageError, match="not writable"):
        await ledger.prompt(session)
    other.execute("ROLLBACK")
    other.close()

    assert (await ledger.prompt(session)).turn_id is not None


async def test_a_ledger_is_flushed_and_written_ahead(ledger: Ledger) -> None:
    """The two settings that an acknowledged commit rests on."""
    connection = _driver(ledger).connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_a_path_may_have_any_characters(tmp_path: Path) -> None:
    """A folder's name is no part of an address."""
    folder = tmp_path / "50% off? #1 ü"
    folder.mkdir()
    ledger = Ledger(open_sqlite, folder / "coterie.db")
    await ledger.start()
    await ledger.session()
    await ledger.store.close()
    assert (folder / "coterie.db").stat().st_size > 0


@pytest.mark.parametrize("table", ["sessions", "messages", "changes"])
async def test_a_damaged_page_never_passes_as_sound(tmp_path: Path, table: str) -> None:
    """A page that no row is read from may be damaged too, and then only the whole file tells."""
    path = tmp_path / "coterie.db"
    ledger = Ledger(open_sqlite, path)
    await ledger.start()
    await ledger.sessions("ABCDEFGH")
    find = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    root = _driver(ledger).connection.execute(find, (table,)).fetchone()[0]
    await ledger.store.close()
    found = bytearray(path.read_bytes())
    found[4096 * (root - 1) : 4096 * root] = b"\xff" * 4096
    path.write_bytes(found)

    try:
        _, broken = check(path)
    except DatabaseCorruptError:
        return
    assert {violation.invariant for violation in broken} == {FILE_CHECK}


async def test_the_writer_outlives_whatever_a_use_case_raises(ledger: Ledger) -> None:
    """One thread writes for all: if it died, every later call would wait for ever."""
    session = await ledger.session()

    def leave(_: Tx) -> NoReturn:
        raise SystemExit(1)

    with pytest.raises(StorageUnknownError):
        await ledger.change(leave)

    assert (await ledger.prompt(session)).turn_id is not None
