"""What a commit holds, who is told of it, and what the common paths may cost."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

import asyncio
from itertools import pairwise
from typing import NoReturn

import pytest

from coterie.app.idempotency import Key
from coterie.core.codes import Code
from coterie.core.errors import ConflictError, HostUnavailableError, RefusedError, StorageError
from coterie.core.ids import NewId, SessionId
from coterie.core.session.session import Held
from coterie.ports.store import Tx
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


def _half_done(tx: Tx, session: SessionId, now: int, new_id: NewId) -> NoReturn:
    """Write, wake and change one's mind."""
    del now, new_id
    tx.sessions.hold(session, Held.RESTART)
    tx.changed(session, "held", session)
    tx.wake("nobody")
    raise ConflictError("It", "this", "that")


class CommitContract(LedgerContract):
    """Many use cases to one commit, each as if it were alone."""

    @pytest.mark.guarantee("I4")
    async def test_who_is_woken_finds_what_it_was_woken_for(self, ledger: Ledger) -> None:
        """A wake-up before the commit would send a worker to look at nothing."""
        session = await ledger.session()
        commits = ledger.store.commits
        seen: list[int] = []
        ledger.feed.on_wake = lambda: seen.append(ledger.store.commits)
        await ledger.prompt(session)
        assert seen == [commits + 1]

    async def test_a_use_case_that_changes_its_mind_leaves_nothing_and_wakes_nobody(self, ledger: Ledger) -> None:
        """Its fault comes back as it was raised."""
        session = await ledger.session()
        before, ledger.feed.topics = await ledger.known(session), []

        with pytest.raises(ConflictError):
            await ledger.store.run(_half_done, session)

        assert await ledger.known(session) == before
        assert ledger.feed.topics == []

    async def test_a_neighbour_that_fails_takes_nobody_with_it(self, ledger: Ledger) -> None:
        """Forty at once, every fourth a fault: the others have all that they asked for."""
        sessions = await ledger.sessions("ABCDEFGHIJ" * 4)
        ledger.feed.topics = []

        answers = await asyncio.gather(
            *(
                ledger.store.run(_half_done, session) if number % 4 == 0 else ledger.prompt(session)
                for number, session in enumerate(sessions)
            ),
            return_exceptions=True,
        )

        for number, (session, answer) in enumerate(zip(sessions, answers, strict=True)):
            assert isinstance(answer, ConflictError) is (number % 4 == 0)
            assert (await ledger.running(session) is None) is (number % 4 == 0)
            assert (await ledger.known(session)).held is None
        assert "nobody" not in ledger.feed.topics

    async def test_an_unexpected_fault_reaches_its_caller_and_nobody_else(self, ledger: Ledger) -> None:
        """A mistake of ours must not stop the writer."""
        session = await ledger.session()

        with pytest.raises(ZeroDivisionError):
            await ledger.change(lambda _: 1 // 0)
        assert (await ledger.prompt(session)).turn_id is not None

    async def test_an_iteration_that_ends_in_a_use_case_is_a_fault_of_its_caller_only(self, ledger: Ledger) -> None:
        """A future takes no `StopIteration`: those who share the commit would wait for ever."""
        session = await ledger.session()
        found = await asyncio.gather(
            ledger.change(lambda _: next(iter(()))), ledger.prompt(session), return_exceptions=True
        )
        assert isinstance(found[0], RuntimeError)
        assert not isinstance(found[1], BaseException)

    async def test_a_caller_that_went_away_does_not_undo_its_request(self, ledger: Ledger) -> None:
        """It may or may not be there, as a whole; its key tells which, and does it then."""
        session = await ledger.session()
        key = Key("person", "k", "f")
        gone = asyncio.ensure_future(ledger.prompt(session, key=key))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        again = await ledger.prompt(session, key=key)
        running = await ledger.running(session)
        assert running is not None
        assert running.id == again.turn_id
        assert not await ledger.queue(session)

    async def test_a_transaction_sees_its_own_writes(self, ledger: Ledger) -> None:
        """A use case may read what one of its parts has written."""
        session = await ledger.session()

        def act(tx: Tx) -> bool:
            tx.sessions.hold(session, Held.RESTART)
            found = tx.sessions.lock([session])[session]
            tx.sessions.free(session)
            return found.held is Held.RESTART

        assert await ledger.change(act)

    async def test_a_reader_cannot_write(self, ledger: Ledger) -> None:
        """What says that it reads takes no part in the order of commits."""
        session = await ledger.session()
        with pytest.raises(StorageError):
            await ledger.look(lambda tx: tx.sessions.hold(session, Held.RESTART))

    async def test_time_never_steps_back_between_commits(self, ledger: Ledger) -> None:
        """Not with the clock, and not over a restart."""
        first = await ledger.known(await ledger.session())
        ledger.clock.set_back(3600)
        second = await ledger.known(await ledger.session())
        await ledger.restart()
        third = await ledger.known(await ledger.session())
        assert first.created_at <= second.created_at <= third.created_at

    async def test_a_closed_store_says_so(self, ledger: Ledger) -> None:
        """What it had accepted is written; what comes later is not."""
        session = await ledger.session()
        accepted = asyncio.ensure_future(ledger.prompt(session))
        await asyncio.sleep(0)
        await ledger.store.close()

        with pytest.raises(HostUnavailableError):
            await ledger.prompt(session)
        with pytest.raises(HostUnavailableError):
            await ledger.known(session)

        prompted = await accepted
        await ledger.start()
        assert (await ledger.turn(prompted.turn_id)).session_id == session
        await ledger.recover()

    async def test_changes_number_what_happened_without_gaps(self, ledger: Ledger) -> None:
        """A page that reads on from a number misses nothing and reads nothing twice."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.task(source, target)

        every = await ledger.look(lambda tx: tx.journal.changes(0, None, 100))
        pages = [await ledger.look(lambda tx, at=at: tx.journal.changes(at, None, 3)) for at in (0, every[2].number)]
        own = await ledger.look(lambda tx: tx.journal.changes(0, target, 100))

        assert [change.number for change in every] == sorted({change.number for change in every})
        assert (*pages[0], *pages[1]) == every[:6]
        assert [change.revision for change in own] == list(range(1, len(own) + 1))
        assert (await ledger.known(target)).revision == len(own)
        assert await ledger.look(lambda tx: tx.journal.last_change(target)) == len(own)


class BudgetContract(LedgerContract):
    """What the common paths may cost; the numbers may only fall."""

    async def _cost(self, ledger: Ledger) -> tuple[int, int]:
        return ledger.store.statements, ledger.store.commits

    async def test_send_settle_and_append_keep_their_statements(self, ledger: Ledger) -> None:
        """Each statement is a round trip where the database is somewhere else."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)

        at = [ledger.store.statements]
        receipt = await ledger.task(source, target)
        at.append(ledger.store.statements)
        await ledger.settle(receipt.turn_id)
        at.append(ledger.store.statements)
        await ledger.append(turn_id, receipt.message.id)
        at.append(ledger.store.statements)

        sent, settled, appended = (after - before for before, after in pairwise(at))
        assert sent <= 16
        assert settled <= 16
        assert appended <= 10

    async def test_a_round_trip_to_an_idle_target_is_two_commits(self, ledger: Ledger) -> None:
        """Send with its bind, and settle with its completion."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        before = ledger.store.commits

        receipt = await ledger.task(source, target)
        await ledger.settle(receipt.turn_id)
        two = ledger.store.commits - before
        await ledger.append(turn_id, receipt.message.id)

        assert two == 2
        assert ledger.store.commits - before == 3

    async def test_a_round_trip_to_a_busy_target_is_four_commits(self, ledger: Ledger) -> None:
        """Send, the settle that claims it, its own settle, and the item that reads the outcome."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        busy = await ledger.begin(target)
        before = ledger.store.commits

        receipt = await ledger.task(source, target)
        claimed = (await ledger.settle(busy)).next
        assert claimed is not None
        await ledger.settle(claimed.id)
        await ledger.append(turn_id, receipt.message.id)

        assert ledger.store.commits - before == 4

    async def test_what_writes_nothing_costs_no_commit(self, ledger: Ledger) -> None:
        """A refusal, a conflict and an idle claim leave the disk alone."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(inbox_max=1)
        await ledger.note(source, target, slot=False)
        await ledger.release()
        before = ledger.store.commits

        with pytest.raises(RefusedError) as caught:
            await ledger.note(source, target)
        with pytest.raises(ConflictError):
            await ledger.store.run(_half_done, target)

        assert caught.value.code is Code.AGENT_BUSY
        assert ledger.store.commits == before
