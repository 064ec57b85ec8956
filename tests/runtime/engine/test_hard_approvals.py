"""Questions under what a scripted model server cannot bring about: odd ids of calls, a store that refuses."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.runtime.engine.conftest import BOUND_S

from coterie.app.approve import ask_person
from coterie.app.describe import call_request, turn_now
from coterie.bootstrap.engine import Engine, World, engine, locked
from coterie.core.errors import StorageError, StorageUnknownError
from coterie.core.model_ref import Binding
from coterie.core.turn.items import Reply, ToolCall, ToolResult
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.operations.caller import Person
from coterie.ports.model_provider import ModelRequest
from coterie.ports.store import C, Query, R, UseCase
from coterie.settings import load_settings
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.clock import FakeClock

FIRST: Final = ToolCall("call_0", "bash", '{"command": "echo one >> a.txt"}')
SECOND: Final = ToolCall("call_0", "bash", '{"command": "echo two >> a.txt"}')


@dataclass
class Numbering:
    """A model that numbers its calls anew in each reply, as some servers do."""

    replies: Sequence[tuple[ToolCall, ...]]
    told: list[str] = field(default_factory=list[str])

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """The next reply; at the end an answer."""
        del on_text
        results = [item.text for item in request.context if isinstance(item, ToolResult)]
        self.told = results
        calls = self.replies[len(results)] if len(results) < len(self.replies) else ()
        return Replied(Reply("" if calls else "done", calls))

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Seat:
    """A person before a host with one session."""

    engine: Engine
    session: str

    async def ask(self, operation: str, **params: Any) -> dict[str, Any]:
        """Perform an operation."""
        async with asyncio.timeout(BOUND_S):
            return (await self.engine.operations.perform(Person(), operation, params)).wire()

    async def question(self) -> dict[str, Any]:
        """Wait for one open question."""
        async with asyncio.timeout(BOUND_S):
            with self.engine.operations.host.feed.listen(None) as listener:
                while not (found := (await self.ask("permissions.pending"))["requests"]):
                    await listener.wait(1)
        return found[0]

    async def answer(self, decision: str) -> str:
        """Answer the open question; returns what it was about."""
        asked = await self.question()
        await self.ask("permissions.resolve", requestId=asked["requestId"], decision=decision)
        return str(asked["subject"])

    async def idle(self) -> None:
        """Wait until the session is."""
        while (await self.ask("collaboration.wait", sessionId=self.session, until="idle"))["timedOut"]:
            pass


@asynccontextmanager
async def seated(path: Path, model: Numbering, world: World | None = None) -> AsyncGenerator[Seat]:
    """A host whose model is *model*, and a session that has begun a turn."""
    settings = load_settings(path / "data", {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    settings = replace(settings, models=(Binding("local/one", "openai-chat", None, "one", default=True),))
    world = replace(world or World(clock=FakeClock()), provide=lambda: model)
    project = path / "project"
    project.mkdir()
    with locked(settings.data_dir):
        async with engine(settings, world=world) as host:
            seat = Seat(host, "")
            made = await seat.ask("session.create", title="one", projectPath=str(project))
            seat.session = made["session"]["id"]
            await seat.ask("session.prompt", sessionId=seat.session, text="go")
            yield seat


async def test_each_call_is_asked_about_also_under_an_id_that_was_there_before(tmp_path: Path) -> None:
    """A yes to the first would else be leave for every other call that its model gives the same id."""
    model = Numbering([(FIRST,), (SECOND,), (SECOND,)])
    async with seated(tmp_path, model) as seat:
        assert await seat.answer("once") == "echo one >> a.txt"
        assert await seat.answer("deny") == "echo two >> a.txt"
        assert await seat.answer("once") == "echo two >> a.txt"
        await seat.idle()

    assert (tmp_path / "project" / "a.txt").read_text() == "one\ntwo\n"


class Moody(SqliteStore):
    """A store that refuses while it is in the mood."""

    refuses: Callable[..., Any] | None = None
    after = False
    """It has written before it refuses."""
    refusals = 0

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """Refuse, or read."""
        if query is self.refuses:
            self.refusals += 1
            raise StorageError("The database is not there now.")
        return await super().read(query, command, brief=brief)

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """Refuse once, or write."""
        if use_case is self.refuses:
            self.refuses, self.refusals = None, self.refusals + 1
            if self.after:
                await super().run(use_case, command, brief=brief)
            raise StorageUnknownError("The commit failed.") if self.after else StorageError("It is not writable now.")
        return await super().run(use_case, command, brief=brief)


@pytest.mark.parametrize("refused", [call_request, turn_now])
async def test_a_database_that_is_gone_for_a_moment_does_not_answer_for_the_person(
    tmp_path: Path, refused: Callable[..., Any]
) -> None:
    """The turn sleeps on, and the answer that comes when it is back still counts."""
    async with seated(tmp_path, Numbering([(FIRST,)]), World(clock=FakeClock(), open_store=Moody)) as seat:
        store, asked = seat.engine.store, await seat.question()
        assert isinstance(store, Moody)
        store.refuses = refused
        async with asyncio.timeout(BOUND_S):
            while not store.refusals:
                seat.engine.operations.host.feed.wake([asked["turnId"]])
                await asyncio.sleep(0)
        store.refuses = None

        await seat.answer("once")
        await seat.idle()

    assert (tmp_path / "project" / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("after", [False, True])
async def test_a_question_whose_commit_is_doubtful_is_one_question_that_somebody_waits_for(
    tmp_path: Path, *, after: bool
) -> None:
    """Else it would stay open for a call that was given up, and a yes to it would do nothing."""

    class Doubtful(Moody):
        refuses = staticmethod(ask_person)

    Doubtful.after = after
    async with seated(tmp_path, Numbering([(FIRST,)]), World(clock=FakeClock(), open_store=Doubtful)) as seat:
        await seat.answer("once")
        await seat.idle()

    assert (tmp_path / "project" / "a.txt").read_text() == "one\n"
