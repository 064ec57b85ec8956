"""Faults that hosts of agents are known for, and what this one does instead; each test names its case.

All cases and their numbers are in `tests/test_cases.py`.
"""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from coterie.app.claim_turn import claim_turn
from coterie.app.fork_session import ForkSession, fork_session
from coterie.app.idempotency import Key
from coterie.app.send_message import send_message
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.errors import HostError, IdempotencyConflictError
from coterie.core.ids import MessageId, NewId, SessionId
from coterie.core.ledger.states import MessageState
from coterie.core.permission import StoredMode
from coterie.core.session.session import Held
from coterie.core.turn.items import Reply, SessionText
from coterie.core.turn.states import TurnState
from coterie.ports.store import C, R, Tx, UseCase
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger

STEPS_MAX: Final = 60
"""More than any of the use cases here has."""


async def answers(ledger: Ledger, session: SessionId) -> list[tuple[MessageId | None, str]]:
    """What a session was told: which of its messages, and what came of it, in the order of its transcript."""
    found = await ledger.look(lambda tx: tx.items.page(session, 0, 512))
    items = [one.item for one in found if isinstance(one.item, SessionText) and one.item.origin.kind == "completion"]
    told = [(item.origin.reply_to_message_id, json.loads(item.content)) for item in items]
    return [(message_id, body.get("result") or body["status"]) for message_id, body in told]


async def drain(ledger: Ledger, *running: SessionId) -> None:
    """End what sessions run, then give a slot to whatever can use one, until nothing is ready."""
    for session in running:
        if (turn := await ledger.running(session)) is not None:
            await ledger.settle(turn.id, slot=False)
    while (turn := await ledger.claim()) is not None:
        await ledger.settle(turn.id, slot=False)


class AnsweredOnceContract(LedgerContract):
    """Every message is answered once, and to the session that sent it."""

    async def test_an_answer_that_cannot_be_given_yet_waits_and_is_shown(self, ledger: Ledger) -> None:
        """Cases 4, 17 and 122: no start counts as a try, nothing is ever given up, and what waits is seen by all."""
        source, target = await ledger.sessions("AB")
        receipt = await ledger.task(source, target)
        await ledger.settle(receipt.turn_id, slot=False)

        for _ in range(5):
            await ledger.restart()
            completion = await ledger.completion(receipt.message.id)
            assert completion is not None
            assert completion.state is MessageState.QUEUED
            assert [one.message_id for one in await ledger.queue(source)] == [completion.id]
            assert (await ledger.known(source)).held is Held.RESTART
        await ledger.release()
        await drain(ledger)

        assert await answers(ledger, source) == [(receipt.message.id, "done")]

    async def test_each_message_to_one_session_has_an_answer_of_its_own(self, ledger: Ledger) -> None:
        """Cases 8 and 10: an answer belongs to its turn, whatever came before it, and over a restart."""
        source, worker = await ledger.sessions("AB")
        await ledger.begin(source)
        sent = [await ledger.task(source, worker) for _ in range(4)]
        turn_id = sent[0].turn_id
        for text in ("first", "second"):
            following = (await ledger.settle(turn_id, text)).next
            assert following is not None
            turn_id = following.id
        await ledger.restart()
        await ledger.release()
        await drain(ledger)

        told = await answers(ledger, source)
        assert told == [
            (receipt.message.id, text)
            for receipt, text in zip(sent, ("first", "second", "interrupted", "done"), strict=True)
        ]
        assert len({(await ledger.read(receipt.message.id)).turn_id for receipt in sent}) == 4

    @pytest.mark.parametrize("seed", range(3))
    async def test_answers_that_come_at_once_while_their_sender_works_all_arrive(
        self, ledger: Ledger, seed: int
    ) -> None:
        """Case 9: to write an answer and to see whether its sender is free are one step."""
        source, *workers = await ledger.sessions("S" + "w" * 50)
        turn_id = await ledger.begin(source)
        sent = [await ledger.task(source, worker) for worker in workers]
        ends = [(receipt.turn_id, False) for receipt in sent]
        # The sender's own turn ends in the midst of them, with a slot for what follows.
        ends.insert(random.Random(seed).randrange(50), (turn_id, True))  # noqa: S311 - it guards nothing

        await asyncio.gather(*(ledger.settle(one, slot=slot) for one, slot in ends))
        await drain(ledger, source)

        told = await answers(ledger, source)
        assert sorted(told) == sorted((receipt.message.id, "done") for receipt in sent)
        assert (await ledger.places(source)).waiting == 0

    async def test_a_fork_is_told_of_what_it_has_sent_and_of_nothing_else(self, ledger: Ledger) -> None:
        """Case 31: whatever the session does that it was forked from; what that one has sent stays its own."""
        for busy in (False, True):
            old, worker = await ledger.sessions("AB")
            before = await ledger.task(old, worker)
            fork = (await ledger.store.run(fork_session, ForkSession(old, None, None, None)))[0].id
            if busy:
                await ledger.begin(old)
            sent = [await ledger.spawn(fork), await ledger.task(fork, worker)]

            await drain(ledger, worker, sent[0].message.target_session_id, old)

            assert await answers(ledger, old) == [(before.message.id, "done")]
            assert sorted(await answers(ledger, fork)) == sorted((one.message.id, "done") for one in sent)

    async def test_an_answer_goes_one_level_up_and_no_further(self, ledger: Ledger) -> None:
        """Cases 32 and 34: the one who asks is told, not the root of all, and also of what is asked once more."""
        root, middle, leaf = await ledger.sessions("ABC")
        await ledger.begin(root)
        first = await ledger.task(root, middle)
        second = await ledger.task(middle, leaf)
        await ledger.settle(second.turn_id, "once", slot=False)
        await ledger.settle(first.turn_id, "later", slot=False)
        notice = await ledger.claim()
        assert notice is not None
        again = await ledger.task(middle, leaf)
        await ledger.settle(again.turn_id, "twice", slot=False)

        await drain(ledger, middle, root)

        assert await answers(ledger, root) == [(first.message.id, "later")]
        assert await answers(ledger, middle) == [(second.message.id, "once"), (again.message.id, "twice")]
        assert await answers(ledger, leaf) == []

    async def test_no_answer_is_addressed_to_who_gives_it(self, ledger: Ledger) -> None:
        """Case 35: whatever a use case has mixed up, such a row cannot be written."""
        source, target = await ledger.sessions("AB")
        receipt = await ledger.task(source, target)
        await ledger.settle(receipt.turn_id, slot=False)
        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        swapped = replace(completion, id=MessageId("msg_swapped"), target_session_id=completion.source_session_id)

        with pytest.raises(HostError):
            await ledger.change(lambda tx: tx.messages.add(swapped))

        assert await ledger.look(lambda tx: tx.messages.get(swapped.id)) is None

    async def test_another_model_and_a_fork_change_nothing_about_what_is_owed(self, ledger: Ledger) -> None:
        """Case 12: an answer stands in the ledger and not in what a model is shown, so nothing of that can lose it."""
        source, worker = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, worker)

        await ledger.configure(source, model="local/another", permission_mode=StoredMode.AUTO, title="renamed")
        await ledger.store.run(fork_session, ForkSession(source, None, 1, None))
        await ledger.settle(receipt.turn_id, slot=False)
        await drain(ledger, source)

        assert await answers(ledger, source) == [(receipt.message.id, "done")]

    async def test_a_late_answer_has_a_turn_of_its_own_behind_what_a_person_says(self, ledger: Ledger) -> None:
        """Case 59: it is never put into a person's prompt, however long it has waited; and it does not get lost."""
        source, worker = await ledger.sessions("AB")
        receipt = await ledger.task(source, worker)
        await ledger.settle(receipt.turn_id, slot=False)
        ledger.clock.advance(7 * 3600)
        prompted = await ledger.prompt(source, "what now?", slot=False)

        first, second = None, None
        if (first := await ledger.claim()) is not None:
            second = (await ledger.settle(first.id)).next

        assert first is not None
        assert second is not None
        assert (first.input_id, first.kind, second.kind) == (prompted.input_id, "prompt", "completion")
        turns = [one.turn_id for one in await ledger.transcript(source)]
        assert turns == [first.id, first.id, second.id]

    @pytest.mark.parametrize("length", [0, 1, 1_999, 2_000, 2_001, 12_000])
    async def test_the_answer_that_is_told_is_the_result_that_is_kept(self, ledger: Ledger, length: int) -> None:
        """Case 113: it is taken once, before the answer is written, so no later look finds more or less."""
        chance = random.Random(length)  # noqa: S311 - it guards nothing
        text = "".join(chance.choices("aé\u20ac\U0001f600 \n", k=length))
        source, worker = await ledger.sessions("AB")
        receipt = await ledger.task(source, worker)

        await ledger.settle(receipt.turn_id, text, slot=False)

        message, completion = await ledger.read(receipt.message.id), await ledger.completion(receipt.message.id)
        assert completion is not None
        told = json.loads(completion.content)
        quoted: str = told.get("result", "")
        assert message.result == text
        assert quoted == text or (len(text) > 2_000 >= len(quoted) and told["truncated"])
        assert (quoted[:600], quoted[len(quoted) - 300 :]) == (text[:600], text[max(0, len(text) - 300) :])
        assert message.turn_id is not None
        assert told["turnId"] == message.turn_id

    async def test_the_notice_of_a_very_long_answer_has_both_of_its_ends(self, ledger: Ledger) -> None:
        """Case 116: its beginning, its end, how long it is, and the ids by which the whole is found."""
        source, target = await ledger.sessions("AB")
        receipt = await ledger.task(source, target)
        text = "\n".join(["first line", *("x" * 99 for _ in range(10_000)), "last line"])

        await ledger.settle(receipt.turn_id, text, slot=False)

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        told = json.loads(completion.content)
        assert len(told["result"]) <= 2_000
        assert told["result"].startswith("first line\nxxx")
        assert told["result"].endswith("xxx\nlast line")
        assert f"{len(text)} characters in all" in told["result"]
        assert told["truncated"]
        assert (told["workerSessionId"], told["messageId"], told["turnId"]) == (
            target,
            receipt.message.id,
            receipt.turn_id,
        )
        assert Reply(text) in [one.item for one in await ledger.transcript(target)]


class _BrokenError(Exception):
    """What a tripwire raises."""


class _Tripwire:
    """A transaction that breaks at one of its steps: the calls of its parts are counted."""

    def __init__(self, wrapped: object, steps: list[None], most: int) -> None:
        self._wrapped, self._steps, self._most = wrapped, steps, most

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if name == "host":
            return found
        if not callable(found):
            return _Tripwire(found, self._steps, self._most)

        def step(*args: Any, **params: Any) -> Any:
            result = found(*args, **params)
            self._steps.append(None)
            if len(self._steps) == self._most:
                raise _BrokenError
            return result

        return step


def broken_at(use_case: UseCase[C, R], step: int) -> UseCase[C, R]:
    """*use_case*, but for the crash right behind its *step*-th look or write."""

    def broken(tx: Tx, command: C, now: int, new_id: NewId) -> R:
        return use_case(cast("Tx", _Tripwire(tx, [], step)), command, now, new_id)

    return broken


class HalfDoneContract(LedgerContract):
    """A delivery and the mark that it was made are one; whoever asks again gets the first answer."""

    async def _seen(self, ledger: Ledger, *sessions: SessionId) -> list[object]:
        seen: list[object] = [await ledger.last_change()]
        for session in sessions:
            seen += [await ledger.queue(session), await ledger.transcript(session), await ledger.running(session)]
        return seen

    async def _break_everywhere(
        self, ledger: Ledger, sessions: list[SessionId], attempt: Callable[[int], Awaitable[object]]
    ) -> int:
        """Try with a crash at each step in turn, until one try has fewer steps; returns how many crashes there were."""
        before = await self._seen(ledger, *sessions)
        for step in range(1, STEPS_MAX):
            try:
                await attempt(step)
            except _BrokenError:
                assert await self._seen(ledger, *sessions) == before
            else:
                assert await self._seen(ledger, *sessions) != before
                return step - 1
        raise AssertionError("it never came to its end")

    async def test_a_delivery_that_breaks_off_anywhere_was_not_made_and_is_made_once(self, ledger: Ledger) -> None:
        """Cases 18, 23 and 119: the queue, the turn, its first item and the message's state change together or not."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target, slot=False)

        crashes = await self._break_everywhere(
            ledger, [source, target], lambda step: ledger.store.run(broken_at(claim_turn, step), None)
        )

        assert crashes > 8
        (item,) = [one.item for one in await ledger.transcript(target)]
        assert isinstance(item, SessionText)
        assert item.origin.message_id == receipt.message.id

    async def test_an_answer_that_breaks_off_anywhere_was_not_given_and_is_given_once(self, ledger: Ledger) -> None:
        """Case 23: an outcome without its answer cannot be, nor an answer twice."""
        source, target = await ledger.sessions("AB")
        receipt = await ledger.task(source, target)
        assert receipt.turn_id is not None
        command = SettleTurn(receipt.turn_id, (Reply("done"),))

        crashes = await self._break_everywhere(
            ledger, [source, target], lambda step: ledger.store.run(broken_at(settle_turn, step), command)
        )
        await drain(ledger, source)

        assert crashes > 8
        assert await answers(ledger, source) == [(receipt.message.id, "done")]

    async def test_a_request_whose_answers_are_lost_is_done_once(self, ledger: Ledger) -> None:
        """Case 22: no answer in time is no failure; with its key it may be asked for as often as one likes."""
        source, target = await ledger.sessions("AB")
        command = replace(ledger.message(await ledger.sender(source), target), key=Key("person", "k", "f"))
        for _ in range(5):
            lost = asyncio.ensure_future(ledger.store.run(send_message, command))
            await asyncio.sleep(0)
            lost.cancel()
            await asyncio.gather(lost, return_exceptions=True)

        await ledger.store.run(send_message, command)
        receipt = await ledger.store.run(send_message, command)

        assert receipt.replayed
        assert len(await ledger.transcript(target)) == 1
        assert [one.turn_id for one in await ledger.transcript(target)] == [receipt.turn_id]

    async def test_twenty_equal_requests_at_once_are_one(self, ledger: Ledger) -> None:
        """Cases 29 and 30: all are told the same id, also after a restart; another body under the key is a conflict."""
        source, target = await ledger.sessions("AB")
        key = Key("person", "k", "f")
        command = replace(ledger.message(await ledger.sender(source), target), key=key)

        receipts = await asyncio.gather(*(ledger.store.run(send_message, command) for _ in range(20)))
        await ledger.restart()
        later = await ledger.store.run(send_message, command)
        with pytest.raises(IdempotencyConflictError):
            await ledger.store.run(send_message, replace(command, content="other", key=replace(key, fingerprint="g")))

        assert {receipt.message.id for receipt in (*receipts, later)} == {receipts[0].message.id}
        assert sorted(receipt.replayed for receipt in receipts) == [False, *[True] * 19]
        assert len(await ledger.transcript(target)) == 1

    @pytest.mark.parametrize("first", ["settle", "cancel"])
    async def test_a_completion_and_a_cancel_at_once_leave_one_end(self, ledger: Ledger, first: str) -> None:
        """Case 96: whichever comes first, turn, message and answer tell one story, and nothing changes it any more."""
        source, worker = await ledger.sessions("AB")
        receipt = await ledger.task(source, worker)
        settle, cancel = ledger.settle(receipt.turn_id, slot=False), ledger.cancel(worker)

        await asyncio.gather(*((settle, cancel) if first == "settle" else (cancel, settle)))
        await ledger.settle(receipt.turn_id, "late", code=Code.INTERNAL, slot=False)
        await drain(ledger)

        turn, message = await ledger.turn(receipt.turn_id), await ledger.read(receipt.message.id)
        assert turn.state.value == message.state.value
        told = "done" if turn.state is TurnState.COMPLETED else turn.state.value
        assert await answers(ledger, source) == [(receipt.message.id, told)]
