"""A whole host on a scripted model server: a real ledger in a file, real requests over HTTP, and no time that passes.

Each stage that a test sets up is checked once more when the test has ended: its ledger must be sound, and no request
may have carried an assistant message that says nothing and calls nothing.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import Any, Final, Protocol, cast

import pytest
from tests.runtime.engine.wire import messages

from coterie.app import describe
from coterie.bootstrap.engine import Engine, engine, locked
from coterie.core.ids import SessionId
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.core.turn.turn import Turn
from coterie.model_server import ModelServer, parse_script
from coterie.operations.caller import Agent, Person
from coterie.ports.tool import Invocation
from coterie.settings import Settings, load_settings
from coterie.testing.clock import FakeClock

BOUND_S: Final = 20.0
"""No wait of a test is longer."""
MODELS: Final = ("one", "lead", "worker", "other")
"""The names that scripts tell sessions apart by; the first is the default."""
BROKEN: Final = "broken"
"""A model of a protocol that no adapter speaks, which settings never let pass: its turns break their worker."""


@dataclass
class Stage:
    """One host and the models that it asks."""

    server: ModelServer
    settings: Settings
    project: Path
    """A folder that sessions may work in."""
    clock: FakeClock = field(default_factory=FakeClock)
    _engine: Engine | None = None
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def engine(self) -> Engine:
        """The host of now."""
        assert self._engine is not None, "the host is stopped"
        return self._engine

    async def start(self) -> None:
        """Open the data directory and run what may run."""
        self._opened.enter_context(locked(self.settings.data_dir))
        self._engine = await self._opened.enter_async_context(engine(self.settings, self.clock))

    async def stop(self) -> None:
        """Cancel everything where it stands, as the end of the process would."""
        self._engine = None
        await self._opened.aclose()

    def without_models_after(self, keep: int) -> Settings:
        """The settings with only the first *keep* models."""
        return replace(self.settings, models=self.settings.models[:keep])

    async def restart(self) -> None:
        """Stop, and open the same directory again."""
        await self.stop()
        await self.start()

    async def ask(self, operation: str, **params: Any) -> dict[str, Any]:
        """Perform an operation as a person."""
        async with asyncio.timeout(BOUND_S):
            return (await self.engine.operations.perform(Person(), operation, params)).wire()

    async def act(self, invocation: Invocation, operation: str, **params: Any) -> dict[str, Any]:
        """Perform an operation as the agent of a tool call."""
        async with asyncio.timeout(BOUND_S):
            return (await self.engine.operations.perform(Agent(invocation), operation, params)).wire()

    async def session(self, model: str = "one", *, mode: str = "ask", folder: bool = False) -> str:
        """Create a session, titled like its model, and return its id."""
        path = {"projectPath": str(self.project)} if folder else {}
        created = await self.ask("session.create", title=model, model=model, permissionMode=mode, **path)
        return cast("str", created["session"]["id"])

    async def prompt(self, session_id: str, text: str) -> str:
        """Prompt an idle session and return the turn."""
        prompted = await self.ask("session.prompt", sessionId=session_id, text=text)
        return cast("str", prompted["turnId"])

    async def prompt_later(self, session_id: str, text: str) -> None:
        """Prompt a session that may have to wait for a slot."""
        await self.ask("session.prompt", sessionId=session_id, text=text)

    async def task(self, source: str, target: str, content: str = "do it") -> str:
        """Send a task as a person who speaks for *source*; returns the message."""
        sent = await self.ask("collaboration.send", sessionId=target, content=content, kind="task", asSessionId=source)
        return cast("str", sent["messageId"])

    async def settled(self, *message_ids: str) -> list[dict[str, Any]]:
        """Wait until all of them have settled."""
        waited = await self._waited(messageIds=list(message_ids))
        return cast("list[dict[str, Any]]", waited["messages"])

    async def idle(self, *session_ids: str) -> None:
        """Wait until none of them runs or has anything in its queue."""
        for session_id in session_ids:
            await self._waited(sessionId=session_id, until="idle")

    async def _waited(self, **params: Any) -> dict[str, Any]:
        async with asyncio.timeout(BOUND_S):
            # The clock may leap while one waits, and then the time of the wait is up.
            while (waited := await self.ask("collaboration.wait", **params))["timedOut"]:
                pass
        return waited

    async def last_turn(self, session_id: str) -> Turn:
        """The newest turn of a session."""
        found = await self.engine.store.read(describe.status, SessionId(session_id))
        assert found.turn is not None, "the session had no turn yet"
        return found.turn

    async def ended(self, session_id: str) -> Turn:
        """Wait until the session is idle, and return its newest turn."""
        await self.idle(session_id)
        return await self.last_turn(session_id)

    async def items(self, session_id: str) -> list[dict[str, Any]]:
        """The transcript."""
        return cast("list[dict[str, Any]]", (await self.ask("session.items", sessionId=session_id))["items"])

    async def until_items(self, session_id: str, holds: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Wait until it holds of the transcript."""
        async with asyncio.timeout(BOUND_S):
            with self.engine.operations.host.feed.listen([session_id]) as listener:
                while not holds(await self.items(session_id)):
                    await listener.wait()

    async def turns(self, session_id: str) -> int:
        """How many turns the session has had."""
        return len({item["turnId"] for item in await self.items(session_id)})

    async def results(self, session_id: str) -> list[str]:
        """What tools have answered in a session."""
        return [item["text"] for item in await self.items(session_id) if item["kind"] == "tool_result"]

    async def exchanges(self, session_id: str) -> list[dict[str, Any]]:
        """The newest messages of a session, newest first."""
        status = await self.ask("collaboration.status", sessionId=session_id)
        return cast("list[dict[str, Any]]", status["recentExchanges"])

    async def chain(self, message_id: str) -> list[dict[str, Any]]:
        """All messages of a chain."""
        return cast("list[dict[str, Any]]", (await self.ask("collaboration.chain", messageId=message_id))["messages"])

    async def completion(self, message_id: str) -> dict[str, Any]:
        """The one completion of a message."""
        (found,) = [one for one in await self.chain(message_id) if one.get("replyToMessageId") == message_id]
        return found

    async def until(self, holds: Callable[[ModelServer], bool]) -> None:
        """Wait until it holds of the model server."""
        async with asyncio.timeout(BOUND_S):
            await self.server.until(holds)

    def asked(self, model: str | None = None) -> list[dict[str, Any]]:
        """The requests to *model*, or to all models."""
        found = cast("list[dict[str, Any]]", self.server.requests)
        return [request for request in found if model in (None, request["model"])]

    @contextmanager
    def calling(self, turn: Turn) -> Generator[Invocation]:
        """A tool call of a turn that runs, for as long as the block lasts."""
        with self.engine.operations.host.invocations.live(
            turn.session_id, turn.id, "call-of-the-test", str(self.project)
        ) as invocation:
            yield invocation


class SetStage(Protocol):
    """Starts a host whose models answer by rules, lists in YAML, and with limits other than the usual ones."""

    def __call__(self, *rules: str, **limits: int) -> Awaitable[Stage]:
        """Start it; it is stopped and checked when the test has ended."""
        ...


def mute_replies(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The assistant messages of a request that say nothing and call nothing."""
    said = [message for message in messages(request) if message["role"] == "assistant"]
    return [message for message in said if not (message.get("content") or message.get("tool_calls"))]


def system_text(request: Mapping[str, Any]) -> str:
    """The system instructions of a request."""
    return "\n".join(message["content"] for message in request["messages"] if message["role"] == "system")


def said(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request, without the system instructions."""
    return [message for message in request["messages"] if message["role"] != "system"]


@pytest.fixture(scope="session", autouse=True)
def _loaded() -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """Load the vendors' SDKs before any test: that takes seconds, which no bound of a wait should have to cover."""
    importlib.import_module("coterie.runtime.providers.direct")


def _binding(name: str, api: str, url: str | None) -> Binding:
    return Binding(f"local/{name}", api, url, name, default=name == MODELS[0], available_for_subagents=True)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[SetStage]:
    """Set up hosts, and check what they left."""
    project = tmp_path / "project"
    project.mkdir()
    set_up: list[Stage] = []
    async with AsyncExitStack() as opened:

        async def set_stage(*rules: str, **limits: int) -> Stage:
            script = parse_script("".join(map(dedent, rules)))
            server = await opened.enter_async_context(ModelServer(script))
            models = tuple(_binding(name, "openai-chat", f"{server.url}/v1") for name in MODELS)
            models += (_binding(BROKEN, "telepathy", None),)
            loaded = load_settings(tmp_path / f"data-{len(set_up)}", {"PATH": "/usr/local/bin:/usr/bin:/bin"})
            made = Stage(server, replace(loaded, models=models, limits=replace(Limits(), **limits)), project)
            set_up.append(made)
            await made.start()
            opened.push_async_callback(made.stop)
            return made

        yield set_stage
        for one in set_up:
            verified = await one.ask("ledger.verify")
            assert verified["ok"], verified["failures"]
            assert not [mute for request in one.asked() for mute in mute_replies(request)]
