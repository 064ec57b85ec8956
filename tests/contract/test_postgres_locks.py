"""Locks: one order for all, nothing that decides is read before them, and no wait out of order."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from tests.contract.beside import BOUND_S, Hand, hand, hold, one, processes, soon, store_of, until_waiting
from tests.contract.storm import Storm
from tests.guarantees import guarantee
from tests.postgres import needs_postgres, server

from coterie.app import recover
from coterie.app.cancel import Cancel, Cancelled, cancel
from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted, PromptSession, prompt_session
from coterie.app.release import Answer
from coterie.core.errors import HostUnavailableError, NotFoundError, RefusedError
from coterie.core.ids import NewId, SessionId
from coterie.core.ledger.states import MessageState
from coterie.core.turn.states import TurnState
from coterie.ports.store import Tx
from coterie.testing.ledger import Ledger

pytestmark = needs_postgres
KEY = Key("person", "k", "f")
PLUGIN = "SELECT pg_advisory_lock(hashtextextended('coterie plugin plugin', 0))"
LAST_PLACES = """
    INSERT INTO inputs (id, session_id, kind, chain_id, created_at, message_id, promoted, place)
    SELECT 'inp_' || n, %s, 'message', 'chn', 0, 'msg_' || n, 0, n FROM generate_series(1, 8) n
"""


@pytest.fixture
def url() -> str:
    """A database with an empty ledger."""
    return server().ledger("locks")


@pytest.fixture
async def three(url: str) -> AsyncGenerator[list[Ledger]]:
    """Three processes of one host, with bounds that no test meets by chance."""
    async with processes(url, 3, chain_messages_max=10_000) as ledgers:
        yield ledgers


@pytest.fixture
async def beside(url: str) -> AsyncGenerator[Hand]:
    """A hand that holds what others wait for."""
    async with hand(url) as found:
        yield found


@pytest.fixture
async def watch(url: str) -> AsyncGenerator[Hand]:
    """A hand that looks whether they wait."""
    async with hand(url) as found:
        yield found


def limit(ledgers: Sequence[Ledger], **limits: int) -> None:
    """Change bounds of all processes."""
    for ledger in ledgers:
        ledger.limit(**limits)


async def accepted(doing: Sequence[Awaitable[Any]], beside: Hand, watch: Hand) -> int:
    """Let all begin while *beside* holds a lock that they need, then let go; how many were not refused."""
    running = asyncio.gather(*doing, return_exceptions=True)
    await until_waiting(watch, 24)
    await beside.execute("ROLLBACK")
    results = await soon(running)
    assert all(isinstance(result, RefusedError) for result in results if isinstance(result, BaseException))
    return sum(not isinstance(result, BaseException) for result in results)


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_happens_at_once_no_two_transactions_wait_for_each_other(url: str, seed: int) -> None:
    """A ring of waits costs a second and an answer; the order of the locks must leave no way to one."""
    async with hand(url) as watch:
        await watch.execute("ALTER DATABASE locks SET deadlock_timeout = '20ms'")
        before = await one(watch, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        async with processes(url, 3, chain_messages_max=400) as ledgers:
            storm = Storm(ledgers, seed)
            async with asyncio.timeout(3 * BOUND_S):
                await storm.blow(clients=24, rounds=40)
            collisions = [store_of(ledger).collisions for ledger in ledgers]
            assert not await ledgers[0].violations()
        # What a connection has counted is told when it has ended.
        while await one(watch, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'coterie'"):
            pass
        deadlocks = await one(watch, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert (deadlocks - before, collisions) == (0, [0, 0, 0])
    assert len(storm.done) == len(storm.verbs), f"done: {storm.done}, refused: {storm.refused}"


async def test_an_inbox_takes_what_it_has_room_for_and_no_more(three: list[Ledger], beside: Hand, watch: Hand) -> None:
    """Counting and locking in one statement counts what was there before the lock."""
    *sources, target = await three[0].sessions("ABCD")
    limit(three, inbox_max=3)
    await hold(beside, target)

    sends = [three[n % 3].note(sources[n % 3], target, slot=False) for n in range(40)]

    assert await accepted(sends, beside, watch) == 3
    assert (await three[0].places(target)).messages == 3


@guarantee("I12")
async def test_a_chain_has_its_messages_and_no_more_whoever_sends_them(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """Its turns run in sessions that have no lock in common; only the chain itself can hold them apart."""
    ledger = three[0]
    person, *sources = await ledger.sessions("ABCDEFGHI")
    targets = await ledger.sessions("JKLMNOPQ")
    await ledger.begin(person)
    sent = [await ledger.task(person, source) for source in sources]
    limit(three, chain_messages_max=len(sent) + 5)
    await beside.execute("BEGIN")
    await beside.execute("SELECT id FROM chains WHERE id = %s FOR NO KEY UPDATE", [sent[0].message.chain_id])

    pairs = [(source, target) for target in targets[:5] for source in sources]
    sends = [three[n % 3].note(source, target, slot=False) for n, (source, target) in enumerate(pairs)]

    assert await accepted(sends, beside, watch) == 5
    assert (await ledger.chain(sent[0].message.chain_id)).messages == len(sent) + 5


async def test_a_session_has_its_workers_and_no_more(three: list[Ledger], beside: Hand, watch: Hand) -> None:
    """All spawns of one session come one after the other."""
    creator = await three[0].session()
    await three[0].begin(creator)
    limit(three, workers_active_max=3)
    await hold(beside, creator)

    assert await accepted([three[n % 3].spawn(creator) for n in range(40)], beside, watch) == 3


async def test_a_plugin_has_its_workers_and_no_more_over_all_sessions(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """Its sessions have no lock in common, so the plugin has one."""
    creators = await three[0].sessions("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123")
    for creator in creators:
        await three[0].begin(creator)
    limit(three, workers_active_per_plugin_max=3)
    await beside.execute(PLUGIN)

    running = asyncio.gather(
        *(three[n % 3].spawn(creator, plugin="plugin") for n, creator in enumerate(creators)), return_exceptions=True
    )
    await until_waiting(watch, 24)
    await beside.execute("SELECT pg_advisory_unlock_all()")
    results = await soon(running)

    assert sum(not isinstance(result, BaseException) for result in results) == 3
    assert sum(isinstance(result, RefusedError) for result in results) == len(creators) - 3


@guarantee("I5")
async def test_a_cancel_that_comes_upon_a_session_that_another_has_begins_again_and_waits(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """Which sessions a cascade reaches is known only under the first lock; nothing of the first try may be left."""
    ledger = three[0]
    person, worker, deep = await ledger.sessions("ABC")
    turn = await ledger.begin(person)
    task = await ledger.task(person, worker)
    below = await ledger.task(worker, deep)
    await hold(beside, deep)

    cancelling = asyncio.ensure_future(ledger.cancel(worker))
    await until_waiting(watch)
    assert await ledger.state(task.message.id) is MessageState.RUNNING
    assert not (await ledger.turn(task.turn_id)).fenced
    await beside.execute("ROLLBACK")
    stopped = await soon(cancelling)

    assert stopped.message_ids == [task.message.id, below.message.id]
    assert (await ledger.turn(below.turn_id)).fenced
    assert (await ledger.turn(turn)).state is TurnState.RUNNING
    assert not await ledger.violations()
    assert [store_of(one).collisions for one in three] == [0, 0, 0]


async def test_an_answer_that_has_waited_for_a_cancel_finds_no_question_any_more(
    three: list[Ledger], watch: Hand
) -> None:
    """What waits for the answer was read before it was locked, so all is read again."""
    ledger, gate, cancelled = three[0], Event(), Event()

    def cancel_slowly(tx: Tx, command: Cancel, now: int, new_id: NewId) -> Cancelled:
        stopped = cancel(tx, command, now, new_id)
        cancelled.set()
        gate.wait(BOUND_S)
        return stopped

    source, target = [await ledger.session(folder, project=folder) for folder in ("/one", "/other")]
    await ledger.begin(source)
    sent = await ledger.task(source, target)
    (request,) = await ledger.asked()
    command = Cancel(target, sent.message.id, None, cascade=True)
    cancelling = asyncio.ensure_future(three[1].store.run(cancel_slowly, command))
    await asyncio.to_thread(cancelled.wait, BOUND_S)

    answering = asyncio.ensure_future(ledger.answer(request.id, Answer.DENY))
    await until_waiting(watch)
    gate.set()

    assert (await soon(cancelling)).message_ids == [sent.message.id]
    with pytest.raises(NotFoundError):
        await soon(answering)
    assert not await ledger.violations()


async def test_a_claim_leaves_alone_what_another_has_and_takes_the_next(three: list[Ledger], beside: Hand) -> None:
    """A free slot waits for nobody."""
    ledger = three[0]
    source, first, second = await ledger.sessions("ABC")
    for target in (first, second):
        await ledger.note(source, target, slot=False)
    await hold(beside, first)

    turn = await soon(ledger.claim())

    assert turn is not None
    assert turn.session_id == second
    assert await soon(ledger.claim()) is None
    await beside.execute("ROLLBACK")
    after = await ledger.claim()
    assert after is not None
    assert after.session_id == first


async def test_a_settle_passes_its_slot_to_nobody_rather_than_wait(three: list[Ledger], beside: Hand) -> None:
    """The slot is for the session that has waited longest, and somebody has that now."""
    ledger = three[0]
    source, busy, ready = await ledger.sessions("ABC")
    turn = await ledger.begin(busy)
    await ledger.note(source, ready, slot=False)
    await hold(beside, ready)

    settled = await soon(ledger.settle(turn))

    assert (settled.state, settled.next) == (TurnState.COMPLETED, None)


async def test_what_needs_an_earlier_session_gives_the_later_one_back_before_it_waits(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """A claim locks the session that is ready, and only then learns who has sent what waits there."""
    ledger = three[0]
    source, target = await ledger.sessions("AB")
    await ledger.note(source, target, slot=False)
    await hold(beside, source)

    claiming = asyncio.ensure_future(ledger.claim())
    await until_waiting(watch)
    assert await one(watch, "SELECT id FROM sessions WHERE id = %s FOR UPDATE NOWAIT", [target]) == target
    await beside.execute("ROLLBACK")
    turn = await soon(claiming)

    assert turn is not None
    assert turn.session_id == target


@pytest.mark.parametrize(
    ("change", "code"),
    [("UPDATE sessions SET held = 'archived' WHERE id = %s", "CONFLICT"), (LAST_PLACES, "AGENT_BUSY")],
    ids=["archived", "full"],
)
async def test_a_send_decides_by_what_is_true_when_it_has_its_locks(
    three: list[Ledger], beside: Hand, watch: Hand, *, change: str, code: str
) -> None:
    """It may have waited long since it began."""
    source, target = await three[0].sessions("AB")
    await hold(beside, target)

    sending = asyncio.ensure_future(three[0].note(source, target))
    await until_waiting(watch)
    await beside.execute(change.encode(), [target])
    await beside.execute("COMMIT")

    with pytest.raises(RefusedError) as refused:
        await soon(sending)
    assert refused.value.code == code


@guarantee("I5")
async def test_a_settle_that_has_waited_for_a_cancel_settles_as_cancelled(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """Whatever its worker reports: the cancel was answered first."""
    session = await three[0].session()
    turn_id = await three[0].begin(session)
    await hold(beside, session)

    cancelling = asyncio.ensure_future(three[1].interrupt(session))
    await until_waiting(watch, 1)
    settling = asyncio.ensure_future(three[2].settle(turn_id))
    await until_waiting(watch, 2)
    await beside.execute("ROLLBACK")

    assert (await soon(cancelling)).turn_ids == [turn_id]
    assert (await soon(settling)).state is TurnState.CANCELLED
    assert (await three[0].turn(turn_id)).result is None


@guarantee("I14")
async def test_one_key_at_once_in_two_processes_is_one_result_and_its_replay(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """The second waits for the key, and for nothing that the first may need."""
    source, target = await three[0].sessions("AB")
    await hold(beside, target)

    sending = asyncio.gather(*(ledger.send(source, target, key=KEY) for ledger in three[:2]))
    await until_waiting(watch, 2)
    await beside.execute("ROLLBACK")
    receipts = await soon(sending)

    assert sorted(receipt.replayed for receipt in receipts) == [False, True]
    assert receipts[0].message.id == receipts[1].message.id
    assert len(await three[0].look(lambda tx: tx.exchanges.recent(target, 9))) == 1


@guarantee("I14")
async def test_one_key_at_once_is_one_result_also_where_the_first_try_begins_again(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """A try that begins again gives its key back, so either of the two may be the one that does the work."""
    person, worker, deep = await three[0].sessions("ABC")
    await three[0].begin(person)
    task = await three[0].task(person, worker)
    below = await three[0].task(worker, deep)
    await hold(beside, deep)

    command = Cancel(worker, None, None, cascade=True, key=KEY)
    cancelling = asyncio.gather(*(ledger.store.run(cancel, command) for ledger in three[:2]))
    await until_waiting(watch, 2)
    await beside.execute("ROLLBACK")
    stopped = await soon(cancelling)

    assert sorted(one.replayed for one in stopped) == [False, True]
    assert [one.message_ids for one in stopped] == [[task.message.id, below.message.id]] * 2
    assert not await three[0].violations()
    assert [store_of(one).collisions for one in three] == [0, 0, 0]


@guarantee("I9")
async def test_a_turn_that_begins_while_another_start_takes_over_is_seen_by_its_recovery(url: str, watch: Hand) -> None:
    """An epoch waits for the turns that are being written under the one before it."""
    gate, begun = Event(), Event()

    def begin(tx: Tx, session: SessionId, now: int, new_id: NewId) -> Prompted:
        prompted = prompt_session(tx, PromptSession(session, "go", None, slot=True), now, new_id)
        begun.set()
        gate.wait(BOUND_S)
        return prompted

    async with processes(url, 2) as (old, new):
        session, other = await old.sessions("AB")
        beginning = asyncio.ensure_future(old.store.run(begin, session))
        await asyncio.to_thread(begun.wait, BOUND_S)
        taking_over = asyncio.ensure_future(new.store.run(recover.begin_epoch, new.host.id))
        await until_waiting(watch)
        gate.set()
        turn_id = (await soon(beginning)).turn_id
        host_id, epoch = await soon(taking_over)
        new.become(replace(new.host, id=host_id, epoch=epoch))
        await new.recover()

        assert (await new.turn(turn_id)).state is TurnState.INTERRUPTED
        assert (await old.settle(turn_id)).state is None
        with pytest.raises(HostUnavailableError):
            await old.begin(other)
        assert (await new.turn(turn_id)).state is TurnState.INTERRUPTED
        assert await new.running(other) is None
        assert not await new.queue(other)
        assert not await new.violations()


@guarantee("I9")
async def test_a_turn_that_waits_for_another_start_to_take_over_does_not_begin(
    three: list[Ledger], beside: Hand, watch: Hand
) -> None:
    """What was to begin it is refused as a whole, and may be asked again of the host that lives."""
    session = await three[0].session()
    await beside.execute("BEGIN")
    await beside.execute("UPDATE hosts SET epoch = epoch + 1")

    beginning = asyncio.ensure_future(three[0].prompt(session, key=KEY))
    await until_waiting(watch)
    await beside.execute("COMMIT")

    with pytest.raises(HostUnavailableError):
        await soon(beginning)
    three[1].become(replace(three[1].host, epoch=2))
    again = await three[1].prompt(session, key=KEY)
    assert (again.replayed, again.status) == (False, "running")
