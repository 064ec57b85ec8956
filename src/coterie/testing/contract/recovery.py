"""What a start does with what the last life of the host left behind."""

import pytest

from coterie.app import recover
from coterie.core.codes import Code
from coterie.core.ledger.states import MessageState
from coterie.core.session.session import Held
from coterie.core.turn.items import Reply, ToolResult
from coterie.core.turn.states import TurnState
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


class RecoveryContract(LedgerContract):
    """A restart runs nothing, loses nothing and says what it interrupted."""

    @pytest.mark.guarantee("I9")
    async def test_a_restart_interrupts_what_ran_and_keeps_what_it_had_produced(self, ledger: Ledger) -> None:
        """Case 123: it is not run again by itself, for nobody knows how far it came."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        await ledger.append(turn_id)

        await ledger.restart()

        turn = await ledger.turn(turn_id)
        assert (turn.state, turn.error_code) == (TurnState.INTERRUPTED, Code.INTERRUPTED.value)
        assert isinstance((await ledger.transcript(session))[-1].item, ToolResult)
        assert await ledger.claim() is None

    @pytest.mark.guarantee("I9")
    async def test_a_restart_holds_what_waited_and_starts_nothing(self, ledger: Ledger) -> None:
        """Queued stays queued, in its place; a slot finds nothing until a person releases it."""
        source, target, idle = await ledger.sessions("ABC")
        turn_id = await ledger.begin(source)
        receipts = [await ledger.task(source, target, slot=False) for _ in range(3)]
        await ledger.settle(turn_id, slot=False)

        await ledger.restart()
        held = [(await ledger.known(session)).held for session in (source, target, idle)]
        nothing = await ledger.claim()
        await ledger.release()
        turn = await ledger.claim()

        assert held == [None, Held.RESTART, None]
        assert nothing is None
        assert turn is not None
        assert turn.message_id == receipts[0].message.id

    @pytest.mark.guarantee("I9")
    async def test_the_completion_of_an_interrupted_task_waits_in_a_held_queue(self, ledger: Ledger) -> None:
        """The sender is told, when a person lets it go on."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.settle(turn_id)

        await ledger.restart()

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        assert completion.state is MessageState.QUEUED
        assert (await ledger.known(source)).held is Held.RESTART
        assert await ledger.running(source) is None
        await ledger.release()
        told = await ledger.claim()
        assert told is not None
        assert told.message_id == completion.id

    @pytest.mark.guarantee("I9")
    async def test_each_step_of_a_start_may_be_repeated(self, ledger: Ledger) -> None:
        """A start that crashed half-way is followed by another one."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.task(source, target)
        await ledger.store.close()
        await ledger.start()
        left = await ledger.store.read(recover.turns_left_running, None)

        first = [await ledger.store.run(recover.interrupt, turn) for turn in left]
        before = await ledger.last_change()
        again = [await ledger.store.run(recover.interrupt, turn) for turn in left]
        unchanged = await ledger.last_change() == before
        await ledger.restart()

        assert (len(left), first, again, unchanged) == (2, [True, True], [False, False], True)
        assert await ledger.state(receipt.message.id) is MessageState.INTERRUPTED
        assert await ledger.completion(receipt.message.id) is not None
        assert (await ledger.known(target)).held is Held.RESTART

    @pytest.mark.guarantee("I9")
    async def test_a_turn_of_this_epoch_is_left_alone(self, ledger: Ledger) -> None:
        """Recovery is for what earlier epochs left, and this one's turns are listed for its audit."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)

        await ledger.recover()

        assert (await ledger.turn(turn_id)).state is TurnState.RUNNING
        here = await ledger.store.read(recover.turns_running_here, None)
        assert [turn.id for turn in here] == [turn_id]

    @pytest.mark.guarantee("I5")
    async def test_a_cancelled_turn_that_a_crash_ends_stays_cancelled(self, ledger: Ledger) -> None:
        """Its message was answered as cancelled; turn and message must not tell two stories."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.cancel(target, receipt.message.id)

        await ledger.restart()

        assert await ledger.state(receipt.message.id) is MessageState.CANCELLED
        assert (await ledger.turn(receipt.turn_id)).state is TurnState.CANCELLED

    @pytest.mark.guarantee("I9")
    async def test_an_absorbed_completion_ends_with_the_turn_that_a_crash_ends(self, ledger: Ledger) -> None:
        """It was read and is in the transcript, so it is not told again."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.settle(receipt.turn_id)
        await ledger.append(turn_id, receipt.message.id)

        await ledger.restart()

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        assert completion.state is MessageState.INTERRUPTED
        assert (await ledger.places(source)).waiting == 0

    @pytest.mark.guarantee("I4")
    async def test_everything_that_was_answered_is_there_after_a_restart(self, ledger: Ledger) -> None:
        """Sessions, items, messages and results, by the ids that were given out."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipts = [await ledger.task(source, target) for _ in range(3)]
        await ledger.settle(receipts[0].turn_id, "kept")
        change = await ledger.last_change()

        await ledger.store.close()
        await ledger.start()

        assert (await ledger.read(receipts[0].message.id)).result == "kept"
        assert [await ledger.state(receipt.message.id) for receipt in receipts] == [
            MessageState.COMPLETED,
            MessageState.RUNNING,
            MessageState.QUEUED,
        ]
        assert [one.item for one in await ledger.transcript(target)][1] == Reply("kept")
        assert await ledger.last_change() == change
        await ledger.recover()

    async def test_a_host_keeps_its_id_and_raises_its_epoch(self, ledger: Ledger) -> None:
        """The directory's host is the same one, in another life."""
        before = ledger.host
        await ledger.restart()
        assert (ledger.host.id, ledger.host.epoch) == (before.id, before.epoch + 1)
