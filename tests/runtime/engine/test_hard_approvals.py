"""Questions under what a scripted model server cannot bring about: odd ids of calls, a store that refuses."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.runtime.engine.conftest import BOUND_S

from coterie.bootstrap.engine import Engine, World, engine, locked
from coterie.core.model_ref import Binding
from coterie.core.turn.items import Reply, ToolCall, ToolResult
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.operations.caller import Person
from coterie.ports.model_provider import ModelRequest
from coterie.settings import load_settings
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
