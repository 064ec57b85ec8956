"""Messages that are worth starting for a time only."""

from dataclasses import replace
from typing import Any, Final

import pytest

from coterie.app.expire import BATCH, anything_due
from coterie.app.idempotency import Key
from coterie.app.receipt import Receipt
from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import MessageId, SessionId
from coterie.core.inbound import Inbound
from coterie.core.ledger.message import Joined, Message
from coterie.core.ledger.states import MessageState
from coterie.core.session.session import Held
from coterie.ports.feed import READY
from coterie.testing.contract.current_turn import offer, open_turn, told
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger

LIFE_S: Final = 60.0
"""How long the messages of these tests are worth starting."""


async def brief(ledger: Ledger, source: SessionId, target: SessionId, **changes: Any) -> Receipt:
    """Send a task that is worth starting for `LIFE_S`, and that waits."""
    expires_at = ledger.clock.now_ms() + round(LIFE_S * 1000)
    return await ledger.send(source, target, **{"expires_at": expires_at, "slot": False} | changes)


async def _queued(ledger: Ledger, number: int = 1) -> tuple[SessionId, SessionId, list[MessageId]]:
    """A running sender, its idle target, and messages that wait there."""
    source, target = await ledger.sessions("AB")
    await ledger.begin(source)
    ledger.limit(inbox_max=max(number, 8) + 1, chain_messages_max=max(number, 8) + 1)
    receipts = [await brief(ledger, source, target) for _ in range(number)]
    return source, target, [receipt.message.id for receipt in receipts]


async def _is_told(ledger: Ledger, message_id: MessageId) -> Message:
    """Assert that a message has expired; returns the one completion that says so."""
    message = await ledger.read(message_id)
    assert (message.state, message.turn_id, message.joined) == (MessageState.CANCELLED, None, None)
    assert (message.error or "").startswith("EXPIRED: ")
    completion = await ledger.completion(message_id)
    assert completion is not None
    assert '"EXPIRED: ' in completion.content
    return completion


class ExpiringContract(LedgerContract):
    """A queued message whose time is over is cancelled and its sender told; what runs, or answers, never expires."""

    @pytest.mark.parametrize("late_ms", [0, 1, 86_400_000])
    async def test_a_time_that_is_over_is_refused(self, ledger: Ledger, late_ms: int) -> None:
        """It could never start, and its sender can still change that; nothing is written."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        before = await ledger.last_change()
        with pytest.raises(InvalidArgumentError, match="expiresAt"):
            await brief(ledger, source, target, expires_at=ledger.clock.now_ms() - late_ms)
        assert await ledger.last_change() == before

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_send_is_answered_after_its_time_too(self, ledger: Ledger) -> None:
        """It asks what became of the first one."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        when, key = ledger.clock.now_ms() + 1, Key(source, "k", "f")
        first = await brief(ledger, source, target, expires_at=when, key=key)
        ledger.clock.advance(LIFE_S)
        again = await brief(ledger, source, target, expires_at=when, key=key)
        assert (again.message.id, again.replayed) == (first.message.id, True)

    @pytest.mark.guarantee("I7")
    async def test_the_audit_ends_what_nobody_started_in_time(self, ledger: Ledger) -> None:
        """It waits for no slot; its place is free, and its sender is told once."""
        source, target, (message_id,) = await _queued(ledger)
        ledger.clock.advance(LIFE_S)

        ended = [await ledger.expire() for _ in range(2)]

        assert ended == [1, 0]
        completion = await _is_told(ledger, message_id)
        assert (completion.state, completion.target_session_id) == (MessageState.QUEUED, source)
        assert (await ledger.places(target)).waiting == 0
        assert (await ledger.known(target)).ready is None
        assert await ledger.claim() is None

    async def test_its_time_is_over_exactly_then(self, ledger: Ledger) -> None:
        """Case 206: not a moment earlier, and not only at some later look."""
        _, _, (message_id,) = await _queued(ledger)
        seen: list[tuple[bool, int]] = []
        for seconds in (LIFE_S - 0.001, 0.001):
            ledger.clock.advance(seconds)
            due = await ledger.store.read(anything_due, ledger.clock.now_ms())
            seen.append((due, await ledger.expire()))
        assert seen == [(False, 0), (True, 1)]
        await _is_told(ledger, message_id)

    async def test_a_clock_that_steps_back_gives_no_time_back(self, ledger: Ledger) -> None:
        """The ledger's time goes on from what was written last."""
        source, target, (message_id,) = await _queued(ledger)
        ledger.clock.advance(LIFE_S)
        await ledger.prompt(target, slot=False)
        ledger.clock.set_back(LIFE_S)
        await ledger.note(source, target, slot=False)
        assert await ledger.expire() == 1
        await _is_told(ledger, message_id)

    async def test_a_claim_passes_by_what_it_finds_too_late(self, ledger: Ledger) -> None:
        """It is not started because the audit has not come round yet, and what is behind it starts."""
        source, target, (message_id,) = await _queued(ledger)
        fresh = await ledger.task(source, target, slot=False)
        ledger.clock.advance(LIFE_S)

        turn = await ledger.claim()

        assert turn is not None
        assert turn.message_id == fresh.message.id
        await _is_told(ledger, message_id)

    async def test_the_end_of_a_turn_passes_by_it_as_well(self, ledger: Ledger) -> None:
        """The claim that is fused with a settle is no other claim."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        turn_id = await ledger.begin(target)
        late, fresh = await brief(ledger, source, target), await ledger.task(source, target)
        ledger.clock.advance(LIFE_S)

        following = (await ledger.settle(turn_id)).next

        assert following is not None
        assert following.message_id == fresh.message.id
        await _is_told(ledger, late.message.id)

    async def test_one_claim_ends_eight_and_calls_for_the_next(self, ledger: Ledger) -> None:
        """A transaction stays short, whatever has piled up; the wake-up brings the rest."""
        source, target, message_ids = await _queued(ledger, 10)
        fresh = await ledger.task(source, target, slot=False)
        ledger.clock.advance(LIFE_S)
        ledger.feed.topics = []

        first, called = await ledger.claim(), READY in ledger.feed.topics
        states = [await ledger.state(message_id) for message_id in message_ids]
        second = await ledger.claim()

        assert (first, called) == (None, True)
        assert states == [MessageState.CANCELLED] * 8 + [MessageState.QUEUED] * 2
        assert second is not None
        assert second.message_id == fresh.message.id
        for message_id in message_ids:
            await _is_told(ledger, message_id)

    async def test_the_audit_ends_a_batch_at_once(self, ledger: Ledger) -> None:
        """And says how many, so that it knows whether to look again."""
        _, _, message_ids = await _queued(ledger, BATCH + 2)
        ledger.clock.advance(LIFE_S)
        ended = [await ledger.expire() for _ in range(3)]
        assert ended == [BATCH, 2, 0]
        for message_id in message_ids:
            await _is_told(ledger, message_id)

    async def test_what_has_started_does_not_expire(self, ledger: Ledger) -> None:
        """The time is for starting; work is not thrown away."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await brief(ledger, source, target, slot=True)
        ledger.clock.advance(2 * LIFE_S)
        assert await ledger.expire() == 0
        await ledger.settle(receipt.turn_id)
        assert await ledger.state(receipt.message.id) is MessageState.COMPLETED

    async def test_an_answer_does_not_expire(self, ledger: Ledger) -> None:
        """Whoever asked is told, however late."""
        source, _, (message_id,) = await _queued(ledger)
        ledger.clock.advance(LIFE_S)
        await ledger.expire()
        completion = await _is_told(ledger, message_id)
        ledger.clock.advance(1000 * LIFE_S)
        assert completion.expires_at is None
        assert await ledger.expire() == 0
        assert (await ledger.places(source)).completions == 1

    async def test_an_offer_that_is_too_late_joins_nothing(self, ledger: Ledger) -> None:
        """The running turn is not shown what its sender no longer wants done."""
        source, target, turn_id = await open_turn(ledger)
        receipt = await brief(ledger, source, target)
        offered = await offer(
            ledger, source, target, notify=True, expires_at=ledger.clock.now_ms() + round(LIFE_S * 1000)
        )
        ledger.clock.advance(LIFE_S)

        took = await ledger.take_news(turn_id)

        assert not took
        assert await told(ledger, target) == []
        await _is_told(ledger, offered.message.id)
        # What was never offered is not the turn's to end.
        assert await ledger.state(receipt.message.id) is MessageState.QUEUED

    async def test_what_a_turn_has_taken_in_does_not_expire(self, ledger: Ledger) -> None:
        """It is being worked on, and ends with its turn."""
        source, target, turn_id = await open_turn(ledger)
        expires_at = ledger.clock.now_ms() + round(LIFE_S * 1000)
        receipt = await offer(ledger, source, target, expires_at=expires_at)
        await ledger.take_news(turn_id)
        ledger.clock.advance(LIFE_S)

        ended = await ledger.expire()
        await ledger.settle(turn_id, "done")

        message = await ledger.read(receipt.message.id)
        assert ended == 0
        assert (message.joined, message.state, message.result) == (Joined.ACCEPTED, MessageState.COMPLETED, "done")

    @pytest.mark.parametrize("how", ["held", "policy"])
    async def test_what_waits_for_a_person_expires_too(self, ledger: Ledger, how: str) -> None:
        """The audit needs no slot and no release, and starts nothing by it."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        if how == "policy":
            await ledger.admit(target, Inbound.HOLD)
        receipt = await brief(ledger, source, target)
        if how == "held":
            await ledger.change(lambda tx: tx.sessions.hold(target, Held.RESTART))
        ledger.clock.advance(LIFE_S)
        assert await ledger.expire() == 1
        await _is_told(ledger, receipt.message.id)

    @pytest.mark.guarantee("I9")
    @pytest.mark.parametrize("resume", [False, True])
    async def test_a_start_ends_what_is_over_and_runs_nothing_for_it(self, ledger: Ledger, *, resume: bool) -> None:
        """Before anything may run; its completion waits for a release, unless the host is set to go on by itself."""
        source, target, (late,) = await _queued(ledger)
        fresh = await ledger.task(source, target, slot=False)
        running = await ledger.running(source)
        assert running is not None
        await ledger.settle(running.id, slot=False)
        ledger.clock.advance(LIFE_S)
        ledger.become(replace(ledger.host, resume=resume))

        await ledger.restart()

        completion = await _is_told(ledger, late)
        assert completion.state is MessageState.QUEUED
        assert await ledger.state(fresh.message.id) is MessageState.QUEUED
        held = [(await ledger.known(session)).held for session in (source, target)]
        assert held == [None if resume else Held.RESTART] * 2
        assert (await ledger.claim() is None) is not resume

    async def test_a_failure_does_not_turn_into_expiry(self, ledger: Ledger) -> None:
        """What ended before its time keeps its outcome (I5)."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        failed = await brief(ledger, source, target, slot=True)
        await ledger.settle(failed.turn_id, code=Code.PROVIDER_ERROR)
        cancelled = await brief(ledger, source, target)
        await ledger.cancel(target, cancelled.message.id)
        before = [await ledger.read(receipt.message.id) for receipt in (failed, cancelled)]
        ledger.clock.advance(LIFE_S)
        assert await ledger.expire() == 0
        assert [await ledger.read(receipt.message.id) for receipt in (failed, cancelled)] == before
