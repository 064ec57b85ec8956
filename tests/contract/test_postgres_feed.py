"""The stream of changes over many writers, and wake-ups over many hosts."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Final

import pytest
from tests.contract.beside import BOUND_S, Hand, hand, one, opening, processes
from tests.contract.storm import Storm
from tests.postgres import PostgresServer, needs_postgres, server

from coterie.app.describe import Page, changes
from coterie.app.prompt_session import PromptSession, prompt_session
from coterie.core.errors import NotFoundError
from coterie.core.ids import NewId, SessionId
from coterie.ports.feed import READY, Delta
from coterie.ports.rows import Change
from coterie.ports.store import Tx
from coterie.storage.postgres.feed import CHANNEL, PAYLOAD_MAX, NotifyFeed
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.testing.ledger import Ledger, WakeLog

pytestmark = needs_postgres

READERS: Final = 6


@pytest.fixture
def url() -> str:
    """A database with an empty ledger."""
    return server().ledger("feed")


@pytest.fixture
async def beside(url: str) -> AsyncGenerator[Hand]:
    """A hand beside the stores."""
    async with hand(url) as found:
        yield found


async def told(ledger: Ledger, after: int = 0, *, session: SessionId | None = None, limit: int = 1000) -> list[Change]:
    """A page of the stream."""
    return list(await ledger.store.read(changes, Page(after, limit, session)))


async def follow(ledger: Ledger, ended: asyncio.Event, rng: random.Random) -> list[Change]:
    """Read the stream over all in pages of any size until all is written, and then to its end."""
    seen, after, last = list[Change](), 0, False
    while True:
        page = await told(ledger, after, limit=rng.randint(1, 9))
        seen += page
        after = page[-1].number if page else after
        if last and not page:
            return seen
        last = ended.is_set() and not page


async def test_readers_see_each_change_once_and_those_of_a_session_in_their_order(url: str, beside: Hand) -> None:
    """Transactions end in another order than they begin, and a page may end between any two of them."""
    async with processes(url, 3, chain_messages_max=400) as ledgers:
        storm, ended, rng = Storm(ledgers, 1), asyncio.Event(), random.Random(5)
        readers = [asyncio.ensure_future(follow(ledgers[n % 3], ended, rng)) for n in range(READERS)]
        async with asyncio.timeout(3 * BOUND_S):
            await storm.blow(clients=16, rounds=25)
            ended.set()
            seen = await asyncio.gather(*readers)
    written = await one(beside, "SELECT count(*) FROM changes")
    for changes_seen in seen:
        assert len({change.number for change in changes_seen}) == len(changes_seen) == written
        by_session = defaultdict[str, list[int]](list)
        for change in changes_seen:
            by_session[change.session_id].append(change.revision)
        assert all(revisions == sorted(revisions) for revisions in by_session.values())
    assert written > 500


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_nothing_is_told_past_a_transaction_that_still_writes(url: str, beside: Hand, end: str) -> None:
    """It began earlier, so what it writes would come before what was told."""
    async with processes(url, 1) as (ledger,):
        session, other = await ledger.sessions("AB")
        before = await told(ledger)
        position = await ledger.last_change()
        await beside.execute("BEGIN")
        await beside.execute("UPDATE sessions SET revision = revision + 1 WHERE id = %s", [other])
        await beside.execute(
            "INSERT INTO changes (session_id, revision, kind, ref, at) SELECT id, revision, 'session', id, 0 "
            "FROM sessions WHERE id = %s",
            [other],
        )

        await ledger.begin(session)

        assert await told(ledger) == before
        assert await ledger.last_change() == position
        mine = await told(ledger, session=session)
        assert [change.revision for change in mine] == list(range(1, len(mine) + 1))
        await beside.execute(end.encode())
        after = await told(ledger, position)
        assert {change.session_id for change in after} == ({session, other} if end == "COMMIT" else {session})
        assert [change for change in after if change.session_id == session] == mine[-len(after) + (end == "COMMIT") :]
        assert await ledger.last_change() == after[-1].number


@pytest.mark.parametrize("fails", [False, True])
async def test_readers_are_woken_when_what_held_the_stream_back_has_ended(url: str, *, fails: bool) -> None:
    """The commit of the later one has woken them for nothing; the end of the earlier one must wake them again."""
    feed, written, gate = MemoryFeed(), Event(), Event()

    def prompt_slowly(tx: Tx, session: SessionId, now: int, new_id: NewId) -> None:
        prompt_session(tx, PromptSession(session, "go", None, slot=True), now, new_id)
        written.set()
        gate.wait(BOUND_S)
        if fails:
            raise NotFoundError("session", session)

    ledger = Ledger(opening(url, feed), Path())
    await ledger.start()
    early, late = await ledger.sessions("AB")
    position = await ledger.last_change()
    with feed.listen(None) as listener:
        prompting = asyncio.ensure_future(ledger.store.run(prompt_slowly, early))
        await asyncio.to_thread(written.wait, BOUND_S)
        await ledger.begin(late)
        while await listener.wait(0):
            pass
        assert not await told(ledger, position)
        gate.set()
        (result,) = await asyncio.gather(prompting, return_exceptions=True)
        assert await listener.wait(BOUND_S)
    assert isinstance(result, NotFoundError) is fails
    assert {change.session_id for change in await told(ledger, position)} == ({late} if fails else {early, late})
    await ledger.store.close()


class Ear(WakeLog):
    """The feed of one host, and a way to wait for what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self._heard = asyncio.Event()
        self.on_wake = self._heard.set

    async def until(self, topic: str, times: int = 1) -> None:
        """Wait until a topic was heard so often."""
        async with asyncio.timeout(BOUND_S):
            while self.topics.count(topic) < times:
                self._heard.clear()
                await self._heard.wait()


@asynccontextmanager
async def two_feeds(url: str) -> AsyncGenerator[list[tuple[NotifyFeed, Ear]]]:
    """The feeds of two hosts, which hear already."""
    ears = [Ear(), Ear()]
    feeds = [NotifyFeed(url, ear, f"hst_{number}") for number, ear in enumerate(ears)]
    async with feeds[0].running(), feeds[1].running():
        for ear in ears:
            await ear.until(READY)
        yield list(zip(feeds, ears, strict=True))


async def test_two_hosts_hear_each_other_and_not_themselves_twice(url: str) -> None:
    """A wake-up costs everybody who is woken a look at the database."""
    async with two_feeds(url) as ((feed, ear), (other_feed, other_ear)):
        feed.wake(["ses_one"])
        await other_ear.until("ses_one")
        other_feed.wake(["ses_two"])
        await ear.until("ses_two")
    assert ear.topics == [READY, "ses_one", "ses_two"]
    assert other_ear.topics == [READY, "ses_one", "ses_two"]


async def test_many_topics_are_heard_in_as_many_pieces_as_they_need(url: str, beside: Hand) -> None:
    """A notification has less than 8,000 bytes."""
    topics = [f"ses_{number:032}" for number in range(1000)]
    await beside.execute(f"LISTEN {CHANNEL}".encode())
    async with two_feeds(url) as ((feed, _), (_, other_ear)):
        feed.wake(topics)
        await other_ear.until(topics[-1])
    assert other_ear.topics == [READY, *topics]
    notices = [notice async for notice in beside.notifies(timeout=BOUND_S, stop_after=6)]
    assert all(len(notice.payload) <= PAYLOAD_MAX for notice in notices)


async def test_hosts_hear_again_when_their_server_is_there_again() -> None:
    """What is said while it is away is told when it is back, or at the latest after the next look of an audit."""
    with PostgresServer(fsync=False) as own:
        async with two_feeds(own.url) as ((feed, ear), (other_feed, other_ear)):
            own.kill()
            feed.wake(["ses_away"])
            own.start()
            await ear.until(READY, 2)
            await other_ear.until(READY, 2)
            other_feed.wake(["ses_back"])
            await ear.until("ses_back")
            feed.wake(["ses_again"])
            await other_ear.until("ses_again")


async def test_a_feed_leaves_no_task_and_no_connection(url: str, beside: Hand) -> None:
    """A host that stops must not wait for them, and nothing may be left for the next one."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'coterie feed'"
    async with two_feeds(url):
        assert await one(beside, count) >= 2
    assert asyncio.all_tasks() == {asyncio.current_task()}
    async with asyncio.timeout(BOUND_S):
        while await one(beside, count):
            pass


async def test_a_feed_that_finds_no_server_ends_all_the_same() -> None:
    """A host must be able to stop while its server is away."""
    feed = NotifyFeed("postgresql:///none?host=/nowhere", Ear(), "hst_one")
    async with asyncio.timeout(BOUND_S):
        async with feed.running():
            feed.wake(["ses_one"])
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_live_text_and_listeners_are_those_of_the_host_itself(url: str) -> None:
    """Text that is being written may be lost, and is not worth the way through the database."""
    inner = MemoryFeed()
    feed = NotifyFeed(url, inner, "hst_one")
    with feed.listen(["ses_one"]) as listener:
        feed.publish(Delta("ses_one", "turn_one", "Hel"))
        assert listener.deltas() == [Delta("ses_one", "turn_one", "Hel")]
