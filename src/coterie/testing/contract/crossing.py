"""What sessions of different projects may send each other: a person is asked, and answers."""

import json
from dataclasses import replace

import pytest

from coterie.app import describe
from coterie.app.delete_session import DeleteSession, delete_session
from coterie.app.idempotency import Key
from coterie.app.release import Answer, Revoke, revoke
from coterie.core.codes import Code
from coterie.core.errors import IdempotencyConflictError, NotFoundError
from coterie.core.ids import GrantId, MessageId, RequestId
from coterie.core.inbound import Across, Inbound, Waiting
from coterie.core.ledger.states import MessageState
from coterie.ports.rows import PairGrant
from coterie.testing.contract.admitting import marks, near_and_far
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


async def grants(ledger: Ledger) -> tuple[PairGrant, ...]:
    """The grants that hold now."""
    return await ledger.look(lambda tx: tx.pairs.grants(ledger.clock.now_ms(), 100))


class CrossingContract(LedgerContract):
    """Between projects a person is asked once for each pair, and direction."""

    @pytest.mark.guarantee("I16")
    async def test_a_message_to_another_project_waits_and_asks(self, ledger: Ledger) -> None:
        """Case 165: the receipt says so, the person sees who wants to write to whom, and the session is not held."""
        source, target = await near_and_far(ledger)

        receipt = await ledger.task(source, target)

        assert (receipt.waiting, receipt.turn_id, receipt.held) == (Waiting.ACROSS_PROJECTS, None, False)
        (asked,) = await ledger.asked()
        assert (asked.source_session_id, asked.target_session_id) == (source, target)
        ((_, one, other, messages),) = await ledger.store.read(describe.pending, None)
        assert (one.title, other.title, messages) == ("near", "far", 1)
        assert await ledger.claim() is None
        assert (await ledger.known(target)).held is None

    async def test_a_pair_is_asked_about_once(self, ledger: Ledger) -> None:
        """The second message waits for the same answer; the way back and another sender are questions of their own."""
        source, target = await near_and_far(ledger)
        other = await ledger.session("other", project="/near")
        for session in (other, target):
            await ledger.begin(session)
        await ledger.note(source, target)
        first = await ledger.asked()
        for sender in (source, other):
            await ledger.note(sender, target)
        await ledger.note(target, source)

        asked = await ledger.asked()

        assert asked[:1] == first
        assert [(one.source_session_id, one.target_session_id) for one in asked] == [
            (source, target),
            (other, target),
            (target, source),
        ]
        assert len({one.id for one in asked}) == len(asked)

    @pytest.mark.parametrize(
        ("one", "other", "crosses"),
        [(None, None, False), ("/a", "/a", False), ("/a", "/b", True), (None, "/a", True), ("/a", None, True)],
    )
    async def test_sessions_without_a_folder_are_one_project(
        self, ledger: Ledger, one: str | None, other: str | None, *, crosses: bool
    ) -> None:
        """And none is no folder's: what a person lets loose in a project is not for everybody."""
        source, target = await ledger.session("A", project=one), await ledger.session("B", project=other)
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        assert receipt.waiting is (Waiting.ACROSS_PROJECTS if crosses else None)
        assert len(await ledger.asked()) == int(crosses)

    async def test_a_worker_is_of_its_creators_project(self, ledger: Ledger) -> None:
        """To give out work inside a project nobody is asked, and the answer comes back."""
        lead, _ = await near_and_far(ledger)
        spawned = await ledger.spawn(lead)
        back = await ledger.note(spawned.message.target_session_id, lead)
        assert (spawned.waiting, back.waiting) == (None, None)

    async def test_a_host_may_allow_all_or_deny_all(self, ledger: Ledger) -> None:
        """Then nobody is asked; and what is denied leaves no trace."""
        source, target = await near_and_far(ledger)
        ledger.become(replace(ledger.host, across=Across.ALLOW))
        allowed = await ledger.task(source, target)
        ledger.become(replace(ledger.host, across=Across.DENY))
        before = await ledger.last_change()

        await refused(ledger.task(source, target), Code.PERMISSION_DENIED)

        assert allowed.turn_id is not None
        assert await ledger.last_change() == before
        assert (await ledger.chain(allowed.message.chain_id)).messages == 1
        assert await ledger.asked() == ()

    async def test_what_the_session_holds_is_not_asked_about_again(self, ledger: Ledger) -> None:
        """One leave of a person is enough for one message."""
        source, target = await near_and_far(ledger)
        await ledger.admit(target, Inbound.HOLD)

        receipt = await ledger.task(source, target)
        await ledger.release(target)

        assert receipt.waiting is Waiting.POLICY
        assert await ledger.asked() == ()
        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == receipt.message.id

    async def test_a_release_answers_what_it_lets_through(self, ledger: Ledger) -> None:
        """Nobody is asked about messages that run already; what waits elsewhere keeps its question."""
        source, target = await near_and_far(ledger)
        other = await ledger.session("other", project="/other")
        await ledger.note(source, target)
        await ledger.note(source, other)

        freed = await ledger.release(target)

        assert freed == 1
        assert [one.target_session_id for one in await ledger.asked()] == [other]
        assert (await marks(ledger, target), await marks(ledger, other)) == ([None], [Waiting.ACROSS_PROJECTS])

    @pytest.mark.parametrize("how", ["removed", "cancelled", "expired", "target deleted"])
    async def test_a_question_about_nothing_is_not_asked(self, ledger: Ledger, how: str) -> None:
        """It ends with the last message that waited for its answer, however that one has left the queue."""
        source, target = await near_and_far(ledger)
        soon = ledger.clock.now_ms() + 1_000
        first, second = [await ledger.send(source, target, expires_at=soon) for _ in range(2)]
        await self._leave(ledger, how, first.message.id)
        between = len(await ledger.asked())

        await self._leave(ledger, how, second.message.id)

        assert between == (0 if how in ("expired", "target deleted") else 1)
        assert await ledger.asked() == ()
        assert await ledger.state(second.message.id) is MessageState.CANCELLED

    async def _leave(self, ledger: Ledger, how: str, message_id: MessageId) -> None:
        message = await ledger.read(message_id)
        waiting = [one for one in await ledger.queue(message.target_session_id) if one.message_id == message_id]
        match how:
            case "removed":
                await ledger.remove(message.target_session_id, waiting[0].id)
            case "cancelled":
                await ledger.cancel(message.target_session_id, message_id, by=message.source_session_id)
            case "expired":
                ledger.clock.advance(1)
                await ledger.expire()
            case _ if waiting:
                await ledger.store.run(delete_session, DeleteSession(message.target_session_id, None))
            case _:
                pass

    async def test_what_a_deleted_session_has_sent_is_still_asked_about(self, ledger: Ledger) -> None:
        """Its work runs on, so its question needs its answer."""
        source, target = await near_and_far(ledger)
        receipt = await ledger.task(source, target)
        await ledger.store.run(delete_session, DeleteSession(source, None))

        (asked,) = await ledger.asked()
        ((_, one, _, messages),) = await ledger.store.read(describe.pending, None)
        await ledger.answer(asked.id, Answer.ONCE)
        turn = await ledger.claim()

        assert (one.title, one.available, messages) == ("near", False, 1)
        assert turn is not None
        assert turn.message_id == receipt.message.id
        await ledger.settle(turn.id)
        assert await ledger.completion(receipt.message.id) is None
        assert await ledger.asked() == ()


class PairAnswerContract(LedgerContract):
    """The person lets through what waits, grants the pair for a time, or denies it."""

    async def test_once_lets_through_what_waits_and_nothing_more(self, ledger: Ledger) -> None:
        """The next message is a new question."""
        source, target = await near_and_far(ledger)
        sent = [await ledger.note(source, target) for _ in range(2)]
        (asked,) = await ledger.asked()

        answered = await ledger.answer(asked.id, Answer.ONCE)
        next_ = await ledger.note(source, target)

        assert answered == (2, False)
        assert await marks(ledger, target) == [None, None, Waiting.ACROSS_PROJECTS]
        assert next_.waiting is Waiting.ACROSS_PROJECTS
        (new,) = await ledger.asked()
        assert new.id != asked.id
        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == sent[0].message.id

    async def test_a_grant_lets_the_pair_write_until_its_time_is_over(self, ledger: Ledger) -> None:
        """By the ledger's clock, to the millisecond; then the person is asked again."""
        source, target = await near_and_far(ledger)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()

        await ledger.answer(asked.id, Answer.GRANT, seconds=60)
        (granted,) = await grants(ledger)
        ledger.clock.advance(59.999)
        within = await ledger.note(source, target)
        ledger.clock.advance(0.001)
        after = await ledger.note(source, target)

        assert (granted.source_session_id, granted.target_session_id) == (source, target)
        assert granted.expires_at - granted.created_at == 60_000  # noqa: PLR2004 - milliseconds
        assert within.waiting is None
        assert after.waiting is Waiting.ACROSS_PROJECTS
        assert await grants(ledger) == ()
        assert len(await ledger.asked()) == 1

    async def test_a_later_grant_takes_the_place_of_the_first(self, ledger: Ledger) -> None:
        """One pair, one grant: to revoke what is listed is to revoke all."""
        source, target = await near_and_far(ledger)
        for seconds in (1, 60):
            await ledger.note(source, target)
            (asked,) = await ledger.asked()
            await ledger.answer(asked.id, Answer.GRANT, seconds=seconds)
            ledger.clock.advance(2)
        (granted,) = await grants(ledger)
        await ledger.store.run(revoke, Revoke(granted.id, None))
        assert (await ledger.note(source, target)).waiting is Waiting.ACROSS_PROJECTS

    async def test_a_grant_is_for_one_pair_in_one_direction(self, ledger: Ledger) -> None:
        """Neither for the way back nor for the neighbours in the same folders."""
        source, target = await near_and_far(ledger)
        beside, behind = await ledger.session("B", project="/near"), await ledger.session("C", project="/far")
        for session in (beside, target):
            await ledger.begin(session)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.GRANT)
        receipts = [
            await ledger.note(*pair)
            for pair in ((source, target), (target, source), (beside, target), (source, behind))
        ]
        assert [receipt.waiting for receipt in receipts] == [None, *[Waiting.ACROSS_PROJECTS] * 3]

    @pytest.mark.guarantee("I7")
    async def test_what_is_denied_is_cancelled_and_answered_once(self, ledger: Ledger) -> None:
        """The sender is told why, in the message and in its one completion, and may ask again later."""
        source, target = await near_and_far(ledger)
        task, note = await ledger.task(source, target), await ledger.note(source, target)
        (asked,) = await ledger.asked()

        answered = await ledger.answer(asked.id, Answer.DENY)

        assert answered == (2, False)
        ended = [await ledger.read(receipt.message.id) for receipt in (task, note)]
        assert [message.state for message in ended] == [MessageState.CANCELLED] * 2
        assert all(message.error and message.error.startswith("PERMISSION_DENIED: ") for message in ended)
        completion = await ledger.completion(task.message.id)
        assert completion is not None
        told = json.loads(completion.content)
        assert (told["status"], told["error"]) == ("cancelled", ended[0].error)
        assert await ledger.completion(note.message.id) is None
        assert ((await ledger.places(source)).completions, (await ledger.places(target)).waiting) == (1, 0)
        assert await ledger.asked() == ()
        assert (await ledger.task(source, target)).waiting is Waiting.ACROSS_PROJECTS

    async def test_what_is_told_of_a_denied_message_waits_for_a_slot(self, ledger: Ledger) -> None:
        """A person who says no starts nothing by it."""
        source, target = await near_and_far(ledger)
        turn = await ledger.running(source)
        await ledger.task(source, target)
        await ledger.settle(turn and turn.id)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.DENY)
        assert await ledger.running(source) is None
        assert (await ledger.places(source)).completions == 1

    async def test_both_sessions_hear_of_what_was_denied(self, ledger: Ledger) -> None:
        """Whoever follows either of them sees the message end."""
        source, target = await near_and_far(ledger)
        message = (await ledger.task(source, target)).message
        (asked,) = await ledger.asked()
        before = await ledger.last_change()
        await ledger.answer(asked.id, Answer.DENY)
        changes = await ledger.look(lambda tx: tx.journal.changes(before, None, 100))
        assert {change.session_id for change in changes if change.ref == message.id} == {source, target}

    async def test_a_revoked_grant_lets_nothing_more_through(self, ledger: Ledger) -> None:
        """What was delivered under it stays, and to revoke it twice names nothing."""
        source, target = await near_and_far(ledger)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.GRANT)
        delivered = await ledger.note(source, target, slot=False)
        (granted,) = await grants(ledger)

        revoked = await ledger.store.run(revoke, Revoke(granted.id, None))
        after = await ledger.note(source, target)

        assert revoked is False
        assert after.waiting is Waiting.ACROSS_PROJECTS
        assert await marks(ledger, target) == [None, None, Waiting.ACROSS_PROJECTS]
        assert await ledger.state(delivered.message.id) is MessageState.QUEUED
        with pytest.raises(NotFoundError):
            await ledger.store.run(revoke, Revoke(granted.id, None))
        with pytest.raises(NotFoundError):
            await ledger.store.run(revoke, Revoke(GrantId("grt_none"), None))

    async def test_a_grant_holds_against_a_host_that_denies_the_rest(self, ledger: Ledger) -> None:
        """The person who has granted a pair has said more about it than the rule for all."""
        source, target = await near_and_far(ledger)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.GRANT)
        ledger.become(replace(ledger.host, across=Across.DENY))
        assert (await ledger.note(source, target)).waiting is None

    async def test_an_answer_is_given_once(self, ledger: Ledger) -> None:
        """A question that is answered, or was never asked, is not open."""
        source, target = await near_and_far(ledger)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.ONCE)
        for request in (asked.id, RequestId("req_none")):
            with pytest.raises(NotFoundError):
                await ledger.answer(request, Answer.GRANT)
        assert await grants(ledger) == ()

    @pytest.mark.guarantee("I14")
    @pytest.mark.parametrize("answer", list(Answer))
    async def test_a_repeated_answer_is_about_what_waited_then(self, ledger: Ledger, answer: Answer) -> None:
        """It tells how many messages that were, also after a restart; another answer under its key is a conflict."""
        source, target = await near_and_far(ledger)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()
        key = Key("person", "k", "f")
        first = await ledger.answer(asked.id, answer, key=key)
        await ledger.note(source, target)
        before = await ledger.last_change()

        again = await ledger.answer(asked.id, answer, key=key)
        unchanged = await ledger.last_change()
        await ledger.restart()
        later = await ledger.answer(asked.id, answer, key=key)

        assert first == (1, False)
        assert again == later == (1, True)
        assert unchanged == before
        with pytest.raises(IdempotencyConflictError):
            await ledger.answer(asked.id, answer, key=replace(key, fingerprint="other"))

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_revocation_ends_no_later_grant(self, ledger: Ledger) -> None:
        """The pair may have been granted again meanwhile."""
        source, target = await near_and_far(ledger)
        commands: list[Revoke] = []
        for _ in range(2):
            await ledger.note(source, target)
            (asked,) = await ledger.asked()
            await ledger.answer(asked.id, Answer.GRANT)
            (granted,) = await grants(ledger)
            commands.append(Revoke(granted.id, Key("person", "k", "f")))
            if len(commands) == 1:
                assert await ledger.store.run(revoke, commands[0]) is False

        assert await ledger.store.run(revoke, commands[0]) is True
        assert len(await grants(ledger)) == 1
