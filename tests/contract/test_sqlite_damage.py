"""A file that lost bytes or got others: told in words, never called sound, and what is still whole is kept."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.contract.disk import watched
from tests.contract.test_sqlite import open_sqlite
from tests.guarantees import guarantee
from tests.host.program import Seat

from coterie.core.errors import DatabaseCorruptError, HostError, NotFoundError, StorageUnknownError
from coterie.core.ids import SessionId
from coterie.storage.sqlite.check import FILE_CHECK, check
from coterie.testing.ledger import Ledger

PAGE: Final = 4096
FRAME: Final = 24 + PAGE
"""A page as it stands in what is written ahead."""


def _zeros(pages: list[bytes], one: int, _rng: random.Random) -> None:
    pages[one] = bytes(PAGE)


def _noise(pages: list[bytes], one: int, rng: random.Random) -> None:
    pages[one] = rng.randbytes(PAGE)


def _head(pages: list[bytes], one: int, rng: random.Random) -> None:
    pages[one] = rng.randbytes(12) + pages[one][12:]


def _scratch(pages: list[bytes], one: int, rng: random.Random) -> None:
    length = rng.randrange(1, 64)
    start = rng.randrange(PAGE - length)
    pages[one] = pages[one][:start] + rng.randbytes(length) + pages[one][start + length :]


def _swapped(pages: list[bytes], one: int, rng: random.Random) -> None:
    other = rng.randrange(len(pages))
    pages[one], pages[other] = pages[other], pages[one]


Damage = Callable[[list[bytes], int, random.Random], None]
DAMAGES: Final[tuple[Damage, ...]] = (_zeros, _noise, _head, _scratch, _swapped)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of some eighty pages, closed by its host."""
    path = tmp_path_factory.mktemp("sound") / "coterie.db"

    async def write() -> None:
        ledger = Ledger(open_sqlite, path)
        await ledger.start()
        ledger.limit(inbox_max=100, chain_messages_max=100)
        lead, other = await ledger.sessions("AB")
        await ledger.begin(lead)
        for _ in range(30):
            await ledger.note(lead, other)
        for title in "CDEFGH":
            settled = await ledger.task(lead, await ledger.session(title))
            await ledger.settle(settled.turn_id, "x" * 500)
        await ledger.store.close()

    asyncio.run(write())
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    """A copy of the sound one, to be spoilt."""
    path = tmp_path / "coterie.db"
    shutil.copy(sound, path)
    return path


def damaged(path: Path, damage: Damage, seed: int) -> bytes:
    """Spoil a page or three of the file; returns what it holds then."""
    rng = random.Random(seed)
    found = path.read_bytes()
    pages = [found[start : start + PAGE] for start in range(0, len(found), PAGE)]
    for _ in range(rng.choice((1, 1, 3))):
        damage(pages, rng.randrange(len(pages)), rng)
    path.write_bytes(b"".join(pages))
    return path.read_bytes()


def flawed(path: Path) -> bool:
    """Whether SQLite itself finds fault with a copy of the file."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    try:
        with closing(sqlite3.connect(copy)) as connection:
            return [row[0] for row in connection.execute("PRAGMA quick_check")] != ["ok"]
    # The text of the fault may hold damaged bytes.
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return True


def found_broken(path: Path) -> bool:
    """Whether `check` says that the file is damaged, one way or the other."""
    try:
        _, broken = check(path)
    except DatabaseCorruptError as error:
        assert "restore a copy" in str(error)  # noqa: PT017 - said or returned
        return True
    return FILE_CHECK in {violation.invariant for violation in broken}


async def use(path: Path) -> None:
    """Start a host on the file and let it read and write; it may refuse in words, and nothing else may come of it."""
    ledger = Ledger(open_sqlite, path, seed=1)
    await told(ledger.start())
    # There is no store if it did not start.
    if not hasattr(ledger.store, "close"):
        return
    for act in (ledger.violations(), ledger.session("new"), ledger.prompt(SessionId("ses_none")), ledger.claim()):
        await told(act)
    await ledger.store.close()


async def told(act: Awaitable[object]) -> None:
    """Let *act* end well or with a fault in our own words, which say what to do if the file is damaged."""
    try:
        await act
    except HostError as error:
        assert not isinstance(error, DatabaseCorruptError) or "restore a copy" in str(error)  # noqa: PT017 - may end well


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
async def test_a_damage_that_sqlite_can_see_is_never_called_sound(sound: Path, tmp_path: Path, damage: Damage) -> None:
    """Whichever page it is: looking says so and changes nothing, and a host on it says what to do."""
    seen = 0
    for seed in range(10):
        path = tmp_path / str(seed) / "coterie.db"
        path.parent.mkdir()
        shutil.copy(sound, path)
        before = damaged(path, damage, seed)
        is_flawed = flawed(path)
        seen += is_flawed

        assert found_broken(path) or not is_flawed, seed
        assert path.read_bytes() == before
        await use(path)

    assert seen


def test_a_start_that_meets_a_damaged_page_says_what_to_do(path: Path) -> None:
    """A host looks for the time of its last write before it serves anybody."""
    with closing(sqlite3.connect(path)) as connection:
        root: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'changes'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(b"\xff" * PAGE)

    with pytest.raises(DatabaseCorruptError, match=r"Nothing was changed.*restore a copy"):
        asyncio.run(start(path))


@pytest.mark.parametrize("pages", [0.1, 1, 20, 40.5, -1])
def test_a_file_that_lost_its_end_is_not_opened(path: Path, pages: float) -> None:
    """Whatever is left of it, to a page less than all: nothing is added to that."""
    before = path.read_bytes()[: int(pages * PAGE)]
    path.write_bytes(before)

    with pytest.raises(DatabaseCorruptError, match=r"Nothing was changed.*restore a copy"):
        check(path)
    with pytest.raises(DatabaseCorruptError, match=r"Nothing was changed.*restore a copy"):
        asyncio.run(start(path))

    assert path.read_bytes() == before


@pytest.mark.parametrize("bytes_", [1, 100, 2000, PAGE - 1])
def test_a_file_that_lost_a_part_of_its_last_page_is_seen_through(path: Path, bytes_: int) -> None:
    """SQLite fills it up with zeros and may find nothing wrong with that; a host says what it meets."""
    path.write_bytes(path.read_bytes()[:-bytes_])
    assert found_broken(path) or not flawed(path)
    asyncio.run(use(path))


async def start(path: Path) -> None:
    """Start a host, and stop it."""
    ledger = Ledger(open_sqlite, path, seed=1)
    await ledger.start()
    await ledger.recover()
    await ledger.store.close()


class Killed:
    """What a killed host left: a file, and what was written ahead of it."""

    def __init__(self, path: Path) -> None:
        self.path, self.ahead = path, Path(f"{path}-wal")
        self.sizes: dict[str, int] = {}
        """How long what is written ahead was when each session was acknowledged."""

    def copy(self, folder: Path, ahead: bytes) -> Path:
        """The file in *folder*, with *ahead* beside it."""
        folder.mkdir()
        shutil.copy(self.path, folder)
        (folder / self.ahead.name).write_bytes(ahead)
        return folder / self.path.name


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """A host that died after ten sessions, each in a commit of its own."""
    folder = tmp_path_factory.mktemp("killed")
    left = Killed(folder / "coterie.db")

    async def write() -> None:
        ledger = Ledger(open_sqlite, folder / "living.db")
        await ledger.start()
        for title in "ABCDEFGHIJ":
            session = await ledger.session(title)
            left.sizes[session] = (folder / "living.db-wal").stat().st_size
        for end in ("", "-wal"):
            shutil.copy(folder / f"living.db{end}", f"{left.path}{end}")
        await ledger.store.close()

    asyncio.run(write())
    return left


def sessions(path: Path) -> set[str]:
    """The sessions that are in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM sessions")}


@guarantee("I4")
@pytest.mark.parametrize("tail", ["nothing", "zeros", "noise", "what was there before"])
async def test_a_commit_that_is_torn_is_ignored_and_all_before_it_are_kept(
    killed: Killed, tmp_path: Path, tail: str
) -> None:
    """Wherever it broke off, and whatever stands behind: exactly what was complete is there, and a host goes on."""
    rng = random.Random(7)
    found = killed.ahead.read_bytes()
    ends = sorted(killed.sizes.values())
    first, last = ends[0], len(found)
    for cut in {*(rng.randrange(first, last) for _ in range(6)), *rng.sample(ends, 4), *(end - 1 for end in ends[-3:])}:
        rest = {
            "nothing": b"",
            "zeros": bytes(last - cut),
            "noise": rng.randbytes(last - cut),
            "what was there before": found[32 : 32 + last - cut],
        }[tail]
        path = killed.copy(tmp_path / str(cut), found[:cut] + rest)
        complete = {session for session, end in killed.sizes.items() if end <= cut}

        await start(path)

        assert sessions(path) == complete, cut
        assert not check(path)[1]


@guarantee("I4")
async def test_bytes_behind_the_last_commit_are_nothing(killed: Killed, tmp_path: Path) -> None:
    """Room that a disk gave before it was used holds anything."""
    for length in (1, 24, FRAME, 10 * FRAME + 7):
        path = killed.copy(tmp_path / str(length), killed.ahead.read_bytes() + random.Random(length).randbytes(length))
        await start(path)
        assert sessions(path) == set(killed.sizes)


async def test_looking_at_what_a_killed_host_left_changes_nothing(killed: Killed, tmp_path: Path) -> None:
    """It is evidence, and may be somebody's only copy."""
    path = killed.copy(tmp_path / "looked", killed.ahead.read_bytes())

    _, broken = check(path)

    assert not broken
    assert path.read_bytes() == killed.path.read_bytes()
    assert path.with_name(killed.ahead.name).read_bytes() == killed.ahead.read_bytes()


@guarantee("I4")
@pytest.mark.parametrize("gone", [False, True])
async def test_a_file_that_is_empty_is_not_begun_anew_over_what_was_ahead_of_it(
    killed: Killed, tmp_path: Path, *, gone: bool
) -> None:
    """SQLite would throw it away, and with it every commit that was not yet written back."""
    path = killed.copy(tmp_path / "emptied", killed.ahead.read_bytes())
    path.write_bytes(b"")
    if gone:
        path.unlink()

    with pytest.raises(DatabaseCorruptError, match=r"coterie.db-wal.*Nothing was changed.*move coterie.db-wal away"):
        await start(path)
    with pytest.raises(NotFoundError if gone else DatabaseCorruptError):
        check(path)

    assert not path.exists() or not path.read_bytes()
    ahead = path.with_name(killed.ahead.name)
    assert ahead.read_bytes() == killed.ahead.read_bytes()
    ahead.unlink()
    await start(path)
    assert not check(path)[1]


async def test_a_file_with_nothing_in_it_is_no_ledger_until_a_host_has_it(tmp_path: Path) -> None:
    """A first start that broke off leaves one: it is not sound, and it is in nobody's way."""
    path = tmp_path / "coterie.db"
    path.touch()

    with pytest.raises(NotFoundError, match="no ledger"):
        check(path)
    assert not path.read_bytes()

    await start(path)
    assert not check(path)[1]


SPOILT: Final = {
    "a value that its column may not have": "UPDATE inputs SET kind = 'letter'",
    "a schema without a version": "DELETE FROM schema_version",
    "a version that is no number": "UPDATE schema_version SET version = 'one'",
    "text that is no text": "UPDATE messages SET state = CAST(X'FF84' AS TEXT)",
    "a schema that cannot be read": "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = "
    "CAST(X'435245415445FF84' AS TEXT) WHERE name = 'messages'",
}


def spoil(path: Path, sql: str) -> None:
    """Change the file as no host would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.executescript(sql)


@pytest.mark.parametrize("spoilt", SPOILT)
async def test_what_stands_in_whole_pages_and_cannot_be_is_found_too(path: Path, spoilt: str) -> None:
    """Each of them once passed as sound, or ended in an error of another language."""
    spoil(path, SPOILT[spoilt])
    assert found_broken(path)
    await use(path)


async def test_text_that_cannot_be_read_is_damage_and_stops_nothing_else(path: Path) -> None:
    """A client is told that the file is damaged, not to try again; other sessions go on."""
    spoil = "UPDATE sessions SET title = CAST(X'FF84' AS TEXT) WHERE title = 'A' RETURNING id"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        session = SessionId(connection.execute(spoil).fetchone()[0])
    ledger = Ledger(open_sqlite, path, seed=1)
    await ledger.start()

    with pytest.raises(DatabaseCorruptError, match="restore a copy"):
        await ledger.known(session)
    with pytest.raises(DatabaseCorruptError, match="restore a copy"):
        await ledger.prompt(session)

    assert await ledger.begin(await ledger.session("new"))
    await ledger.store.close()


def overwrite(path: Path) -> None:
    """Put something else in the place of the file."""
    Path(f"{path}-wal").unlink(missing_ok=True)
    path.write_bytes(b"\xff" * PAGE)


async def test_a_file_that_is_damaged_when_it_is_opened_again_is_told_as_that(path: Path) -> None:
    """After a commit that failed; to try again would not help."""
    with watched(path) as disk:
        ledger = Ledger(open_sqlite, path, seed=1)
        await ledger.start()
        disk.fill()
        with pytest.raises(StorageUnknownError):
            await ledger.session()
        disk.room = None
        overwrite(path)

        with pytest.raises(DatabaseCorruptError, match="restore a copy"):
            await ledger.session()

        await ledger.store.close()


def test_verify_prints_each_damage_and_ends_with_one(path: Path, tmp_path: Path) -> None:
    """A script that asks must not go on."""
    spoil(path, SPOILT["a value that its column may not have"])

    ended = Seat(tmp_path).run("verify", "--data", path.parent)

    assert ended.status == 1
    assert ended.out.startswith(f"BROKEN  {FILE_CHECK}: ")
    assert ended.out.endswith("broken; 1 checks made\n")
