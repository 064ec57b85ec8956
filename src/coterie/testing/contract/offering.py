"""Offers to a running turn end with it, and a message leaves the queue in one way."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.errors import ConflictError
from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.ledger.message import Joined
from coterie.core.ledger.states import MessageState
from coterie.testing.contract.arranging import orders
from coterie.testing.contract.current_turn import offer, open_turn, told
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.contract.steering import ANSWERED, End
from coterie.testing.ledger import Ledger

ACTS: Final = ("take", "end", "stop", "claim", "cancel", "remove", "wait", "expire")
"""What may happen to an offered message and to the turn that it was offered to."""
WAIT_S: Final = 60.0
"""How long the message is worth starting."""


class OfferContract(LedgerContract):
    """An offer ends with the turn that it was made to, and a message leaves the queue in one way."""

    @pytest.mark.guarantee("I2")
    @pytest.mark.parametrize("end", ANSWERED.values(), ids=ANSWERED)
    async def test_an_offer_that_came_too_late_is_an_ordinary_message(self, ledger: Ledger, end: End) -> None:
        """Claimed once, and never by a later turn that it was not sent for."""
        source, target, turn_id = await open_turn(ledger)
        receipt = await offer(ledger, source, target)
        await ledger.prompt(target, "next")

        await end(ledger, turn_id)
        late = await ledger.take_news(turn_id)
        next_turn = await ledger.claim()
        assert next_turn is not None
        taken = await ledger.take_news(next_turn.id)
        waiting = await ledger.state(receipt.message.id)
        await ledger.settle(next_turn.id, slot=False)
        turn = await ledger.claim()

        assert (late, next_turn.kind, taken, waiting) == (False, "prompt", False, MessageState.QUEUED)
        assert turn is not None
        assert (turn.message_id, turn.kind) == (receipt.message.id, "message")
        assert (await ledger.read(receipt.message.id)).joined is Joined.CLAIMED
        assert await ledger.claim() is None

    async def test_an_offered_completion_that_is_read_first_is_absorbed(self, ledger: Ledger) -> None:
        """The tool result has told it, so it is not told again at the next request."""
        source, worker = await ledger.sessions("AB")
        await ledger.configure(source, current_turn=True)
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, worker)
        await ledger.settle(receipt.turn_id)

        await ledger.append(turn_id, receipt.message.id)
        took = await ledger.take_news(turn_id)

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        assert (completion.joined, took) == (Joined.ABSORBED, False)
        assert await told(ledger, source) == []

    @pytest.mark.guarantee("I2")
    @orders
    @given(st.lists(st.sampled_from(ACTS), max_size=7))
    async def test_in_any_order_it_leaves_the_queue_in_one_way(self, ledger: Ledger, acts: list[str]) -> None:
        """Acceptance, claim, expiry, cancel and removal exclude each other."""
        fate = await _Fate.begin(ledger)
        for act in acts:
            await fate.do(act)
            await fate.check()
        await fate.finish()


class _Fate:
    """What becomes of one offered message, as the rules say, beside what becomes of it in the ledger."""

    def __init__(self, ledger: Ledger, target: SessionId, turn_id: TurnId, message_id: MessageId) -> None:
        self._ledger, self._target, self._first, self._message_id = ledger, target, turn_id, message_id
        self._running: TurnId | None = turn_id
        self._over = False
        self._left: str | None = None
        """How it has left the queue."""

    @classmethod
    async def begin(cls, ledger: Ledger) -> "_Fate":
        """Offer a message to a turn."""
        source, target, turn_id = await open_turn(ledger)
        expires_at = ledger.clock.now_ms() + round(WAIT_S * 1000)
        receipt = await offer(ledger, source, target, notify=True, expires_at=expires_at)
        return cls(ledger, target, turn_id, receipt.message.id)

    async def do(self, act: str) -> None:
        """Let one thing happen."""
        await {
            "take": self._take,
            "end": self._end,
            "stop": self._stop,
            "claim": self._claim,
            "cancel": self._cancel,
            "remove": self._remove,
            "wait": self._wait,
            "expire": self._expire,
        }[act]()

    def _leaves(self, how: str) -> None:
        self._left = self._left or ("expired" if self._over and how in {"accepted", "claimed"} else how)

    async def _take(self) -> None:
        await self._ledger.take_news(self._first)
        if self._running == self._first:
            self._leaves("accepted")

    async def _end(self) -> None:
        if self._running is not None:
            await self._ledger.settle(self._running, slot=False)
            self._running = None

    async def _stop(self) -> None:
        if self._running is not None:
            await self._ledger.interrupt(self._target)
            await self._end()

    async def _claim(self) -> None:
        turn = await self._ledger.claim()
        if self._running is None and self._left is None:
            self._leaves("claimed")
            assert (turn is not None) == (self._left == "claimed")
        self._running = turn.id if turn is not None else self._running

    async def _cancel(self) -> None:
        message = await self._ledger.read(self._message_id)
        if message.joined is Joined.ACCEPTED and message.state is MessageState.RUNNING:
            with pytest.raises(ConflictError):
                await self._ledger.cancel(self._target, self._message_id)
            return
        await self._ledger.cancel(self._target, self._message_id)
        self._leaves("cancelled")
        if message.state is MessageState.RUNNING:
            await self._end()

    async def _remove(self) -> None:
        if self._left is None:
            (waiting,) = await self._ledger.queue(self._target)
            await self._ledger.remove(self._target, waiting.id)
            self._leaves("removed")
        else:
            assert await self._ledger.queue(self._target) == ()

    async def _wait(self) -> None:
        self._ledger.clock.advance(WAIT_S)
        self._over = True

    async def _expire(self) -> None:
        ended = await self._ledger.expire()
        assert ended == int(self._over and self._left is None)
        if self._over:
            self._leaves("expired")

    async def check(self) -> None:
        """Compare."""
        message = await self._ledger.read(self._message_id)
        joined = {"accepted": Joined.ACCEPTED, "claimed": Joined.CLAIMED}.get(self._left or "")
        assert message.joined is joined
        assert (message.state is MessageState.QUEUED) == (self._left is None)
        assert (message.error or "").startswith("EXPIRED") == (self._left == "expired")
        assert len(await told(self._ledger, self._target)) == int(joined is not None)
        settled = message.state not in {MessageState.QUEUED, MessageState.RUNNING}
        assert (await self._ledger.completion(self._message_id) is not None) == settled

    async def finish(self) -> None:
        """Leave nothing that another order could meet."""
        await self._stop()
        if self._left is None:
            await self._remove()
        await self.check()
