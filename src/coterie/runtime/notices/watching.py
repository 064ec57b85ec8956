"""Looks at what changes as any reader of the feed does, and offers what a person should know to each way out.

Nothing waits for it: a turn has ended before it is told of, and a way out that is slow or broken loses notices, never
more. What was lost is counted in the next one that gets through.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from coterie.app import describe
from coterie.core.errors import NotFoundError, StorageError
from coterie.core.ids import SessionId, TurnId
from coterie.core.notice import Notify, Pace, Sort, sort_of_input, sort_of_turn
from coterie.core.session.session import Held
from coterie.core.text import mend
from coterie.operations.views import iso
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed, Listener
from coterie.ports.rows import Change
from coterie.ports.store import Store
from coterie.runtime.notices.posting import Post, UndeliveredError

PAUSE_S: Final = 0.1
"""From one look to the next at least: live text wakes whoever listens to everything."""
LOOK_S: Final = 30.0
"""How often it looks even if nobody woke it."""
WAITING_MAX: Final = 8
"""Notices that wait for one way out."""
_BATCH: Final = 200
_KNOWN_MAX: Final = 1_000
"""Turns and questions that are remembered as told."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell."""

    sort: Sort
    change: Change
    facts: Mapping[str, object]
    words: Mapping[str, object]
    """What people, models and tools have written."""

    def body(self, *, text: bool, dropped: int) -> bytes:
        """As JSON; with words only if *text*."""
        at = iso(self.change.at)
        told: dict[str, object] = {"event": self.sort.value, "sessionId": self.change.session_id, "at": at}
        told |= {**self.facts, **(self.words if text else {}), "dropped": dropped or None}
        return json.dumps({name: value for name, value in told.items() if value is not None}).encode()


@dataclass(slots=True)
class _Outlet:
    """One way out, with what waits for it."""

    notify: Notify
    post: Post
    clock: Clock
    waiting: asyncio.Queue[tuple[Notice, int]] = field(default_factory=lambda: asyncio.Queue(WAITING_MAX))
    """Each with how many before it had no room, or came too soon."""
    pace: Pace = field(default_factory=Pace)
    dropped: int = 0
    lost: int = 0
    """What the tries that have failed were to tell, since the last that has not; the first of them was logged."""

    def offer(self, notice: Notice) -> None:
        if notice.sort not in self.notify.sorts:
            return
        about = f"{notice.change.session_id} {notice.sort}"
        pace = None if self.waiting.full() else self.pace.after(about, self.clock.monotonic())
        if pace is None:
            self.dropped += 1
            return
        self.waiting.put_nowait((notice, self.dropped))
        self.pace, self.dropped = pace, 0

    async def run(self) -> None:
        while True:
            notice, dropped = await self.waiting.get()
            try:
                await self.post.deliver(notice.body(text=self.notify.text, dropped=dropped + self.lost))
            except UndeliveredError as error:
                if not self.lost:
                    _LOG.warning("a notice was not delivered: %s; further ones are lost in silence", mend(str(error)))
                self.lost += dropped + 1
            else:
                self.lost = 0


class Notices:
    """Tells of changes behind a position, for as long as it runs."""

    def __init__(self, store: Store, feed: Feed, clock: Clock, outlets: Sequence[tuple[Notify, Post]]) -> None:
        self._store, self._feed = store, feed
        self._outlets = [_Outlet(notify, post, clock) for notify, post in outlets]
        self._told: dict[str, None] = {}

    @asynccontextmanager
    async def running(self, after: int) -> AsyncGenerator[None]:
        """Tell of what changes behind *after* while the block lasts."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(doing) for doing in (self._watch(after), *(one.run() for one in self._outlets))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for outlet in self._outlets:
                await outlet.post.close()

    async def _watch(self, after: int) -> None:
        with self._feed.listen(None) as listener:
            while True:
                try:
                    after = await self._look(after)
                except StorageError as error:
                    _LOG.warning("what has changed could not be read for notices: %s", error)
                await _woken(listener)

    async def _look(self, after: int) -> int:
        """Tell of all changes behind *after*; returns the position behind the last."""
        while found := await self._store.read(describe.changes, describe.Page(after, _BATCH), brief=True):
            for change in found:
                for notice in await self._notices(change):
                    for outlet in self._outlets:
                        outlet.offer(notice)
                after = change.number
        return after

    async def _notices(self, change: Change) -> list[Notice]:
        try:
            match change.kind:
                case "turn":
                    return await self._of_turn(change)
                case "permission":
                    return [*await self._of_calls(change), *await self._of_pairs(change)]
                case "budget" | "message":
                    return await self._of_queue(change)
                case "held":
                    return await self._of_hold(change)
                case _:
                    return []
        except NotFoundError:
            # It was deleted in the meantime.
            return []

    async def _of_turn(self, change: Change) -> list[Notice]:
        found = await self._store.read(describe.turn_now, TurnId(change.ref), brief=True)
        sort = sort_of_turn(found[0].state) if found is not None else None
        if found is None or sort is None or not self._is_new(change.ref):
            return []
        turn, session = found
        facts = {"turnId": turn.id, "kind": turn.kind, "status": turn.state.value, "errorCode": turn.error_code}
        return [Notice(sort, change, facts, {"title": session.title, "result": turn.result, "error": turn.error})]

    async def _of_calls(self, change: Change) -> list[Notice]:
        asked = await self._store.read(describe.calls_asked, None)
        return [
            Notice(
                Sort.APPROVAL,
                change,
                {"requestId": one.id, "tool": one.tool, "risk": one.risk.value},
                {"title": session.title, "subject": one.subject, "shown": one.shown},
            )
            for one, session, _ in asked
            if one.session_id == change.session_id and self._is_new(one.id)
        ]

    async def _of_pairs(self, change: Change) -> list[Notice]:
        asked = await self._store.read(describe.pending, None)
        return [
            Notice(
                Sort.APPROVAL,
                change,
                {"requestId": one.id, "sourceSessionId": one.source_session_id},
                {"title": target.title, "sourceTitle": source.title},
            )
            for one, source, target, _ in asked
            if one.target_session_id == change.session_id and self._is_new(one.id)
        ]

    async def _of_queue(self, change: Change) -> list[Notice]:
        session, inputs = await self._store.read(describe.marked, SessionId(change.session_id), brief=True)
        return [
            Notice(
                sort,
                change,
                {"inputId": one.id, "messageId": one.message_id, "chainId": one.chain_id},
                {"title": session.title},
            )
            for one in inputs
            if (sort := sort_of_input(one.waiting)) is not None and self._is_new(f"{one.id} {sort}")
        ]

    async def _of_hold(self, change: Change) -> list[Notice]:
        session = await self._store.read(describe.session, SessionId(change.session_id), brief=True)
        held = session.held is Held.RESTART
        return [Notice(Sort.HELD, change, {}, {"title": session.title})] if held else []

    def _is_new(self, ref: str) -> bool:
        if ref in self._told:
            return False
        self._told[ref] = None
        if len(self._told) > _KNOWN_MAX:
            del self._told[next(iter(self._told))]
        return True


async def _woken(listener: Listener) -> None:
    await listener.wait(LOOK_S)
    await asyncio.sleep(PAUSE_S)
    listener.deltas()
