"""How a person lets a delivery that has ended be tried once more."""

from dataclasses import replace

import pytest

from coterie.app.configure_session import ArchiveSession, archive_session
from coterie.app.delete_session import DeleteSession, delete_session
from coterie.app.idempotency import Key
from coterie.core.chain import MICRO
from coterie.core.codes import Code
from coterie.core.errors import ConflictError, IdempotencyConflictError, InvalidArgumentError, NotFoundError
from coterie.core.ids import MessageId
from coterie.core.inbound import Across, Inbound, Waiting
from coterie.core.ledger.message import Message, Via
from coterie.core.ledger.states import MessageState
from coterie.core.permission import Mode, StoredMode
from coterie.testing.contract.admitting import marks
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.contract.settling import OUTCOMES, end
from coterie.testing.ledger import Ledger


async def ended(ledger: Ledger, outcome: str = "failed") -> Message:
    """A task that has ended in the named way, after the turn that had sent it."""
    source, target = await ledger.sessions("AB")
    turn_id = await ledger.begin(source)
    receipt = await ledger.task(source, target)
    await ledger.settle(turn_id, slot=False)
    await end(ledger, receipt.turn_id, outcome)
    return await ledger.read(receipt.message.id)


class RetryingContract(LedgerContract):
    """A new message with what the old one was allowed; the old one and its answer stay as they are."""

    @pytest.mark.parametrize("outcome", OUTCOMES)
    async def test_a_retry_is_a_new_message_of_the_same_chain(self, ledger: Ledger, outcome: str) -> None:
        """Same sender, target, words and rights, from a person and charged like any other."""
        old = await ended(ledger, outcome)
        completion, used = await ledger.completion(old.id), await ledger.chain(old.chain_id)

        receipt = await ledger.retry(old.id)

        new = await ledger.read(receipt.message.id)
        assert new.id != old.id
        assert new == replace(
            old,
            id=new.id,
            state=MessageState.RUNNING,
            created_at=new.created_at,
            updated_at=new.updated_at,
            turn_id=receipt.turn_id,
            source_turn_id=None,
            via=Via.PERSON,
            result=None,
            error=None,
            retry_of=old.id,
        )
        turn = await ledger.turn(receipt.turn_id)
        assert (turn.session_id, turn.message_id, turn.hops) == (old.target_session_id, new.id, old.hops)
        assert await ledger.chain(old.chain_id) == replace(used, messages=used.messages + 1)
        assert (await ledger.read(old.id), await ledger.completion(old.id)) == (old, completion)

    @pytest.mark.guarantee("I7")
    async def test_a_retry_has_a_completion_of_its_own(self, ledger: Ledger) -> None:
        """The sender is told what came of the second try, once, beside what it was told of the first."""
        old = await ended(ledger)
        receipt = await ledger.retry(old.id)

        await ledger.settle(receipt.turn_id, "at last", slot=False)

        answers = [await ledger.completion(one) for one in (old.id, receipt.message.id)]
        assert [answer and answer.target_session_id for answer in answers] == [old.source_session_id] * 2
        assert (await ledger.places(old.source_session_id)).completions == 1
        assert await ledger.state(old.id) is MessageState.FAILED
        assert (await ledger.read(receipt.message.id)).result == "at last"

    async def test_a_retry_may_do_no_more_than_the_first_try(self, ledger: Ledger) -> None:
        """Neither depth nor rights come back with it, though a person presses the button."""
        weak, middle, strong, last = [
            await ledger.session(mode.value, mode)
            for mode in (StoredMode.ASK, StoredMode.AUTO, StoredMode.AUTO, StoredMode.AUTO)
        ]
        await ledger.begin(weak)
        await ledger.task(weak, middle)
        old = await ledger.task(middle, strong)
        await ledger.settle(old.turn_id, code=Code.PROVIDER_ERROR, slot=False)

        receipt = await ledger.retry(old.message.id)

        assert ((await ledger.turn(receipt.turn_id)).permission, receipt.message.hops) == (Mode.ASK, 7)
        below = await ledger.task(strong, last)
        assert (below.message.hops, below.message.ceiling) == (6, "ask")

    async def test_a_retry_of_a_retry_names_the_retry(self, ledger: Ledger) -> None:
        """So the tries are a line, and each is charged."""
        old = await ended(ledger)
        used = await ledger.chain(old.chain_id)
        first = await ledger.retry(old.id)
        await ledger.settle(first.turn_id, code=Code.PROVIDER_ERROR, slot=False)

        second = await ledger.retry(first.message.id)

        assert second.message.retry_of == first.message.id
        assert (await ledger.chain(old.chain_id)).messages == used.messages + 2

    async def test_a_retry_waits_where_nothing_is_free(self, ledger: Ledger) -> None:
        """It goes the way of every message."""
        old = await ended(ledger)
        receipts = [await ledger.retry(old.id, slot=False) for _ in range(2)]
        assert [(receipt.turn_id, receipt.position) for receipt in receipts] == [(None, 1), (None, 2)]
        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == receipts[0].message.id

    @pytest.mark.guarantee("I9")
    async def test_a_retry_into_a_held_queue_waits_and_says_so(self, ledger: Ledger) -> None:
        """To try something again is not to release what else waits there."""
        old = await ended(ledger)
        await ledger.prompt(old.target_session_id, slot=False)
        await ledger.restart()
        receipt = await ledger.retry(old.id)
        assert (receipt.turn_id, receipt.position, receipt.held) == (None, 1, True)
        assert await ledger.claim() is None

    async def test_what_has_not_ended_and_what_the_host_wrote_is_not_repeated(self, ledger: Ledger) -> None:
        """A second copy of running work is what nobody wants; a completion is not the person's to send."""
        old = await ended(ledger)
        running = await ledger.retry(old.id)
        queued = await ledger.retry(old.id)
        completion = await ledger.completion(old.id)
        assert completion is not None
        before, used = await ledger.last_change(), await ledger.chain(old.chain_id)

        for message_id in (running.message.id, queued.message.id):
            with pytest.raises(ConflictError):
                await ledger.retry(message_id)
        with pytest.raises(InvalidArgumentError):
            await ledger.retry(completion.id)
        with pytest.raises(NotFoundError):
            await ledger.retry(MessageId("msg_none"))

        assert await ledger.last_change() == before
        assert await ledger.chain(old.chain_id) == used

    async def test_work_of_a_deleted_sender_may_be_tried_again(self, ledger: Ledger) -> None:
        """The message still says what is to be done; nobody is left who would be told."""
        old = await ended(ledger)
        await ledger.store.run(delete_session, DeleteSession(old.source_session_id, None))

        receipt = await ledger.retry(old.id)
        await ledger.settle(receipt.turn_id, slot=False)

        new = await ledger.read(receipt.message.id)
        assert (new.state, new.source_session_id, new.source_title) == (
            MessageState.COMPLETED,
            old.source_session_id,
            old.source_title,
        )
        assert await ledger.completion(new.id) is None

    async def test_a_target_that_is_gone_or_put_away_takes_no_retry(self, ledger: Ledger) -> None:
        """A new message like any other."""
        old = await ended(ledger)
        await ledger.store.run(archive_session, ArchiveSession(old.target_session_id, None))
        await refused(ledger.retry(old.id), Code.CONFLICT)
        await ledger.store.run(delete_session, DeleteSession(old.target_session_id, None))
        with pytest.raises(NotFoundError):
            await ledger.retry(old.id)

    async def test_a_retry_needs_a_place_and_a_share_of_its_chain(self, ledger: Ledger) -> None:
        """The refusal names the limit and its value, and nothing is charged."""
        old = await ended(ledger)
        used, before = await ledger.chain(old.chain_id), await ledger.last_change()

        ledger.limit(chain_messages_max=used.messages)
        no_share = await refused(ledger.retry(old.id), Code.LIMIT_EXCEEDED)
        ledger.limit(chain_messages_max=used.messages + 9, inbox_max=1)
        unchanged = await ledger.chain(old.chain_id), await ledger.last_change()
        await ledger.retry(old.id, slot=False)
        no_place = await refused(ledger.retry(old.id), Code.AGENT_BUSY)

        assert (no_share.limit, no_share.value) == ("chain_messages_max", used.messages)
        assert (no_place.limit, no_place.value) == ("inbox_max", 1)
        assert unchanged == (used, before)
        assert (await ledger.chain(old.chain_id)).messages == used.messages + 1

    async def test_a_retry_of_a_spent_chain_waits_for_a_release(self, ledger: Ledger) -> None:
        """To press retry is not to grant money: that is said by name."""
        old = await ended(ledger)
        ledger.limit(chain_cost_max=1)
        dear = await ledger.retry(old.id)
        await ledger.spend(dear.turn_id, cost=MICRO)

        receipt = await ledger.retry(old.id)

        assert (receipt.waiting, receipt.turn_id) == (Waiting.BUDGET, None)
        assert await ledger.claim() is None
        assert await marks(ledger, old.target_session_id) == [Waiting.BUDGET]
        await ledger.release(old.target_session_id)
        assert (await ledger.chain(old.chain_id)).grants == 1

    async def test_a_retry_asks_nobody_about_policy(self, ledger: Ledger) -> None:
        """It is a person's act, and the answer to such questions is a person's."""
        source, target = await ledger.session("A", project="/a"), await ledger.session("B", project="/b")
        first = await ledger.task(source, target)
        await ledger.settle(first.turn_id, slot=False)
        await ledger.admit(target, Inbound.REFUSE)
        ledger.become(replace(ledger.host, across=Across.DENY))

        receipt = await ledger.retry(first.message.id)

        assert (receipt.waiting, receipt.turn_id is not None) == (None, True)
        assert await ledger.asked() == ()

    async def test_what_came_too_late_may_be_tried_without_haste(self, ledger: Ledger) -> None:
        """The time in which the old one was worth starting is over; the person says that it is worth it now."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        old = (await ledger.send(source, target, expires_at=ledger.clock.now_ms() + 1, slot=False)).message
        ledger.clock.advance(1)
        await ledger.expire()

        receipt = await ledger.retry(old.id)

        assert (receipt.message.expires_at, receipt.turn_id is not None) == (None, True)
        assert await ledger.state(old.id) is MessageState.CANCELLED

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_retry_is_one_message(self, ledger: Ledger) -> None:
        """Also after a restart, with its present state; another body under the key is a conflict."""
        old = await ended(ledger)
        key = Key("person", "k", "f")
        first = await ledger.retry(old.id, key=key)
        await ledger.settle(first.turn_id, slot=False)
        used = await ledger.chain(old.chain_id)

        again = await ledger.retry(old.id, key=key)
        await ledger.restart()
        later = await ledger.retry(old.id, key=key)

        assert [one.message.id for one in (again, later)] == [first.message.id] * 2
        assert [one.replayed for one in (first, again, later)] == [False, True, True]
        assert again.message.state is MessageState.COMPLETED
        assert await ledger.chain(old.chain_id) == used
        with pytest.raises(IdempotencyConflictError):
            await ledger.retry(old.id, key=replace(key, fingerprint="other"))

    @pytest.mark.guarantee("I10")
    async def test_a_retry_is_written_down_as_a_persons_act(self, ledger: Ledger) -> None:
        """Whoever reads the chain sees that no turn has sent it."""
        old = await ended(ledger)
        receipt = await ledger.retry(old.id)
        found = await ledger.look(lambda tx: tx.exchanges.of_chain(old.chain_id, 0, 100))
        assert [
            (one.id, one.via, one.retry_of) for _, one in found if one.source_session_id == old.source_session_id
        ] == [
            (old.id, None, None),
            (receipt.message.id, Via.PERSON, old.id),
        ]
