"""Servers that are not fit for a ledger, and servers and connections that end in the middle of something."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from psycopg import connect
from tests.contract import plans
from tests.contract.beside import BOUND_S, Hand, hand, hold, one, opening, soon, started, store_of, until_waiting
from tests.guarantees import guarantee
from tests.postgres import PostgresServer, needs_postgres, server

from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted, PromptSession, prompt_session
from coterie.core.errors import (
    DatabaseUnusableError,
    HostRunningError,
    HostUnavailableError,
    NotFoundError,
    SchemaNewerError,
    StorageError,
    StorageUnknownError,
)
from coterie.core.ids import NewId, SessionId
from coterie.ports.store import Tx
from coterie.storage.postgres import database
from coterie.storage.postgres.check import check
from coterie.storage.postgres.database import TOKENS
from coterie.storage.postgres.lock import HostLock, host_lock
from coterie.storage.sql.statements import load, migrations, spread
from coterie.testing.ledger import Ledger

pytestmark = needs_postgres

HOT: Final = ("lock_sessions", "get_sessions", "get_turn", "get_message", "target", "places", "heads", "meant_for_turn")
"""Statements of every turn, whose parameters are ids."""
NEWEST: Final = migrations(TOKENS)[-1][0]
KEY: Final = Key("person", "k", "f")
WRITING: Final = "FROM pg_stat_activity WHERE application_name = 'coterie' AND datname = current_database() AND pid IN "
OF_STORES: Final = f"{WRITING} (SELECT pid FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock')"
END_STORES: Final = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE application_name = 'coterie' AND datname = current_database()
"""
WAITS_FOR_COPY: Final = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
AT_COMMIT: Final = """
    CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON turns DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION late()
"""


@pytest.fixture
def url() -> str:
    """A database with an empty ledger."""
    return server().ledger("server")


@pytest.fixture
def empty() -> str:
    """A database with nothing in it."""
    return server().fresh("empty")


@pytest.fixture
async def beside(url: str) -> AsyncGenerator[Hand]:
    """A hand beside the stores."""
    async with hand(url) as found:
        yield found


@pytest.fixture
async def ledger(url: str) -> AsyncGenerator[Ledger]:
    """A host that has started."""
    async with started(url) as found:
        yield found


@pytest.fixture(scope="module")
def mortal() -> Generator[PostgresServer]:
    """A server that a test may kill, as long as it starts it again.

    Where a database has `synchronous_commit = on` each commit there waits, when it is written, for a copy that never
    comes.
    """
    with PostgresServer(fsync=False) as own:
        with closing(connect(own.url, autocommit=True)) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_commit = local")
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        own.stop()
        own.start()
        yield own


def refused(url: str) -> DatabaseUnusableError:
    """How a start on a database is refused; nothing may be made there."""

    async def start() -> None:
        await Ledger(opening(url), Path()).start()

    with pytest.raises(DatabaseUnusableError) as error:
        asyncio.run(start())
    return error.value


def tables(name: str) -> int:
    """How many tables a database has."""
    with closing(connect(server().url_of(name))) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert row is not None
    return row[0]


def run(sql: str, name: str = "postgres") -> None:
    """Change the server as its administrator."""
    with closing(connect(server().url_of(name), autocommit=True)) as connection:
        connection.execute(sql.encode())


@guarantee("I4")
def test_a_database_that_may_lose_what_it_has_acknowledged_is_refused(empty: str) -> None:
    """A host that answers before the disk has it promises what it cannot keep."""
    run("ALTER DATABASE empty SET synchronous_commit = off")
    assert "synchronous_commit = off" in str(refused(empty))
    assert not tables("empty")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused(encoding: str) -> None:
    """It would fail at the first word of somebody who writes in another script."""
    run("DROP DATABASE IF EXISTS narrow")
    run(f"CREATE DATABASE narrow TEMPLATE template0 ENCODING '{encoding}'")
    assert encoding in str(refused(server().url_of("narrow")))
    assert not tables("narrow")


def test_a_user_who_may_make_no_tables_is_told_so(empty: str) -> None:
    """So it is in a new database for everybody who does not own it."""
    run("DROP ROLE IF EXISTS guest")
    run("CREATE ROLE guest LOGIN")
    assert "right to create tables" in str(refused(empty.replace("postgres@", "guest@")))
    assert not tables("empty")


async def test_a_ledger_of_a_newer_version_is_left_alone(url: str, beside: Hand) -> None:
    """Whoever goes back a version keeps what the newer one has written."""
    await beside.execute("INSERT INTO schema_version (version) VALUES (%s)", [NEWEST + 1])
    try:
        with pytest.raises(SchemaNewerError, match=f"schema {NEWEST + 1}, this Coterie knows {NEWEST}"):
            await Ledger(opening(url), Path()).start()
        with pytest.raises(SchemaNewerError):
            check(url)
    finally:
        await beside.execute("DELETE FROM schema_version WHERE version > %s", [NEWEST])


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://one:se%ret@127.0.0.1:1/db",
        "postgresql://one:se/ret@127.0.0.1:1/db",
        "postgresql://one:se%25ret@127.0.0.1:1/db",
        "postgresql://one:se%25ret@127.0.0.1:none/db",
        "postgresql://127.0.0.1:1/db?password=se%25ret&sslpassword=se%25ret",
    ],
)
async def test_a_server_that_cannot_be_reached_is_told_without_the_password(address: str) -> None:
    """The text goes to a terminal and into logs; an address that is not well formed is quoted by the library."""
    with pytest.raises(StorageError) as opened:
        await Ledger(opening(address), Path()).start()
    with pytest.raises(StorageError) as checked:
        check(address)
    for error in (opened, checked):
        assert type(error.value) is StorageError
        assert "ret" not in str(error.value).replace("written", "")


async def test_texts_of_all_scripts_are_kept_whatever_the_clients_encoding_is(url: str, beside: Hand) -> None:
    """An administrator may have set another one for everybody."""
    await beside.execute("ALTER DATABASE server SET client_encoding = 'LATIN1'")
    try:
        async with started(url) as ledger:
            assert (await ledger.known(await ledger.session("日本 → ü"))).title == "日本 → ü"
    finally:
        await beside.execute("ALTER DATABASE server RESET client_encoding")


async def test_use_cases_see_what_is_true_under_their_locks_whatever_the_servers_default_is(
    url: str, beside: Hand
) -> None:
    """Under a snapshot from before the lock each wait would end in a fault of serialisation."""
    await beside.execute("ALTER DATABASE server SET default_transaction_isolation = 'serializable'")
    try:
        async with hand(url) as watch, started(url) as ledger:
            session = await ledger.session()
            await hold(beside, session)
            prompting = asyncio.ensure_future(ledger.prompt(session))
            await until_waiting(watch)
            await beside.execute("UPDATE sessions SET streak = 2 WHERE id = %s", [session])
            await beside.execute("COMMIT")
            await soon(prompting)
            assert (await ledger.known(session)).streak == 3
            assert store_of(ledger).collisions == 0
    finally:
        await beside.execute("ALTER DATABASE server RESET default_transaction_isolation")


async def test_a_statement_that_an_administrator_cancels_is_a_fault_that_keeps_nothing(
    url: str, ledger: Ledger, beside: Hand
) -> None:
    """The connection is as good as before."""
    session = await ledger.session()
    async with hand(url) as watch:
        await hold(beside, session)
        prompting = asyncio.ensure_future(ledger.prompt(session, key=KEY))
        await until_waiting(watch)
        await watch.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND application_name = 'coterie' AND datname = current_database()"
        )
        with pytest.raises(StorageError, match="nothing of it was kept") as error:
            await soon(prompting)
    assert type(error.value) is StorageError
    await beside.execute("ROLLBACK")
    assert not (await ledger.prompt(session, key=KEY)).replayed


async def test_a_connection_that_ends_in_the_middle_keeps_nothing_and_is_made_anew(
    ledger: Ledger, beside: Hand
) -> None:
    """Half a use case must not stay, and one lost connection must not end the host."""
    session, written, gate = await ledger.session(), Event(), Event()

    def prompt_slowly(tx: Tx, command: PromptSession, now: int, new_id: NewId) -> Prompted:
        prompted = prompt_session(tx, command, now, new_id)
        written.set()
        gate.wait(BOUND_S)
        return prompted

    command = PromptSession(session, "go", KEY, slot=True)
    prompting = asyncio.ensure_future(ledger.store.run(prompt_slowly, command))
    await asyncio.to_thread(written.wait, BOUND_S)
    assert await one(beside, f"SELECT count(pg_terminate_backend(pid, 5000)) {OF_STORES}") == 1
    gate.set()

    with pytest.raises(StorageError) as error:
        await soon(prompting)
    assert type(error.value) is StorageError
    assert await ledger.running(session) is None
    assert not (await ledger.prompt(session, key=KEY)).replayed


@guarantee("I14")
async def test_a_connection_that_ends_before_the_commit_leaves_it_open_and_the_key_decides(beside: Hand) -> None:
    """Here it was not written, which nobody could know: the repetition does the work."""
    url = server().fresh("late")
    async with started(url) as ledger, hand(url) as late:
        session = await ledger.session()
        await late.execute(AT_COMMIT)
        await late.execute("SELECT pg_advisory_lock(1)")
        prompting = asyncio.ensure_future(ledger.prompt(session, key=KEY))
        async with hand(url) as watch:
            await until_waiting(watch)
            await watch.execute(f"SELECT pg_terminate_backend(pid, 5000) {OF_STORES}".encode())
        with pytest.raises(StorageUnknownError):
            await soon(prompting)
        await late.execute("SELECT pg_advisory_unlock(1)")
        assert not (await ledger.prompt(session, key=KEY)).replayed


@guarantee("I14")
async def test_a_connection_that_ends_behind_the_commit_leaves_it_open_and_the_key_decides(
    mortal: PostgresServer,
) -> None:
    """Here it was written, and only the answer was lost: the repetition tells the first result."""
    url = mortal.fresh("copied")
    async with started(url) as ledger, hand(url) as watch:
        session = await ledger.session()
        await watch.execute("ALTER DATABASE copied SET synchronous_commit = on")
        await watch.execute(END_STORES)
        prompting = asyncio.ensure_future(ledger.prompt(session, key=KEY))
        async with asyncio.timeout(BOUND_S):
            while not await one(watch, WAITS_FOR_COPY):
                pass
        await watch.execute("ALTER DATABASE copied RESET synchronous_commit")
        await watch.execute(END_STORES)
        with pytest.raises(StorageUnknownError):
            await soon(prompting)
        again = await soon(ledger.prompt(session, key=KEY))
    assert (again.replayed, again.status) == (True, "running")


class Client:
    """Asks one thing after the other, each until it is answered, and remembers what it was told."""

    def __init__(self, ledger: Ledger, session: SessionId) -> None:
        self._ledger, self._session = ledger, session
        self.answered = list[str]()
        self.faults = Counter[type]()

    async def ask(self, times: int) -> None:
        """So many things."""
        for _ in range(times):
            key = Key("person", f"{self._session} {len(self.answered)}", "f")
            self.answered.append(await self._until_answered(key))

    async def _until_answered(self, key: Key) -> str:
        while True:
            try:
                return (await self._ledger.prompt(self._session, slot=False, key=key)).input_id
            except StorageError as error:
                self.faults[type(error)] += 1


@guarantee("I4")
@guarantee("I14")
async def test_what_was_answered_is_there_after_the_server_was_killed_and_the_host_goes_on(
    mortal: PostgresServer,
) -> None:
    """The host lives on; each of its requests is answered, refused, or left open, and its key settles the last."""
    url = mortal.fresh("killed")
    async with started(url) as ledger:
        ledger.limit(prompts_max=1000)
        clients = [Client(ledger, session) for session in await ledger.sessions("ABCDEFGH")]
        await asyncio.gather(*(client.ask(3) for client in clients))
        asking = asyncio.gather(*(client.ask(60) for client in clients))
        await asyncio.to_thread(mortal.kill)
        await asyncio.to_thread(mortal.start)
        await soon(asking)
        assert not await ledger.violations()
    async with hand(url) as watch:
        kept = await one(watch, "SELECT array_agg(id) FROM inputs")
    faults = sum((client.faults for client in clients), Counter[type]())
    answered = [input_id for client in clients for input_id in client.answered]
    assert sorted(kept) == sorted(answered)
    assert len(answered) == 63 * len(clients)
    assert faults
    assert set(faults) <= {StorageError, StorageUnknownError}


async def test_a_store_that_is_closed_refuses_and_has_no_connection_left(ledger: Ledger, beside: Hand) -> None:
    """Whoever stops a host stops it."""
    await ledger.session()
    await ledger.store.close()
    with pytest.raises(HostUnavailableError):
        await ledger.session()
    async with asyncio.timeout(BOUND_S):
        while await one(beside, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'coterie'"):
            pass


async def test_a_ledger_has_one_host_until_that_has_ended(url: str) -> None:
    """A second one by mistake would interrupt all that the first one runs."""
    async with host_lock(url):
        with pytest.raises(HostRunningError, match="Another host has the ledger"):
            HostLock(url)
        HostLock(server().ledger("another")).release()
    HostLock(url).release()


def test_a_host_takes_its_lock_again_when_the_server_has_forgotten_it(url: str) -> None:
    """Else a second host could come in after any restart of the server, and take the first one's turns."""
    lock = HostLock(url)
    run("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'", "server")
    lock.keep()
    with pytest.raises(HostRunningError):
        HostLock(url)
    lock.release()


async def test_a_host_whose_lock_another_one_has_taken_meanwhile_ends(url: str) -> None:
    """It would accept what it can no longer run."""
    others: list[HostLock] = []

    async def overtaken() -> None:
        async with asyncio.timeout(BOUND_S), host_lock(url, keep_s=0.05):
            run("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'", "server")
            others.append(HostLock(url))
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as ended:
        await overtaken()
    others[0].release()
    assert ended.group_contains(HostRunningError)


async def test_changes_of_a_server_that_was_ahead_are_numbered_anew(url: str) -> None:
    """A ledger that was restored elsewhere would be silent until the new server's transactions have caught up."""
    async with started(url) as ledger:
        await ledger.begin(await ledger.session())
        told = await ledger.look(lambda tx: tx.journal.changes(0, None, 100))
    run("UPDATE changes SET number = number + (5000000::bigint << 20)", "server")
    async with started(url) as ledger:
        await ledger.session("later")
        again = await ledger.look(lambda tx: tx.journal.changes(0, None, 100))
    assert [(one.session_id, one.revision) for one in told] == [(one.session_id, one.revision) for one in again][
        : len(told)
    ]
    assert len(again) > len(told)


@pytest.mark.parametrize("password", ["se@cret", "se@cr/et"])
def test_no_part_of_a_password_is_shown_whatever_signs_are_in_it(password: str) -> None:
    """What follows its first @ is taken for the name of a host."""
    with pytest.raises(StorageError) as caught:
        database.connect(f"postgresql://u:{password}@127.0.0.1:1/db")
    assert "cr" not in str(caught.value)
    assert "%40" in str(caught.value)


async def test_a_check_from_outside_finds_what_a_host_beside_it_has_broken(
    url: str, ledger: Ledger, beside: Hand
) -> None:
    """It reads one snapshot and waits for nobody, also for a use case that is under way."""
    session = await ledger.session()
    assert check(url) == (tuple(load("verify")), ())
    turn_id = await ledger.begin(session)
    await beside.execute("UPDATE turns SET epoch = 0")
    await hold(beside, session)
    (violation,) = check(url)[1]
    assert (violation.invariant, violation.ref) == ("I9 no turn of an earlier epoch runs", turn_id)


def test_a_database_without_a_ledger_is_not_made_one_by_a_check(empty: str) -> None:
    """Whoever mistypes a name must learn it."""
    with pytest.raises(NotFoundError, match="ledger"):
        check(empty)
    assert not tables("empty")


@guarantee("I15")
@pytest.mark.parametrize("name", HOT)
def test_no_plan_of_an_empty_ledger_reads_whole_tables(url: str, name: str) -> None:
    """A plan is kept, and the ledger fills: what was cheap for ten sessions would be read for ten thousand."""
    sql = database.STATEMENTS[name]
    with closing(database.connect(url)) as connection:
        given: Any = {name: ["a", "b"] if name == "ids" else "a" for name in plans.NAMES.findall(sql)}
        if "..." in sql:
            sql, given = spread(sql, given)
        lines = [row[0] for row in connection.execute(f"EXPLAIN {database.spelled(sql)}".encode(), given)]
    assert any("Index" in line for line in lines)
    assert not any("Seq Scan" in line for line in lines)
