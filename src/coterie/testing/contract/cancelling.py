"""What a cancel stops, and who is told."""

import pytest

from coterie.app.cancel import Cancel, cancel
from coterie.app.idempotency import Key
from coterie.core.codes import Code
from coterie.core.errors import ConflictError, NotFoundError, PermissionDeniedError
from coterie.core.ids import MessageId, SessionId
from coterie.core.ledger.states import MessageState
from coterie.core.turn.states import TurnState
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


class CancellingContract(LedgerContract):
    """Fence first, then everything below, in one transaction."""

    @pytest.mark.guarantee("I3")
    @pytest.mark.guarantee("I7")
    async def test_a_queued_message_is_cancelled_at_once_and_answered(self, ledger: Ledger) -> None:
        """Its place goes with it, and its sender does not wait for ever."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target, slot=False)

        stopped = await ledger.cancel(target, receipt.message.id)

        assert (stopped.message_ids, stopped.turn_ids) == ([receipt.message.id], [])
        assert await ledger.state(receipt.message.id) is MessageState.CANCELLED
        assert (await ledger.places(target)).waiting == 0
        assert (await ledger.places(source)).completions == 1
        assert await ledger.claim() is None

    async def test_a_running_message_is_cancelled_and_its_turn_fenced(self, ledger: Ledger) -> None:
        """The sender knows at once; the worker stops at its next step, and a late answer is no answer."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)

        stopped = await ledger.cancel(target, receipt.message.id, by=source)
        turn = await ledger.turn(receipt.turn_id)
        settled = await ledger.settle(receipt.turn_id, "too late")

        assert (stopped.message_ids, stopped.turn_ids) == ([receipt.message.id], [turn.id])
        assert (turn.state, turn.fenced) == (TurnState.RUNNING, True)
        assert turn.id in ledger.feed.topics
        assert settled.state is TurnState.CANCELLED
        message = await ledger.read(receipt.message.id)
        assert (message.state, message.result) == (MessageState.CANCELLED, None)
        assert (await ledger.places(source)).completions == 1

    async def test_a_second_cancel_stops_nothing_and_is_no_fault(self, ledger: Ledger) -> None:
        """Whoever is not sure presses twice."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.cancel(target, receipt.message.id)

        again = await ledger.cancel(target, receipt.message.id)
        await ledger.settle(receipt.turn_id)
        after = await ledger.cancel(target)

        assert (again.message_ids, again.turn_ids) == ([], [])
        assert (after.message_ids, after.turn_ids) == ([], [])
        assert (await ledger.places(source)).completions == 1

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_cancel_tells_what_the_first_stopped(self, ledger: Ledger) -> None:
        """And does not stop what has begun since."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        command = Cancel(target, None, None, cascade=True, key=Key("person", "k", "f"))
        first = await ledger.store.run(cancel, command)
        await ledger.settle(receipt.turn_id)
        later = await ledger.task(source, target)

        again = await ledger.store.run(cancel, command)

        assert (again.message_ids, again.turn_ids) == (first.message_ids, first.turn_ids)
        assert again.message_ids == [receipt.message.id]
        assert await ledger.state(later.message.id) is MessageState.RUNNING

    @pytest.mark.guarantee("I7")
    async def test_a_cancel_goes_down_three_levels_and_starts_nothing(self, ledger: Ledger) -> None:
        """Work of the cancelled is cancelled, and what would be told to them joins the turns that end."""
        top, *line = await ledger.sessions("ABCDE")
        await ledger.begin(top)
        first = await ledger.task(top, line[0])
        second = await ledger.task(line[0], line[1])
        third = await ledger.task(line[1], line[2])
        queued = await ledger.task(line[1], line[3], slot=False)
        receipts = [first, second, third, queued]

        stopped = await ledger.cancel(line[0], first.message.id, by=top)

        assert set(stopped.message_ids) == {receipt.message.id for receipt in receipts}
        assert set(stopped.turn_ids) == {receipt.turn_id for receipt in receipts[:3]}
        for receipt in receipts:
            assert await ledger.state(receipt.message.id) is MessageState.CANCELLED
        absorbed = [await ledger.completion(receipt.message.id) for receipt in receipts[1:]]
        assert [one and one.turn_id for one in absorbed] == [first.turn_id, second.turn_id, second.turn_id]
        assert [(await ledger.settle(receipt.turn_id)).next for receipt in receipts[:3]] == [None] * 3
        assert (await ledger.places(top)).completions == 1
        for session in line:
            assert (await ledger.places(session)).waiting == 0

    async def test_a_cancel_without_cascade_leaves_what_was_sent(self, ledger: Ledger) -> None:
        """Sometimes the work below is wanted and only its middleman is not."""
        top, middle, worker = await ledger.sessions("ABC")
        await ledger.begin(top)
        first = await ledger.task(top, middle)
        second = await ledger.task(middle, worker)

        stopped = await ledger.cancel(middle, first.message.id, cascade=False)
        await ledger.settle(first.turn_id)
        done = await ledger.settle(second.turn_id)

        assert stopped.message_ids == [first.message.id]
        assert await ledger.state(second.message.id) is MessageState.COMPLETED
        assert done.next is not None
        assert done.next.session_id == middle

    async def test_a_person_stops_a_prompts_turn_and_all_that_waits(self, ledger: Ledger) -> None:
        """`cancel` on a session is the person's stop button."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        turn_id = await ledger.begin(target)
        receipts = [await ledger.task(source, target) for _ in range(2)]

        stopped = await ledger.cancel(target)

        assert stopped.turn_ids == [turn_id]
        assert stopped.message_ids == [receipt.message.id for receipt in receipts]

    async def test_an_agent_stops_what_it_has_sent_and_nothing_else(self, ledger: Ledger) -> None:
        """Not another's message, not a person's turn; in bulk they are passed over."""
        one, other, target = await ledger.sessions("ABC")
        await ledger.begin(one)
        await ledger.begin(other)
        turn_id = await ledger.begin(target)
        mine, theirs = await ledger.task(one, target), await ledger.task(other, target)

        with pytest.raises(PermissionDeniedError):
            await ledger.cancel(target, theirs.message.id, by=one)
        stopped = await ledger.cancel(target, by=one)

        assert (stopped.message_ids, stopped.turn_ids) == ([mine.message.id], [])
        assert await ledger.state(theirs.message.id) is MessageState.QUEUED
        assert not (await ledger.turn(turn_id)).fenced

    async def test_an_agent_cannot_stop_the_answer_that_it_owes(self, ledger: Ledger) -> None:
        """A completion is the host's word to its target, not the worker's to take back."""
        source, worker = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, worker)
        await ledger.settle(receipt.turn_id)

        await ledger.cancel(source, by=worker)

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        assert completion.state is MessageState.QUEUED

    async def test_an_absorbed_completion_is_not_cancelled_by_itself(self, ledger: Ledger) -> None:
        """It has joined a turn that runs something else."""
        source, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, worker)
        await ledger.settle(receipt.turn_id)
        await ledger.append(turn_id, receipt.message.id)
        completion = await ledger.completion(receipt.message.id)
        assert completion is not None

        with pytest.raises(ConflictError, match="part of a running turn"):
            await ledger.cancel(source, completion.id)

        assert not (await ledger.turn(turn_id)).fenced

    async def test_what_is_not_there_is_told_so(self, ledger: Ledger) -> None:
        """Session and message; a message of another session is no way to a third."""
        source, target, third = await ledger.sessions("ABC")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        for session, message in ((SessionId("ses_none"), None), (target, MessageId("msg_none"))):
            with pytest.raises(NotFoundError):
                await ledger.cancel(session, message)
        with pytest.raises(PermissionDeniedError):
            await ledger.cancel(third, receipt.message.id)

    async def test_a_cancelled_turn_takes_its_next_input(self, ledger: Ledger) -> None:
        """A session does not stand still because one of its turns was stopped."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        waiting = await ledger.prompt(session)
        await ledger.cancel(session)
        settled = await ledger.settle(turn_id, code=Code.PROVIDER_ERROR)
        assert settled.next is not None
        assert settled.next.input_id == waiting.input_id
