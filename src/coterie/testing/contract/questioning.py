"""What agents ask a person, beside what they ask leave for: one kind of request, two kinds of answers."""

import pytest

from coterie.app.approve import AnswerCall, AskPerson, answer_call, ask_person
from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import RequestId, TurnId
from coterie.core.permission import Mode, Risk, StoredMode
from coterie.ports.rows import CallAnswer, CallRequest
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


async def asked(ledger: Ledger, turn_id: TurnId, *choices: str) -> RequestId:
    """Ask which one it shall be."""
    asking = AskPerson(turn_id, "one", "ask_user", Risk.LOW, "Which one?", "", None, choices)
    found = await ledger.store.run(ask_person, asking)
    assert found is not None
    return found.id


async def answer(ledger: Ledger, request: RequestId, given: CallAnswer, words: str = "") -> None:
    """Answer as a person."""
    await ledger.store.run(answer_call, AnswerCall(request, given, words, None))


async def found(ledger: Ledger, request: RequestId) -> CallRequest:
    """The request as it is now."""
    one = await ledger.look(lambda tx: tx.approvals.request(request))
    assert one is not None
    return one


class QuestioningContract(LedgerContract):
    """A question wants words; leave for a call does not."""

    @pytest.mark.parametrize("choices", [(), ("the old", "die neue: „ä“")])
    async def test_a_question_is_kept_with_its_choices_and_gets_words(
        self, ledger: Ledger, choices: tuple[str, ...]
    ) -> None:
        """Also where there is nothing to choose from: it stays a question."""
        (session,) = await ledger.sessions("a")
        request = await asked(ledger, await ledger.begin(session), *choices)
        (one,) = await ledger.look(lambda tx: tx.approvals.pending(9))
        assert (one.id, one.is_question, one.choices, one.subject) == (request, True, choices, "Which one?")

        await answer(ledger, request, CallAnswer.SAID, "  the new ")

        one = await found(ledger, request)
        assert (one.answer, one.note, one.choices) == (CallAnswer.SAID, "the new", choices)
        assert await ledger.look(lambda tx: tx.approvals.pending(9)) == ()

    async def test_leave_is_no_answer_to_a_question_and_words_are_no_leave(self, ledger: Ledger) -> None:
        """What does not fit changes nothing."""
        one, other = [await ledger.begin(session) for session in await ledger.sessions("ab")]
        question = await asked(ledger, one)
        call = await ledger.store.run(ask_person, AskPerson(other, "one", "bash", Risk.HIGH, "ls", "ls", Mode.ASK))
        assert call is not None
        assert not call.is_question
        for given in (CallAnswer.ONCE, CallAnswer.SESSION):
            with pytest.raises(InvalidArgumentError):
                await answer(ledger, question, given)
        with pytest.raises(InvalidArgumentError):
            await answer(ledger, call.id, CallAnswer.SAID, "yes")

        assert [(await found(ledger, request)).answer for request in (question, call.id)] == [None, None]
        await answer(ledger, question, CallAnswer.DENY)
        assert (await found(ledger, question)).answer is CallAnswer.DENY

    async def test_words_are_bounded_and_not_blank(self, ledger: Ledger) -> None:
        """As a prompt is."""
        (session,) = await ledger.sessions("a")
        request = await asked(ledger, await ledger.begin(session))
        most = ledger.host.limits.content_chars_max
        for words in ("", " \u200b", "a\x00", "\ud800"):
            with pytest.raises(InvalidArgumentError):
                await answer(ledger, request, CallAnswer.SAID, words)
        await refused(answer(ledger, request, CallAnswer.SAID, "x" * (most + 1)), Code.LIMIT_EXCEEDED)

        await answer(ledger, request, CallAnswer.SAID, "x" * most)

        assert len((await found(ledger, request)).note) == most

    async def test_a_question_is_below_no_ceiling(self, ledger: Ledger) -> None:
        """Whoever the turn works for, to ask is no right that could be missing."""
        weak = await ledger.session("a", mode=StoredMode.ASK)
        strong = await ledger.session("b", mode=StoredMode.AUTO)
        await ledger.begin(weak)
        receipt = await ledger.task(weak, strong)
        assert receipt.turn_id is not None

        one = await found(ledger, await asked(ledger, receipt.turn_id))

        assert (one.clamped_by, one.mode) == (None, Mode.ASK)

    async def test_a_deleted_session_leaves_no_word_of_its_questions(self, ledger: Ledger) -> None:
        """Neither what was asked nor the choices nor what the person has said; that something was may be known."""
        (session,) = await ledger.sessions("a")
        request = await asked(ledger, await ledger.begin(session), "the old", "the new")
        await answer(ledger, request, CallAnswer.SAID, "the new")

        await ledger.delete(session)

        one = await found(ledger, request)
        assert (one.subject, one.choices, one.note, one.is_question) == ("", (), "", True)
