"""What ends with a session that is deleted, what goes on without it, and what stays to refer to."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeAlias

import pytest

from coterie.app import describe
from coterie.app.cancel import Cancel, cancel
from coterie.app.delete_session import Deleted, DeleteSession, delete_session, purge_deleted
from coterie.app.fork_session import ForkSession, fork_session
from coterie.app.idempotency import Key
from coterie.app.release import Answer
from coterie.core.errors import NotFoundError
from coterie.core.ids import GrantId, MessageId, SessionId
from coterie.core.ledger.message import Joined, Message
from coterie.core.ledger.states import MessageState
from coterie.core.turn.states import TurnState
from coterie.ports.rows import PairGrant, Reference
from coterie.testing.contract.current_turn import offer, open_turn
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.contract.lifecycle import archive
from coterie.testing.ledger import Ledger

Use: TypeAlias = Callable[[Ledger, SessionId, SessionId], Awaitable[object]]

USES: Final[dict[str, Use]] = {
    "task": lambda ledger, gone, other: ledger.task(other, gone),
    "note": lambda ledger, gone, other: ledger.note(other, gone),
    "send for it": lambda ledger, gone, other: ledger.task(gone, other),
    "prompt": lambda ledger, gone, _: ledger.prompt(gone),
    "steer": lambda ledger, gone, _: ledger.steer(gone),
    "configure": lambda ledger, gone, _: ledger.configure(gone, title="B"),
    "archive": lambda ledger, gone, _: archive(ledger, gone),
    "interrupt": lambda ledger, gone, _: ledger.interrupt(gone),
    "cancel": lambda ledger, gone, _: ledger.store.run(cancel, Cancel(gone, None, None, cascade=True)),
    "release": lambda ledger, gone, _: ledger.release(gone),
    "fork": lambda ledger, gone, _: ledger.store.run(fork_session, ForkSession(gone, None, None, None)),
    "delete": lambda ledger, gone, _: delete(ledger, gone),
    "status": lambda ledger, gone, _: ledger.store.read(describe.status, gone),
    "items": lambda ledger, gone, _: ledger.store.read(describe.items, describe.Page(0, 9, gone)),
}
"""Everything that names a session."""


async def delete(ledger: Ledger, session: SessionId, key: Key | None = None) -> Deleted:
    """Delete a session."""
    return await ledger.store.run(delete_session, DeleteSession(session, key))


async def purge(ledger: Ledger, limit: int) -> int:
    """Remove some items of a deleted session; returns how many."""
    return await ledger.store.run(purge_deleted, limit)


async def _answer(ledger: Ledger, message_id: MessageId) -> Message:
    completion = await ledger.completion(message_id)
    assert completion is not None
    return completion


async def _with_items(ledger: Ledger, number: int) -> SessionId:
    session = await ledger.session()
    turn_id = await ledger.begin(session)
    for _ in range(number - 1):
        await ledger.append(turn_id)
    return session


class DeletingContract(LedgerContract):
    """Whatever a deleted session runs or has queued is cancelled in one transaction, and each sender is told once."""

    async def test_a_deleted_session_is_gone_but_for_its_name(self, ledger: Ledger) -> None:
        """Lists and searches do not show it; who has dealt with it still finds what it was called."""
        session, other = await ledger.session("gone"), await ledger.session("other")
        before = await ledger.look(lambda tx: tx.directory.references([session, other]))
        deleted = await delete(ledger, session)

        assert (deleted.message_ids, deleted.turn_ids, deleted.replayed) == ([], [], False)
        listed = await ledger.look(lambda tx: tx.directory.page(None, 9))
        assert [one.id for one, _, _ in listed] == [other]
        assert await ledger.look(lambda tx: tx.directory.near("gone", 9)) == ()
        after = await ledger.look(lambda tx: tx.directory.references([session, other]))
        assert after == before | {session: Reference(session, "gone", available=False)}

    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    async def test_it_is_not_found_by_any_verb(self, ledger: Ledger, use: Use) -> None:
        """It looks like one that never was, and nothing is written for it."""
        gone, other = await ledger.sessions("AB")
        await delete(ledger, gone)
        await ledger.begin(other)
        before = await ledger.last_change()
        with pytest.raises(NotFoundError):
            await use(ledger, gone, other)
        assert await ledger.last_change() == before

    @pytest.mark.guarantee("I5")
    async def test_its_running_turn_is_cancelled_and_its_worker_can_do_nothing_more(self, ledger: Ledger) -> None:
        """It is woken to let go; whatever it still reports changes nothing and starts nothing."""
        session, other = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        await ledger.prompt(session)
        sender = await ledger.sender(session)
        ledger.feed.topics = []

        deleted = await delete(ledger, session)

        turn = await ledger.turn(turn_id)
        assert deleted.turn_ids == [turn_id]
        assert (turn.state, turn.fenced, turn.result) == (TurnState.CANCELLED, True, None)
        assert turn_id in ledger.feed.topics
        assert await ledger.store.read(describe.turn_now, turn_id) is None
        change = await ledger.last_change()
        assert not await ledger.append(turn_id)
        assert not await ledger.take_news(turn_id)
        assert (await ledger.settle(turn_id, "late")).state is None
        with pytest.raises(NotFoundError):
            await ledger.send(session, other, sender=sender)
        assert await ledger.last_change() == change
        assert await ledger.claim() is None

    @pytest.mark.guarantee("I7")
    async def test_what_others_gave_it_is_cancelled_and_each_of_them_is_told(self, ledger: Ledger) -> None:
        """What ran, what a turn had taken in, what was offered and what waited: each with one completion."""
        source, session, turn_id = await open_turn(ledger)
        await ledger.settle(turn_id, slot=False)
        ran = await ledger.task(source, session)
        joined = await offer(ledger, source, session, notify=True)
        assert ran.turn_id is not None
        await ledger.take_news(ran.turn_id)
        offered, waits = await offer(ledger, source, session, notify=True), await ledger.task(source, session)
        unasked = await ledger.note(source, session)

        deleted = await delete(ledger, session)

        assert deleted.message_ids == [one.message.id for one in (offered, waits, unasked)]
        for receipt in (ran, joined, offered, waits, unasked):
            message = await ledger.read(receipt.message.id)
            assert (message.state, message.result) == (MessageState.CANCELLED, None)
            if receipt is not unasked:
                completion = await _answer(ledger, message.id)
                assert (completion.state, completion.target_session_id) == (MessageState.QUEUED, source)
        assert await ledger.completion(unasked.message.id) is None
        assert (await ledger.places(source)).completions == 4  # noqa: PLR2004 - all that asked for one
        assert (await ledger.places(session)).waiting == 0

    async def test_answers_that_waited_for_it_are_cancelled(self, ledger: Ledger) -> None:
        """Nobody is left to read them; they are answered by nothing themselves."""
        session, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        receipt = await ledger.task(session, worker)
        await ledger.settle(turn_id, slot=False)
        await ledger.settle(receipt.turn_id, "42", slot=False)

        await delete(ledger, session)

        completion = await _answer(ledger, receipt.message.id)
        assert (completion.state, completion.joined) == (MessageState.CANCELLED, None)
        assert await ledger.completion(completion.id) is None
        assert (await ledger.read(receipt.message.id)).result == "42"
        assert await ledger.claim() is None

    @pytest.mark.guarantee("I7")
    async def test_what_it_has_sent_runs_on_and_tells_nobody(self, ledger: Ledger) -> None:
        """The work was wanted once and may be of use: only the answer has no address any more."""
        session, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        runs, waits = await ledger.task(session, worker), await ledger.task(session, worker)
        stopped = await ledger.task(session, worker)
        await ledger.append(turn_id)

        await delete(ledger, session)
        settled = await ledger.settle(runs.turn_id, "42")
        await ledger.cancel(worker, stopped.message.id)

        assert (await ledger.read(runs.message.id)).result == "42"
        assert settled.next is not None
        assert settled.next.message_id == waits.message.id
        await ledger.settle(settled.next.id)
        for receipt in (runs, waits, stopped):
            assert await ledger.completion(receipt.message.id) is None
        assert (await ledger.places(session)).waiting == 0

    @pytest.mark.guarantee("I9")
    async def test_a_start_holds_no_session_that_is_deleted(self, ledger: Ledger) -> None:
        """What the start interrupts or ends of it has no sender to be told, so there is nothing to release."""
        session, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        runs = await ledger.task(session, worker)
        late = await ledger.send(session, worker, expires_at=ledger.clock.now_ms() + 1)
        await ledger.settle(turn_id, slot=False)
        await delete(ledger, session)
        ledger.clock.advance(1)

        await ledger.restart()

        assert await ledger.state(runs.message.id) is MessageState.INTERRUPTED
        assert await ledger.state(late.message.id) is MessageState.CANCELLED
        assert await ledger.look(lambda tx: tx.directory.held()) == (worker,)
        assert await ledger.release() == 1

    async def test_what_it_had_created_names_it_still(self, ledger: Ledger) -> None:
        """The worker stays a worker, and its card says who made it and that this one is gone."""
        lead = await ledger.session("lead")
        await ledger.begin(lead)
        spawned = await ledger.spawn(lead)
        worker = spawned.message.target_session_id
        await delete(ledger, lead)
        status = await ledger.store.read(describe.status, worker)
        tombstone = Reference(lead, "lead", available=False)
        assert (status.creator, status.references[lead]) == (tombstone, tombstone)
        assert status.session.created_by == lead

    async def test_who_had_created_it_sees_that_it_is_gone(self, ledger: Ledger) -> None:
        """And has room for another worker."""
        ledger.limit(workers_active_max=1)
        lead = await ledger.session()
        await ledger.begin(lead)
        spawned = await ledger.spawn(lead, title="worker")
        await delete(ledger, spawned.message.target_session_id)
        status = await ledger.store.read(describe.status, lead)
        assert [(one.title, one.available) for one in status.created] == [("worker", False)]
        assert (await ledger.spawn(lead)).turn_id is not None

    async def test_its_grants_end_with_it(self, ledger: Ledger) -> None:
        """In both directions, and no others."""
        session, one, other = await ledger.sessions("ABC")
        for number, pair in enumerate([(session, one), (one, session), (one, other)]):
            grant = PairGrant(GrantId(f"grt_{number}"), *pair, 0, ledger.clock.now_ms() + 1_000)
            await ledger.change(lambda tx, grant=grant: tx.pairs.add_grant(grant))
        await delete(ledger, session)
        left = await ledger.look(lambda tx: tx.pairs.grants(ledger.clock.now_ms(), 9))
        assert [(grant.source_session_id, grant.target_session_id) for grant in left] == [(one, other)]

    async def test_a_grant_for_what_it_has_sent_is_an_answer_for_once(self, ledger: Ledger) -> None:
        """The message that waits may go on; there is nobody left who could write again."""
        session, far = await ledger.session("A", project="/near"), await ledger.session("B", project="/far")
        await ledger.begin(session)
        receipt = await ledger.task(session, far)
        await delete(ledger, session)
        (asked,) = await ledger.asked()
        answered = await ledger.answer(asked.id, Answer.GRANT)
        turn = await ledger.claim()
        assert answered == (1, False)
        assert turn is not None
        assert turn.message_id == receipt.message.id
        assert await ledger.look(lambda tx: tx.pairs.grants(ledger.clock.now_ms(), 9)) == ()

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_delete_tells_what_ended_with_it(self, ledger: Ledger) -> None:
        """Though by now it is not found any more."""
        source, session = await ledger.sessions("AB")
        await ledger.begin(source)
        turn_id = await ledger.begin(session)
        receipt = await ledger.task(source, session)
        first = await delete(ledger, session, Key("person", "k", "f"))
        again = await delete(ledger, session, Key("person", "k", "f"))
        assert (first.message_ids, first.turn_ids) == ([receipt.message.id], [turn_id])
        assert again == replace(first, replayed=True)

    async def test_a_completion_on_its_way_into_a_running_turn_ends_with_it(self, ledger: Ledger) -> None:
        """It was read, but by nobody who can still act on it."""
        session, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        receipt = await ledger.task(session, worker)
        await ledger.settle(receipt.turn_id)
        await ledger.append(turn_id, receipt.message.id)
        await delete(ledger, session)
        completion = await _answer(ledger, receipt.message.id)
        assert (completion.state, completion.joined) == (MessageState.CANCELLED, Joined.ABSORBED)


class PurgingContract(LedgerContract):
    """The transcript of a deleted session goes in pieces, so that nobody waits for it."""

    async def test_it_is_purged_a_batch_at_a_time_and_nothing_else_is(self, ledger: Ledger) -> None:
        """Several deleted sessions one after the other; those that live keep theirs."""
        first, lives, second = [await _with_items(ledger, 5) for _ in range(3)]
        kept = await ledger.transcript(lives)
        none = await purge(ledger, 10)
        for session in (first, second):
            await delete(ledger, session)
        purged = [await purge(ledger, 3) for _ in range(5)]
        assert none == 0
        assert purged == [3, 2, 3, 2, 0]
        assert [await ledger.transcript(session) for session in (first, lives, second)] == [(), kept, ()]

    async def test_a_crash_in_between_leaves_a_sound_ledger_that_goes_on(self, ledger: Ledger) -> None:
        """What is left is found again, by whatever start comes next."""
        session = await _with_items(ledger, 5)
        await delete(ledger, session)
        await purge(ledger, 2)
        await ledger.restart()
        assert not await ledger.violations()
        assert [await purge(ledger, 2) for _ in range(3)] == [2, 1, 0]

    async def test_what_a_fork_has_copied_is_its_own(self, ledger: Ledger) -> None:
        """It is history of the fork by now."""
        session = await _with_items(ledger, 3)
        copy, _ = await ledger.store.run(fork_session, ForkSession(session, None, None, None))
        kept = await ledger.transcript(copy.id)
        await delete(ledger, session)
        await purge(ledger, 10)
        assert await ledger.transcript(copy.id) == kept
