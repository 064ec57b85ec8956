"""A host without workers, and its doors: in process, and on a real port."""

import asyncio
import re
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2
import pytest
from starlette.types import ASGIApp

from coterie.app import recover
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.approve import AskPerson, ask_person
from coterie.app.open_session import OpenSession, open_session
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.ids import GrantId, HostId, NewId, RequestId, SessionId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.core.permission import Mode, Risk, StoredMode
from coterie.core.turn.items import Reply
from coterie.interfaces.http import Server, bind, build_app, hosts_of
from coterie.operations.act import HostParts
from coterie.operations.caller import Person
from coterie.operations.catalogue import Operation
from coterie.operations.invocations import Invocations
from coterie.operations.perform import Operations
from coterie.ports.rows import HostFacts, PairGrant, PairRequest
from coterie.ports.store import Tx
from coterie.runtime.subagents.delegations import Delegations
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.storage.sqlite.store import SqliteStore
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds
from coterie.testing.probe import ScriptedProbe
from coterie.testing.slots import IdleSlots
from coterie.testing.workspaces import PlainWorkspaces

TOKEN: Final = "the-token-of-the-test"
BEARER: Final = {"authorization": f"Bearer {TOKEN}"}
HOST: Final = "127.0.0.1:7433"
MODELS: Final = (
    Binding("local/one", "openai-chat", None, "one", aliases=("same",), default=True),
    Binding("local/two", "openai-chat", None, "two", aliases=("same",)),
)
BOUND_S: Final = 20
"""No wait of a test is longer."""


class WatchedFeed(MemoryFeed):
    """Tells when somebody listens, and when somebody has left."""

    def __init__(self) -> None:
        super().__init__()
        self.listened, self.left = asyncio.Event(), asyncio.Event()

    @contextmanager
    def listen(self, topics: Iterable[str] | None) -> Generator[Any]:
        """See the port."""
        with super().listen(topics) as listener:
            self.listened.set()
            try:
                yield listener
            finally:
                self.left.set()


@dataclass
class Host:
    """A composed host; turns run until a test ends them."""

    parts: HostParts
    operations: Operations
    slots: IdleSlots
    feed: WatchedFeed
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, name: str, **given: Any) -> dict[str, Any]:
        """Perform an operation as a person, past the doors."""
        return (await self.operations.perform(Person(), name, given)).wire()

    async def new_session(self, title: str = "one") -> str:
        """Create a session and return its id."""
        created = await self.ask("session.create", title=title)
        return cast("str", created["session"]["id"])

    async def say(self, turn_id: str, text: str) -> None:
        """Write a reply into the transcript of a running turn."""
        await self.parts.store.run(append_items, AppendToTurn(TurnId(turn_id), (Reply(text),)))


class Door:
    """A client with the token; calls over REST and over `/rpc`."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def rest(self, operation: Operation, params: Mapping[str, Any]) -> httpx2.Response:
        """Call over the operation's own route."""
        rest = dict(params)
        path = re.sub(r"\{(\w+)\}", lambda match: quote(str(rest.pop(match[1])), safe=""), operation.path)
        if operation.verb == "GET":
            return await self.client.get(f"/api/v1{path}", params=rest)
        return await self.client.post(f"/api/v1{path}", json=rest)

    async def rpc(self, method: str, params: Any = None) -> dict[str, Any]:
        """Call and return the whole answer."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
        body["params"] = {} if params is None else params
        answered = await self.client.post("/rpc", json=body)
        assert answered.status_code == 200, answered.text
        return cast("dict[str, Any]", answered.json())


async def compose(path: Path, slots: IdleSlots) -> tuple[Host, SqliteStore]:
    """Put a host together; the store is to be closed."""
    clock, ids, feed, limits = FakeClock(), SeededIds(), WatchedFeed(), Limits()
    facts = HostFacts(HostId("hst_one"), 0, Mode.ASK, limits)
    store = SqliteStore(path, facts, clock, ids, feed=feed)
    host_id, epoch = await store.run(recover.begin_epoch, facts.id)
    store.become(HostFacts(host_id, epoch, facts.permission_default, limits))
    parts = HostParts(
        store=store,
        feed=feed,
        clock=clock,
        slots=slots,
        invocations=Invocations(ids),
        models=MODELS,
        limits=limits,
        version="0.0.0-test",
        delegates=Delegations(ids, clock, path.parent, limits.delegations_max),
        probe=ScriptedProbe(),
        workspaces=PlainWorkspaces(),
    )
    return Host(parts, Operations(parts), slots, feed), store


async def furnish(host: Host) -> dict[str, str]:
    """Something of each kind that a parameter can name, by short names.

    `$a`, `$b` and `$c` are sessions, and `$w` is one with a worktree; `$m` is a message from a to b that runs in turn
    `$t`, with `$i` and `$j` behind; `$d` is a task from a to c that has completed; `$r` asks whether a may write to b,
    and `$g` lets it write to c; `$q` is what the turn asks a person.
    """
    a, b, c = [await host.new_session(title) for title in "abc"]
    sent = await host.ask("collaboration.send", sessionId=b, content="Do.", kind="task", asSessionId=a)
    done = await host.ask("collaboration.send", sessionId=c, content="Did.", kind="task", asSessionId=a)
    one, other = [await host.ask("session.prompt", sessionId=b, text=text) for text in ("First.", "Second.")]
    settle = SettleTurn(TurnId(done["turnId"]), (Reply("Good."),), slot=False)
    await host.parts.store.run(settle_turn, settle)
    asked = await host.ask("collaboration.send", sessionId=b, content="May I?", asSessionId=a)
    request, grant = RequestId("req_one"), GrantId("grt_one")
    origin = await PlainWorkspaces().origin("/project")
    opening = OpenSession("w", "/project", None, StoredMode.INHERIT, origin=origin)
    w, _ = await host.parts.store.run(open_session, opening)

    def permit(tx: Tx, command: None, now: int, new_id: NewId) -> None:
        del command, new_id
        (waiting,) = [one for one in tx.inputs.page(SessionId(b), 9) if one.message_id == asked["messageId"]]
        tx.marks.mark(waiting.id, Waiting.ACROSS_PROJECTS)
        tx.changed(SessionId(b), "permission", request)
        tx.pairs.ask(PairRequest(request, SessionId(a), SessionId(b), now))
        tx.pairs.add_grant(PairGrant(grant, SessionId(a), SessionId(c), now, now + 3_600_000))

    await host.parts.store.run(permit, None)
    asking = AskPerson(TurnId(sent["turnId"]), "one", "ask_user", Risk.LOW, "Which one?", "", None, ("old", "new"))
    question = await host.parts.store.run(ask_person, asking)
    assert question is not None
    return {
        "$a": a,
        "$b": b,
        "$c": c,
        "$w": w.id,
        "$m": sent["messageId"],
        "$t": sent["turnId"],
        "$i": one["inputId"],
        "$j": other["inputId"],
        "$d": done["messageId"],
        "$r": request,
        "$q": question.id,
        "$g": grant,
    }


def in_process(app: ASGIApp) -> httpx2.AsyncClient:
    """A client of an app, without a socket."""
    transport = httpx2.ASGITransport(app)
    return httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}", headers=BEARER)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    """A host with two free slots."""
    composed, store = await compose(tmp_path / "coterie.db", IdleSlots(free=2))
    yield composed
    await store.close()


@pytest.fixture
async def door(host: Host) -> AsyncIterator[Door]:
    """The app in process, without a socket."""
    app = build_app(host.operations, token=TOKEN, hosts=lambda: frozenset({HOST}), stopping=host.stopping)
    async with in_process(app) as client:
        yield Door(client)


@pytest.fixture
async def served(host: Host) -> AsyncIterator[Door]:
    """The app on a port of its own."""
    listening = bind("127.0.0.1", 0)
    app = build_app(
        host.operations, token=TOKEN, hosts=lambda: hosts_of(listening), stopping=host.stopping, beat_s=0.05
    )
    server = Server(app, listening, host.stopping, stop_s=1)
    await server.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop)
        client = httpx2.AsyncClient(base_url=server.url, headers=BEARER, timeout=BOUND_S)
        yield Door(await stack.enter_async_context(client))
