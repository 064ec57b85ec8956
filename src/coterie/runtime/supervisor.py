"""Gives turns their places and workers.

At most `turns_max` turns run unparked. A turn that waits gives its slot back and takes one again ahead of new claims,
so sessions that wait for each other's work cannot fill the host and starve it.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from coterie.app import recover
from coterie.app.claim_turn import anything_ready, claim_turn
from coterie.app.expire import anything_due, expire_due
from coterie.app.idempotency import anything_old, forget_old
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.errors import HostError
from coterie.core.ids import TurnId
from coterie.core.turn.turn import Turn
from coterie.ports.feed import READY
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.worker import Worker

_LOG: Final = logging.getLogger(__name__)
AUDIT_S: Final = 3.0
"""How often rows are looked at for what a lost wake-up left behind."""


class Supervisor:
    """Implements `ports.slots.Slots`, and starts a worker for each turn that is bound."""

    def __init__(self, parts: RuntimeParts, turns_max: int, audit_s: float = AUDIT_S) -> None:
        self._free = turns_max
        self._resuming: deque[asyncio.Future[None]] = deque()
        self._workers: dict[TurnId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._begun: set[TurnId] = set()
        """Turns that a worker has begun and not ended: if nobody works on one, its worker broke."""
        self._again_at: dict[TurnId, float] = {}
        """Monotonic time of the next try for turns that could not be settled."""
        self._parks: Counter[TurnId] = Counter()
        """How many sleeps of a turn are under way: the first gives its slot back, the last takes one again."""
        self._look = asyncio.Event()
        self._audit_s = audit_s
        self._expiry_at = float("-inf")
        """Monotonic time of the next look for messages whose time is over."""
        self._stopping = False
        self._parts = parts
        self._worker = Worker(self._parts, self._spawn, self._passes_on, self)

    # Slots

    def reserve(self) -> bool:
        """See the port."""
        if self._stopping or self._free <= 0 or self._resuming:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        """See the port."""
        self._put_back()
        self._look.set()

    def _put_back(self) -> None:
        self._free += 1
        while self._free > 0 and self._resuming:
            waiter = self._resuming.popleft()
            if not waiter.done():
                self._free -= 1
                waiter.set_result(None)

    def hand_over(self, turn_id: TurnId) -> None:
        """See the port."""
        if self._stopping or turn_id in self._workers:
            self.give_back()
            return
        self._workers[turn_id] = self._spawn(self._work(turn_id))

    @asynccontextmanager
    async def parked(self, turn_id: TurnId) -> AsyncGenerator[None]:
        """See the port."""
        if turn_id not in self._workers:
            # A sleep that outlived its turn: it holds no slot.
            yield
            return
        self._parks[turn_id] += 1
        if self._parks[turn_id] == 1:
            self.give_back()
        try:
            yield
        except asyncio.CancelledError:
            # The turn ends: it takes its slot on credit, and gives it back at once with its worker.
            if self._wakes(turn_id):
                self._free -= 1
            raise
        except BaseException:
            if self._wakes(turn_id):
                await self._take()
            raise
        if self._wakes(turn_id):
            await self._take()

    def _wakes(self, turn_id: TurnId) -> bool:
        """Whether the sleep that ends is the last one of a turn that still runs."""
        if turn_id not in self._parks:
            return False
        self._parks[turn_id] -= 1
        if self._parks[turn_id]:
            return False
        del self._parks[turn_id]
        return True

    def _passes_on(self, turn_id: TurnId) -> bool:
        """Whether a turn that ends has a slot for new work: no parked turn waits for one, and none is owed."""
        return turn_id not in self._parks and not self._resuming and self._free >= 0

    async def _take(self) -> None:
        if self._free > 0 and not self._resuming:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._resuming.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # On credit as well, unless it was granted in the meantime.
            if waiter.cancelled():
                self._free -= 1
            raise

    # Workers

    def start(self) -> None:
        """Begin to claim what waits for a slot."""
        self._spawn(self._listen())
        self._spawn(self._claim_for_ever())

    async def _claim_for_ever(self) -> None:
        while True:
            try:
                await self._adopt()
                await self._expire()
                await self._claim()
            except Exception:  # noqa: BLE001 - whatever it was, queues must not stand still for it (I16)
                _LOG.exception("the queues could not be looked at; the next audit tries again")
            try:
                async with asyncio.timeout(self._audit_s):
                    await self._look.wait()
            except TimeoutError:
                continue
            self._look.clear()

    async def stop(self) -> None:
        """End the workers; their turns are interrupted by the next start, as after a crash."""
        self._stopping = True
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            # A tool that swallows its cancellation is left behind.
            await asyncio.wait(tasks, timeout=self._parts.limits.cancel_grace_s)

    @property
    def workers(self) -> int:
        """How many turns have a worker."""
        return len(self._workers)

    def _spawn(self, doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _listen(self) -> None:
        with self._parts.feed.listen([READY]) as listener:
            while True:
                await listener.wait()
                self._look.set()

    async def _claim(self) -> None:
        # The read keeps an idle host from reserving slots that a send could bind with.
        while self._free > 0 and await self._parts.store.read(anything_ready, None, brief=True) and self.reserve():
            turn: Turn | None = None
            try:
                turn = await self._parts.store.run(claim_turn, None, brief=True)
            finally:
                if turn is None:
                    self._put_back()
            if turn is None:
                return
            self.hand_over(turn.id)

    async def _expire(self) -> None:
        """End queued messages whose time is over, and forget old keys; once an audit, for claims end what they meet."""
        store, clock = self._parts.store, self._parts.clock
        if clock.monotonic() < self._expiry_at:
            return
        self._expiry_at = clock.monotonic() + self._audit_s
        while await store.read(anything_due, clock.now_ms(), brief=True) and await store.run(expire_due, None):
            pass
        while await store.read(anything_old, clock.now_ms(), brief=True) and await store.run(forget_old, None):
            pass

    async def _adopt(self) -> None:
        """Give a worker to turns of this epoch that have none; end those that were fenced, or whose worker broke."""
        for turn in await self._parts.store.read(recover.turns_running_here, None):
            if turn.id in self._workers or self._parts.clock.monotonic() < self._again_at.get(turn.id, 0.0):
                continue
            if turn.fenced and turn.id not in self._begun:
                # Nothing of it is to run, so its end needs no slot.
                await self._parts.store.run(settle_turn, SettleTurn(turn.id, cancelled=True, counted=False, slot=False))
            elif self.reserve():
                self.hand_over(turn.id)

    async def _work(self, turn_id: TurnId) -> None:
        following: Turn | None = None
        try:
            # A turn is never run a second time: what a broken worker left is only settled.
            broke = turn_id in self._begun
            self._begun.add(turn_id)
            following = await (self._settle_broken(turn_id) if broke else self._run(turn_id))
        finally:
            del self._workers[turn_id]
            parked = self._parks.pop(turn_id, 0) > 0
            if following is None and not parked:
                self.give_back()
        if following is not None:
            self.hand_over(following.id)

    async def _run(self, turn_id: TurnId) -> Turn | None:
        try:
            following = await self._worker.run(turn_id)
        except Exception:  # noqa: BLE001 - one broken worker must not end the host
            _LOG.exception("the worker of turn %s broke", turn_id)
            return await self._settle_broken(turn_id)
        self._begun.discard(turn_id)
        return following

    async def _settle_broken(self, turn_id: TurnId) -> Turn | None:
        try:
            following = await self._worker.fail(turn_id, "The host failed in this turn; its log has the cause.")
        except HostError:
            _LOG.exception("turn %s could not be settled; the next audit tries again", turn_id)
            self._again_at[turn_id] = self._parts.clock.monotonic() + self._audit_s
            return None
        self._begun.discard(turn_id)
        self._again_at.pop(turn_id, None)
        return following
