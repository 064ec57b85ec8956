"""A database that refuses for a moment costs a turn some time, and nothing of its work."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.engine.conftest import BOUND_S

from coterie.app import describe, recover
from coterie.app.append_items import append_items
from coterie.app.open_session import OpenSession, open_session
from coterie.app.prompt_session import PromptSession, prompt_session
from coterie.app.recall import Recall, recall
from coterie.app.settle_turn import settle_turn
from coterie.core.errors import StorageError, StorageUnknownError
from coterie.core.ids import HostId
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.core.permission import Mode, StoredMode
from coterie.core.turn.items import Item, PersonText, Reply, ToolCall, ToolResult
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.core.turn.states import TurnState
from coterie.operations.invocations import Invocations
from coterie.ports.model_provider import ModelRequest
from coterie.ports.rows import HostFacts
from coterie.ports.store import C, Query, R, Store, UseCase
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.subagents.delegations import Delegations
from coterie.runtime.supervisor import Supervisor
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds

HOST = HostId("hst_test")


class Moody:
    """A real store that refuses one use case once, before or after it has written."""

    def __init__(self, store: Store, refused: Callable[..., Any], *, after: bool) -> None:
        self._store, self._refused, self._after = store, refused, after
        self.refusals = 0

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """Reading works."""
        return await self._store.read(query, command, brief=brief)

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """Writing works, but for the one time."""
        if use_case is not self._refused or self.refusals:
            return await self._store.run(use_case, command, brief=brief)
        self.refusals += 1
        if self._after:
            await self._store.run(use_case, command, brief=brief)
            raise StorageUnknownError("The commit failed.")
        raise StorageError("The database is not writable now.")


class TwoReplies:
    """A model that calls a tool which is not there, then answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """Answer by the number of the request."""
        del request, on_text
        self.asked += 1
        return Replied(Reply("", (ToolCall("1", "nothing", "{}"),)) if self.asked == 1 else Reply("done"))

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def _turn(path: Path, refused: Callable[..., Any], *, after: bool) -> AsyncGenerator[tuple[Moody, TwoReplies]]:
    clock, ids, feed = FakeClock(), SeededIds(), MemoryFeed()
    store = SqliteStore(path / "coterie.db", HostFacts(HOST, 0, Mode.ASK, Limits()), clock, ids, feed=feed)
    host_id, epoch = await store.run(recover.begin_epoch, HOST)
    store.become(HostFacts(host_id, epoch, Mode.ASK, Limits()))
    session, _ = await store.run(open_session, OpenSession("one", None, None, StoredMode.INHERIT))
    moody, model = Moody(store, refused, after=after), TwoReplies()
    parts = RuntimeParts(
        store=moody,
        feed=feed,
        clock=clock,
        invocations=Invocations(ids),
        models=(Binding("local/one", "openai-chat", None, "one"),),
        provider=model,
        tools={},
        limits=Limits(),
        permission_default=Mode.ASK,
        model_hint="",
        delegates=Delegations(SeededIds(), FakeClock(), Path(), running_max=1),
    )
    supervisor = Supervisor(parts, turns_max=1)
    assert supervisor.reserve()
    prompted = await store.run(prompt_session, PromptSession(session.id, "go", None, slot=True))
    assert prompted.turn_id is not None
    with feed.listen([prompted.turn_id]) as listener:
        supervisor.hand_over(prompted.turn_id)
        async with asyncio.timeout(BOUND_S):
            while (found := await store.read(describe.turn_now, prompted.turn_id)) and found[0].ended_at is None:
                await listener.wait(0.1)
    yield moody, model
    ended = await store.read(describe.turn_now, prompted.turn_id)
    assert ended is not None
    recalled = await store.read(recall, Recall(session.id, 10_000))
    kinds: list[type[Item]] = [type(item) for item in recalled.items]
    assert (ended[0].state, ended[0].result) == (TurnState.COMPLETED, "done")
    assert kinds == [PersonText, Reply, ToolResult, Reply]
    await supervisor.stop()
    await store.close()


@pytest.mark.parametrize("refused", [append_items, settle_turn])
@pytest.mark.parametrize("after", [False, True])
async def test_what_a_worker_has_in_hand_is_written_once_all_the_same(
    tmp_path: Path, refused: Callable[..., Any], *, after: bool
) -> None:
    """Case 133: a commit of unknown end may have been kept, and a second try must not write it twice."""
    async with _turn(tmp_path, refused, after=after) as (moody, model):
        assert moody.refusals == 1
        assert model.asked == 2
