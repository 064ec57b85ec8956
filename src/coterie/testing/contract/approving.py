"""Tool calls that wait for a person: asked once, answered once, over with their turn."""

import pytest

from coterie.app.approve import AnswerCall, AskPerson, CallOf, Withdraw, answer_call, ask_person, is_granted, withdraw
from coterie.app.idempotency import Key
from coterie.app.release import Revoke, revoke
from coterie.core.codes import Code
from coterie.core.errors import ConflictError, IdempotencyConflictError, NotFoundError
from coterie.core.ids import RequestId, SessionId, TurnId
from coterie.core.permission import Mode, Risk, StoredMode
from coterie.ports.rows import CallAnswer, CallGrant, CallRequest
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


async def ask(ledger: Ledger, turn_id: TurnId, call: str = "one", subject: str = "a.txt") -> CallRequest | None:
    """Ask about a call of `write`."""
    asking = AskPerson(turn_id, call, "write", Risk.EDIT, subject, "+new", Mode.ASK)
    return await ledger.store.run(ask_person, asking)


async def asked(ledger: Ledger, turn_id: TurnId, call: str = "one", subject: str = "a.txt") -> RequestId:
    """The same, where the turn may ask."""
    found = await ask(ledger, turn_id, call, subject)
    assert found is not None
    return found.id


async def answer(
    ledger: Ledger, request: RequestId, given: CallAnswer = CallAnswer.ONCE, key: Key | None = None
) -> tuple[CallRequest, bool]:
    """Answer as a person."""
    return await ledger.store.run(answer_call, AnswerCall(request, given, "so it is", key))


async def pending(ledger: Ledger) -> list[RequestId]:
    """What is open."""
    return [one.id for one in await ledger.look(lambda tx: tx.approvals.pending(100))]


async def grants(ledger: Ledger) -> tuple[CallGrant, ...]:
    """What is granted."""
    return await ledger.look(lambda tx: tx.approvals.grants(100))


async def granted(ledger: Ledger, turn_id: TurnId, subject: str = "a.txt", tool: str = "write") -> bool:
    """Whether a turn may call without asking."""
    return await ledger.store.read(is_granted, CallOf(turn_id, tool, subject))


class ApprovingContract(LedgerContract):
    """A question is open while its turn runs and nobody has answered."""

    async def test_questions_are_open_oldest_first_until_they_are_answered(self, ledger: Ledger) -> None:
        """Whatever the session: a person looks at all of them at once."""
        one, other = [await ledger.begin(session) for session in await ledger.sessions("ab")]
        first, second = await asked(ledger, one), await asked(ledger, other)
        assert await pending(ledger) == [first, second]

        told, replayed = await answer(ledger, first)

        assert (told.turn_id, told.call_id, replayed) == (one, "one", False)
        assert await pending(ledger) == [second]
        found = await ledger.look(lambda tx: tx.approvals.request(first))
        assert found is not None
        assert (found.answer, found.note) == (CallAnswer.ONCE, "so it is")

    async def test_a_call_is_asked_about_once(self, ledger: Ledger) -> None:
        """Who cannot know whether the question was written asks again, and finds it, answered or not."""
        (session,) = await ledger.sessions("a")
        turn_id = await ledger.begin(session)
        first = await asked(ledger, turn_id)
        changes = await ledger.last_change()

        assert await asked(ledger, turn_id) == first
        assert await ledger.last_change() == changes
        assert await asked(ledger, turn_id, "two") != first
        await answer(ledger, first)
        again = await ask(ledger, turn_id)
        assert again is not None
        assert (again.id, again.answer) == (first, CallAnswer.ONCE)

    async def test_the_second_answer_comes_too_late(self, ledger: Ledger) -> None:
        """Of two people, or of two clicks, one decides."""
        (session,) = await ledger.sessions("a")
        request = await asked(ledger, await ledger.begin(session))
        await answer(ledger, request, CallAnswer.DENY)

        with pytest.raises(ConflictError):
            await answer(ledger, request)
        found = await ledger.look(lambda tx: tx.approvals.request(request))
        assert found is not None
        assert found.answer is CallAnswer.DENY

    async def test_a_call_that_is_given_up_leaves_no_open_question(self, ledger: Ledger) -> None:
        """And takes back no answer that was there before; pages that show the question are told."""
        (session,) = await ledger.sessions("a")
        turn_id = await ledger.begin(session)
        open_, allowed = await asked(ledger, turn_id), await asked(ledger, turn_id, "two")
        await answer(ledger, allowed)
        before = await ledger.last_change()

        for call in ("one", "two", "three"):
            await ledger.store.run(withdraw, Withdraw(turn_id, call))

        assert await pending(ledger) == []
        with pytest.raises(ConflictError):
            await answer(ledger, open_)
        found = await ledger.look(lambda tx: tx.approvals.request(allowed))
        assert found is not None
        assert found.answer is CallAnswer.ONCE
        changes = await ledger.look(lambda tx: tx.journal.changes(before, None, 10))
        assert [(change.kind, change.ref) for change in changes] == [("permission", open_)]

    @pytest.mark.guarantee("I14")
    async def test_an_answer_repeated_with_its_key_is_the_first_one(self, ledger: Ledger) -> None:
        """Also when the turn has ended since; another answer under the key is a conflict."""
        (session,) = await ledger.sessions("a")
        turn_id = await ledger.begin(session)
        request, key = await asked(ledger, turn_id), Key("person", "k", "one")
        first = await answer(ledger, request, CallAnswer.SESSION, key)
        await ledger.settle(turn_id)

        again = await answer(ledger, request, CallAnswer.SESSION, key)

        assert (first[1], again[1]) == (False, True)
        assert len(await grants(ledger)) == 1
        with pytest.raises(IdempotencyConflictError):
            await answer(ledger, request, CallAnswer.DENY, Key("person", "k", "other"))

    async def test_a_question_is_over_with_its_turn(self, ledger: Ledger) -> None:
        """Settled, cancelled, interrupted: nothing is left open, and no answer finds it."""
        settled, fenced, crashed = await ledger.sessions("abc")
        turns = [await ledger.begin(session) for session in (settled, fenced, crashed)]
        requests = [await asked(ledger, turn_id) for turn_id in turns]
        await ledger.settle(turns[0])
        await ledger.interrupt(fenced)
        assert await pending(ledger) == [requests[2]]
        await ledger.restart()
        await ledger.recover()

        assert await pending(ledger) == []
        for request in requests:
            with pytest.raises(NotFoundError):
                await answer(ledger, request)

    async def test_no_turn_asks_that_is_not_to_go_on(self, ledger: Ledger) -> None:
        """Settled, fenced, or of an earlier start of the host."""
        settled, fenced, crashed = await ledger.sessions("abc")
        turns = [await ledger.begin(session) for session in (settled, fenced, crashed)]
        await ledger.settle(turns[0])
        await ledger.interrupt(fenced)
        assert [await ask(ledger, turn_id) for turn_id in turns[:2]] == [None, None]
        await ledger.restart()
        assert await ask(ledger, turns[2]) is None
        await ledger.recover()
        assert await pending(ledger) == []

    async def test_an_answer_wakes_who_waits_and_who_watches(self, ledger: Ledger) -> None:
        """The turn that sleeps, and every page that shows the question."""
        (session,) = await ledger.sessions("a")
        turn_id = await ledger.begin(session)
        request = await asked(ledger, turn_id)
        before = await ledger.last_change()

        await answer(ledger, request)

        (change,) = await ledger.look(lambda tx: tx.journal.changes(before, None, 10))
        assert (change.session_id, change.kind, change.ref) == (session, "permission", request)


class CallGrantContract(LedgerContract):
    """Leave for a session is exact, listed and revocable, and never a stranger's."""

    async def test_leave_for_the_session_is_for_that_call_and_no_other(self, ledger: Ledger) -> None:
        """Tool, subject and session must all be the same; a long command line is like any other."""
        session, other = await ledger.sessions("ab")
        turn_id, elsewhere = await ledger.begin(session), await ledger.begin(other)
        long = "x" * 20_000
        for call, subject in (("one", "a.txt"), ("two", long), ("three", "a.txt")):
            await answer(ledger, await asked(ledger, turn_id, call, subject), CallAnswer.SESSION)

        assert [grant.subject for grant in await grants(ledger)] == [long, "a.txt"]
        assert await granted(ledger, turn_id)
        assert await granted(ledger, turn_id, long)
        assert not await granted(ledger, turn_id, "A.TXT")
        assert not await granted(ledger, turn_id, tool="edit")
        assert not await granted(ledger, elsewhere)

    async def test_a_revoked_or_deleted_grant_is_none(self, ledger: Ledger) -> None:
        """Neither is one whose session was deleted."""
        session, other = await ledger.sessions("ab")
        for one in (session, other):
            await answer(ledger, await asked(ledger, await ledger.begin(one)), CallAnswer.SESSION)
        mine = next(grant for grant in await grants(ledger) if grant.session_id == session)

        await ledger.store.run(revoke, Revoke(mine.id, None))
        await ledger.delete(other)

        assert await grants(ledger) == ()
        with pytest.raises(NotFoundError):
            await ledger.store.run(revoke, Revoke(mine.id, None))

    async def test_a_deleted_session_leaves_no_text_of_its_questions(self, ledger: Ledger) -> None:
        """They show pieces of files and commands; that something was asked and answered may be known."""
        session, other = await ledger.sessions("ab")
        gone, kept = [await asked(ledger, await ledger.begin(one)) for one in (session, other)]
        for one in (gone, kept):
            await answer(ledger, one)

        await ledger.delete(session)

        found = [await ledger.look(lambda tx, one=one: tx.approvals.request(one)) for one in (gone, kept)]
        texts = [(one.subject, one.shown, one.note) for one in found if one is not None]
        assert texts == [("", "", ""), ("a.txt", "+new", "so it is")]

    async def test_a_fork_inherits_no_leave(self, ledger: Ledger) -> None:
        """It is another session."""
        (session,) = await ledger.sessions("a")
        turn_id = await ledger.begin(session)
        await answer(ledger, await asked(ledger, turn_id), CallAnswer.SESSION)
        await ledger.settle(turn_id)

        fork = await ledger.fork(session)

        assert not await granted(ledger, await ledger.begin(fork))

    @pytest.mark.guarantee("I11")
    async def test_leave_does_not_count_below_the_mode_of_the_session(self, ledger: Ledger) -> None:
        """A turn for somebody who may do less asks each time, and can be let do it once only."""
        weak, strong = await _weak_and_strong(ledger)
        turn_id = await ledger.begin(strong)
        await answer(ledger, await asked(ledger, turn_id), CallAnswer.SESSION)
        assert await granted(ledger, turn_id)
        await ledger.settle(turn_id)
        receipt = await ledger.task(weak, strong)
        assert receipt.turn_id is not None

        found = await ask(ledger, receipt.turn_id)

        assert found is not None
        assert found.clamped_by == weak
        assert not await granted(ledger, receipt.turn_id)
        refusal = await refused(answer(ledger, found.id, CallAnswer.SESSION), Code.PERMISSION_DENIED)
        assert weak in refusal.message
        await answer(ledger, found.id, CallAnswer.ONCE)

    @pytest.mark.guarantee("I11")
    async def test_a_ceiling_that_was_passed_on_is_told_by_who_it_comes_from(self, ledger: Ledger) -> None:
        """Who could have done more itself is not the reason."""
        weak, strong = await _weak_and_strong(ledger)
        other = await ledger.session("c", mode=StoredMode.AUTO)
        await ledger.task(weak, strong)
        receipt = await ledger.task(strong, other)
        assert receipt.turn_id is not None

        found = await ask(ledger, receipt.turn_id)

        assert found is not None
        assert found.clamped_by == weak

    @pytest.mark.guarantee("I11")
    async def test_the_ceiling_of_a_completion_is_told_by_who_has_sent_what_it_answers(self, ledger: Ledger) -> None:
        """Not by who answers; also where no turn has worked on it."""
        weak, strong = await _weak_and_strong(ledger)
        await ledger.begin(strong)
        receipt = await ledger.task(weak, strong)
        running = await ledger.running(weak)
        assert running is not None
        await ledger.settle(running.id)
        await ledger.configure(weak, permission_mode=StoredMode.AUTO)
        await ledger.cancel(strong, receipt.message.id)
        told = await ledger.running(weak) or await ledger.claim()
        assert told is not None

        found = await ask(ledger, told.id)

        assert found is not None
        assert (found.session_id, found.clamped_by) == (weak, weak)


async def _weak_and_strong(ledger: Ledger) -> tuple[SessionId, SessionId]:
    weak = await ledger.session("a", mode=StoredMode.ASK)
    strong = await ledger.session("b", mode=StoredMode.AUTO)
    await ledger.begin(weak)
    return weak, strong
