"""A whole host without doors: real workers, and in place of the models one that answers at once."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.product import LIMITS
from benchmarks.raw import PAYLOAD
from coterie.bootstrap.engine import Engine, World, engine, locked
from coterie.core.model_ref import Binding
from coterie.core.turn.items import Reply
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.operations.caller import Person
from coterie.ports.model_provider import ModelRequest
from coterie.settings import load_settings

_MODEL: Final = Binding("local/one", "openai-chat", None, "one", default=True)


class Answering:
    """Implements `ports.model_provider.ModelProvider`: answers at once, and keeps when it was asked."""

    def __init__(self) -> None:
        self.asked_ns: list[int] = []
        """Times of all requests, by `perf_counter_ns`."""

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """See the port."""
        self.asked_ns.append(time.perf_counter_ns())
        del request, on_text
        return Replied(Reply(PAYLOAD))

    async def close(self) -> None:
        """See the port."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A host that runs."""

    engine: Engine
    model: Answering

    async def session(self, title: str) -> str:
        """Create a session."""
        created = await self.engine.operations.perform(Person(), "session.create", {"title": title})
        return created.wire()["session"]["id"]

    async def idle(self, session_id: str) -> None:
        """Wait until a session has nothing to do."""
        given = {"sessionId": session_id, "until": "idle"}
        waited = await self.engine.operations.perform(Person(), "collaboration.wait", given)
        assert not waited.wire()["timedOut"], "the model answers at once"


@asynccontextmanager
async def hosted(folder: Path) -> AsyncGenerator[Hosted]:
    """Run a host on a data directory."""
    settings = replace(await asyncio.to_thread(load_settings, folder, {}), models=(_MODEL,), limits=LIMITS)
    model = Answering()
    with locked(folder):
        async with engine(settings, world=World(provide=lambda: model)) as running:
            await running.provider.load()
            yield Hosted(running, model)
