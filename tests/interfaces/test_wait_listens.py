"""A wait listens before it looks: what comes between the two must not be slept through."""

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from tests.interfaces.conftest import Host

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.ids import TurnId
from coterie.core.turn.items import Reply
from coterie.operations.caller import Person
from coterie.operations.perform import Operations
from coterie.ports.store import C, Query, R, Store, UseCase
from coterie.storage.sqlite.feed import MemoryFeed


class _Sleepless:
    """A listener that nobody may sleep with."""

    async def wait(self, timeout_s: float | None = None) -> NoReturn:
        """See the port."""
        raise AssertionError(f"it went to sleep for {timeout_s} s")

    def deltas(self) -> list[Any]:
        """See the port."""
        return []


class SleeplessFeed(MemoryFeed):
    """A feed on which whoever sleeps fails."""

    @contextmanager
    def listen(self, topics: Iterable[str] | None) -> Generator[Any]:
        """See the port."""
        del topics
        yield _Sleepless()


class BusyStore:
    """Somebody writes right after the first look."""

    def __init__(self, store: Store, write: Callable[[], Awaitable[object]]) -> None:
        self._store, self._write, self._looked = store, write, False

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        return await self._store.run(use_case, command, brief=brief)

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        found = await self._store.read(query, command, brief=brief)
        if not self._looked:
            self._looked = True
            await self._write()
        return found


async def test_what_settles_between_the_look_and_the_sleep_is_answered_without_a_sleep(host: Host) -> None:
    """Case 78: its wake-up came before anybody listened, and the next look would be seconds away."""
    source, target = [await host.new_session(title) for title in "ab"]
    sent = await host.ask("collaboration.send", sessionId=target, content="Do.", kind="task", asSessionId=source)
    settle = SettleTurn(TurnId(sent["turnId"]), (Reply("Done."),), slot=False)
    store = BusyStore(host.parts.store, lambda: host.parts.store.run(settle_turn, settle))
    operations = Operations(replace(host.parts, store=store, feed=SleeplessFeed()))

    waited = (
        await operations.perform(Person(), "collaboration.wait", {"messageIds": [sent["messageId"]], "timeoutMs": 9000})
    ).wire()

    assert not waited["timedOut"]
    assert [one["status"] for one in waited["messages"]] == ["completed"]
