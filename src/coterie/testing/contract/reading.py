"""What people and agents can read, and what they cannot."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

import pytest

from coterie.app import describe
from coterie.app.describe import Page, WhichResult
from coterie.app.recall import PAGE_MAX, Recall, outline, recall
from coterie.core.codes import Code
from coterie.core.errors import NotFoundError
from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Kind
from coterie.core.turn.turn import Turn
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


class ReadingContract(LedgerContract):
    """Bounded answers; to an agent, of its own messages only."""

    async def _exchange(self, ledger: Ledger) -> tuple[SessionId, SessionId, SessionId, MessageId]:
        source, target, stranger = await ledger.sessions("ABC")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        return source, target, stranger, receipt.message.id

    async def test_a_result_is_ready_when_its_message_has_settled(self, ledger: Ledger) -> None:
        """However it settled: a failure is an outcome."""
        source, target, _, message_id = await self._exchange(ledger)
        which = WhichResult(target, message_id, None, reader=source)
        before = await ledger.store.read(describe.result, which)
        turn = await ledger.running(target)
        await ledger.settle(turn and turn.id, code=Code.PROVIDER_ERROR)

        ready, message = await ledger.store.read(describe.result, which)

        assert before[0] is False
        assert ready
        assert message is not None
        assert message.error == "PROVIDER_ERROR: it broke"

    async def test_a_stranger_cannot_tell_a_foreign_message_from_none(self, ledger: Ledger) -> None:
        """By result, by chain and by list, for whoever neither sent nor received it."""
        source, target, stranger, message_id = await self._exchange(ledger)
        chain_id = (await ledger.read(message_id)).chain_id

        for reader in (source, target, None):
            assert await ledger.store.read(describe.messages, ((message_id,), reader))
            await ledger.store.read(describe.result, WhichResult(target, message_id, None, reader))
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.messages, ((message_id,), stranger))
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.result, WhichResult(target, message_id, None, stranger))
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.chain, (None, message_id, stranger, 0))
        assert await ledger.store.read(describe.result, WhichResult(target, None, None, stranger)) == (False, None)
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.chain, (chain_id, None, stranger, 0))

    async def test_a_result_belongs_to_the_session_that_is_named(self, ledger: Ledger) -> None:
        """A message of another session is not found, and a session without messages has no result."""
        _, target, stranger, message_id = await self._exchange(ledger)
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.result, WhichResult(stranger, message_id, None, None))
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.result, WhichResult(SessionId("ses_none"), None, None, None))
        assert await ledger.store.read(describe.result, WhichResult(stranger, None, None, None)) == (False, None)
        newest = await ledger.store.read(describe.result, WhichResult(target, None, None, None))
        assert newest[1] is not None
        assert newest[1].id == message_id

    async def test_a_turns_result_is_its_task_and_not_what_it_has_read(self, ledger: Ledger) -> None:
        """A worker that asked others itself has absorbed their completions; its own task is what it answers."""
        source, middle, worker, message_id = await self._exchange(ledger)
        asked = await ledger.task(middle, worker)
        await ledger.settle(asked.turn_id)
        turn = await ledger.running(middle)
        assert turn is not None
        await ledger.append(turn.id, asked.message.id)
        await ledger.settle(turn.id, "mine")

        found = await ledger.store.read(describe.result, WhichResult(middle, None, turn.id, source))

        assert found[0]
        assert found[1] is not None
        assert (found[1].id, found[1].result) == (message_id, "mine")

    async def test_a_chain_lists_its_messages_in_order_with_their_completions(self, ledger: Ledger) -> None:
        """By any of its messages, in pages, with what it has used."""
        source, target, _, message_id = await self._exchange(ledger)
        turn = await ledger.running(target)
        await ledger.settle(turn and turn.id)

        chain, found = await ledger.store.read(describe.chain, (None, message_id, None, 0))
        rest = await ledger.store.read(describe.chain, (chain.id, None, source, found[0][0]))

        assert [message.kind for _, message in found] == [Kind.TASK, Kind.COMPLETION]
        assert chain.messages == 1
        assert rest[1] == found[1:]
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.chain, (ChainId("chn_none"), None, None, 0))

    async def test_a_status_says_what_runs_else_what_waits_else_how_it_ended(self, ledger: Ledger) -> None:
        """One word for a list, the rest beside it."""
        source, target, idle, message_id = await self._exchange(ledger)
        await ledger.prompt(target)
        running = await ledger.store.read(describe.status, target)
        turn = await ledger.running(target)
        await ledger.settle(turn and turn.id, slot=False)
        queued = await ledger.store.read(describe.status, target)
        claimed = await ledger.claim()
        await ledger.settle(claimed and claimed.id, code=Code.PROVIDER_ERROR, slot=False)
        failed = await ledger.store.read(describe.status, target)
        nothing = await ledger.store.read(describe.status, idle)

        assert [found.status for found in (running, queued, failed, nothing)] == ["running", "queued", "failed", "idle"]
        assert (running.waiting, failed.waiting) == (1, 0)
        assert running.current is not None
        assert running.current.id == message_id
        assert {message.source_session_id for message in failed.exchanges} == {source, target}
        assert isinstance(failed.turn, Turn)

    async def test_a_status_knows_who_made_a_session_and_whom_it_made(self, ledger: Ledger) -> None:
        """At most eight, newest first."""
        lead = await ledger.session()
        made = [(await ledger.spawn(lead, title=f"w{number}")).message.target_session_id for number in range(10)]

        one, other = [await ledger.store.read(describe.status, session) for session in (lead, made[0])]

        assert [session.id for session in one.created] == made[:1:-1]
        assert other.creator is not None
        assert other.creator.id == lead
        assert len(one.exchanges) == 4

    async def test_pages_of_sessions_join_without_gap_or_repeat(self, ledger: Ledger) -> None:
        """Most recently updated first, also when all were updated at one time."""
        sessions = await ledger.sessions("ABCDEFG")
        ledger.clock.advance(1)
        await ledger.begin(sessions[2])

        found: list[SessionId] = []
        before: tuple[int, int] | None = None
        while page := await ledger.store.read(describe.sessions, (before, 3)):
            found += [session.id for session, _, _ in page]
            before = (page[-1][0].updated_at, page[-1][1])
        whole = await ledger.store.read(describe.sessions, (None, 100))

        assert found == [sessions[2], *(session for session in reversed(sessions) if session != sessions[2])]
        assert [session.id for session, _, _ in whole] == found
        assert [state for _, _, state in whole][:2] == ["running", "idle"]

    async def test_pages_of_items_and_changes_continue_after_a_number(self, ledger: Ledger) -> None:
        """The cursor is the last number that was read."""
        session = await ledger.session()
        for _ in range(3):
            await ledger.settle(await ledger.begin(session))

        first = await ledger.store.read(describe.items, Page(0, 4, session))
        rest = await ledger.store.read(describe.items, Page(first[-1].number, 4, session))
        newest = await ledger.store.read(describe.newest_change, session)
        last = await ledger.store.read(describe.changes, Page(newest - 1, 10, session))

        assert [item.number for item in (*first, *rest)] == [1, 2, 3, 4, 5, 6]
        assert [change.revision for change in last] == [newest]
        with pytest.raises(NotFoundError):
            await ledger.store.read(describe.items, Page(0, 4, SessionId("ses_none")))

    async def test_a_worker_reads_its_turn_and_its_transcript(self, ledger: Ledger) -> None:
        """The transcript of the session, beyond one page, and the turn as it is now."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        for _ in range(PAGE_MAX + 1):
            await ledger.append(turn_id)
        begun = await ledger.store.read(outline, turn_id)
        now = await ledger.store.read(describe.turn_now, turn_id)
        recalled = await ledger.store.read(recall, Recall(session, 1 << 20))

        assert begun is not None
        assert (begun.turn, begun.session) == now
        assert not begun.short
        assert [one.number for one in recalled.numbered] == list(range(1, PAGE_MAX + 3))
        assert (recalled.last, recalled.left_out, recalled.covered) == (PAGE_MAX + 2, 0, 0)
        assert (await ledger.store.read(describe.running_here, None)) == (ledger.host.epoch, 1)
        assert await ledger.store.read(outline, TurnId("turn_none")) is None
