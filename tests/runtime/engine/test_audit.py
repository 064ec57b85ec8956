"""What the supervisor's audit finds: turns that nobody works on, and ends that cannot be written."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, cast

from tests.guarantees import guarantee

from coterie.app import describe, recover
from coterie.app.cancel import Interrupt, interrupt
from coterie.app.open_session import OpenSession, open_session
from coterie.app.prompt_session import PromptSession, prompt_session
from coterie.app.settle_turn import settle_turn
from coterie.core.errors import DatabaseCorruptError
from coterie.core.ids import HostId, TurnId
from coterie.core.limits import Limits
from coterie.core.permission import Mode, StoredMode
from coterie.core.turn.states import TurnState
from coterie.operations.invocations import Invocations
from coterie.ports.feed import Feed
from coterie.ports.model_provider import ModelProvider
from coterie.ports.rows import HostFacts
from coterie.ports.store import C, Query, R, Store, UseCase
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.subagents.delegations import Delegations
from coterie.runtime.supervisor import AUDIT_S, Supervisor
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds

BOUND_S: Final = 20
HOST: Final = HostId("hst_test")


class Damaged:
    """A real store whose database cannot write the end of a turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.tries = 0
        self.looked, self.tried = asyncio.Event(), asyncio.Event()

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """Reading works."""
        if query is recover.turns_running_here:
            self.looked.set()
        return await self._store.read(query, command, brief=brief)

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """The end of a turn is refused for good."""
        if use_case is settle_turn:
            self.tries += 1
            self.tried.set()
            raise DatabaseCorruptError("The file is damaged.")
        return await self._store.run(use_case, command, brief=brief)


@asynccontextmanager
async def running(path: Path, feed: Feed) -> AsyncGenerator[tuple[SqliteStore, TurnId]]:
    """A store of a host of today, and a running turn that nobody works on."""
    clock, ids = FakeClock(), SeededIds()
    store = SqliteStore(path / "coterie.db", HostFacts(HOST, 0, Mode.ASK, Limits()), clock, ids, feed=feed)
    host_id, epoch = await store.run(recover.begin_epoch, HOST)
    store.become(HostFacts(host_id, epoch, Mode.ASK, Limits()))
    session, _ = await store.run(open_session, OpenSession("one", None, None, StoredMode.INHERIT))
    prompted = await store.run(prompt_session, PromptSession(session.id, "go", None, slot=True))
    assert prompted.turn_id is not None
    yield store, prompted.turn_id
    await store.close()


def parts_of(store: Store, clock: FakeClock) -> RuntimeParts:
    """The parts of a host without models: the turn fails when its worker begins."""
    return RuntimeParts(
        store=store,
        feed=MemoryFeed(),
        clock=clock,
        invocations=Invocations(SeededIds()),
        models=(),
        provider=cast("ModelProvider", None),
        tools={},
        limits=Limits(),
        permission_default=Mode.ASK,
        model_hint="",
        delegates=Delegations(SeededIds(), FakeClock(), Path(), running_max=1),
    )


async def look(supervisor: Supervisor, store: Damaged) -> None:
    """Let the supervisor look at its turns, as any slot that comes back does."""
    store.looked.clear()
    for _ in range(100):
        if supervisor.reserve():
            break
        # The slot comes back within a few steps of the loop.
        await asyncio.sleep(0)
    supervisor.give_back()
    await store.looked.wait()


async def test_an_end_that_cannot_be_written_is_tried_once_an_audit(tmp_path: Path) -> None:
    """Its slot comes back at once, and must not make the host try again at once, and for ever."""
    async with running(tmp_path, MemoryFeed()) as (real, _), asyncio.timeout(BOUND_S):
        store, clock = Damaged(real), FakeClock()
        supervisor = Supervisor(parts_of(store, clock), turns_max=1)
        supervisor.start()
        # The worker's own try, and the one that says that the worker broke; then one more with each audit.
        for tries in (2, 3, 4):
            while store.tries < tries:
                store.tried.clear()
                await store.tried.wait()
            for _ in range(3):
                await look(supervisor, store)
            assert store.tries == tries
            clock.advance(AUDIT_S)
            await look(supervisor, store)
        await supervisor.stop()


@guarantee("I16")
async def test_what_was_fenced_before_it_had_a_worker_ends_without_a_slot(tmp_path: Path) -> None:
    """A caller that leaves between commit and answer may leave a turn behind; its end must not wait for another's."""
    feed = MemoryFeed()
    async with running(tmp_path, feed) as (store, turn_id), asyncio.timeout(BOUND_S):
        found = await store.read(describe.turn_now, turn_id)
        assert found is not None
        await store.run(interrupt, Interrupt(found[1].id, cascade=True))
        supervisor = Supervisor(parts_of(store, FakeClock()), turns_max=1)
        assert supervisor.reserve()
        with feed.listen([turn_id]) as listener:
            supervisor.start()
            await listener.wait()
        found = await store.read(describe.turn_now, turn_id)
        assert found is not None
        assert found[0].state is TurnState.CANCELLED
        assert not supervisor.reserve()
        await supervisor.stop()
