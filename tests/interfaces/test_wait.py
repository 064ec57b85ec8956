"""`collaboration.wait`: who may sleep for whom, when a sleep ends, and how the next call goes on."""

import asyncio
import base64
import json
import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.interfaces import elsewhere
from tests.interfaces.conftest import BOUND_S, HOST, TOKEN, Door, Host, in_process

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.errors import HostError, InvalidArgumentError, NotFoundError, PermissionDeniedError
from coterie.core.ids import SessionId, TurnId
from coterie.core.ledger.waits import Wait
from coterie.core.turn.items import Reply
from coterie.interfaces.http import build_app
from coterie.interfaces.wire.errors import ERRORS
from coterie.operations.act import HostParts
from coterie.operations.asleep import Sleep, Waits
from coterie.operations.caller import Agent, Caller, Person
from coterie.operations.catalogue import BY_NAME
from coterie.operations.perform import Operations
from coterie.operations.views import View
from coterie.plugins import session_orchestrator
from coterie.plugins.hooks import GROUP
from coterie.plugins.loader import load_tools
from coterie.ports.feed import Delta
from coterie.ports.store import C, Query, R, Store, UseCase
from coterie.ports.tool import Invocation
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.testing.clock import FakeClock
from coterie.testing.slots import IdleSlots

WAIT: Final = "collaboration.wait"


class WatchedSlots(IdleSlots):
    """Tells when a turn falls asleep."""

    def __init__(self) -> None:
        super().__init__()
        self.fell = asyncio.Event()

    @asynccontextmanager
    async def parked(self, turn_id: TurnId) -> AsyncGenerator[None]:
        """See the port."""
        async with super().parked(turn_id):
            self.fell.set()
            yield


@dataclass
class Trio:
    """Three sessions whose turns run, each with a live tool call, and the sleeps that a test has begun."""

    host: Host
    parts: HostParts
    slots: WatchedSlots
    opened: AsyncExitStack
    a: Invocation
    b: Invocation
    c: Invocation

    async def task(self, source: Invocation, target: Invocation) -> str:
        """Send a task, which waits behind the turn of its target."""
        given = {"sessionId": target.session_id, "content": "Do.", "kind": "task", "asSessionId": source.session_id}
        return cast("str", (await self.host.ask("collaboration.send", **given))["messageId"])

    async def settle(self, target: Invocation, message_id: str) -> None:
        """Let a task settle, by cancelling it."""
        await self.host.ask("collaboration.cancel", sessionId=target.session_id, messageId=message_id)

    def pass_s(self, seconds: float, watched: Invocation) -> None:
        """Let time pass, and whoever sleeps for *watched* look at the clock."""
        cast("FakeClock", self.parts.clock).advance(seconds)
        self.host.feed.wake([watched.session_id])

    async def wait(self, who: Invocation, parts: HostParts | None = None, **given: Any) -> dict[str, Any]:
        """Wait as an agent."""
        operations = Operations(parts or self.parts)
        async with asyncio.timeout(BOUND_S):
            return (await operations.perform(Agent(who), WAIT, given)).wire()

    async def asleep(
        self, who: Invocation, parts: HostParts | None = None, **given: Any
    ) -> asyncio.Task[dict[str, Any]]:
        """Begin to wait as an agent, and return when its turn sleeps."""
        self.slots.fell.clear()
        sleeping = asyncio.ensure_future(self.wait(who, parts, **given))
        self.opened.push_async_callback(_ended, sleeping)
        falling = asyncio.ensure_future(self.slots.fell.wait())
        self.opened.push_async_callback(_ended, falling)
        await asyncio.wait([sleeping, falling], return_when=asyncio.FIRST_COMPLETED)
        assert not sleeping.done(), f"it did not have to sleep: {sleeping.result()}"
        return sleeping

    async def refused(self, who: Invocation, **given: Any) -> HostError:
        """Wait as an agent, in vain."""
        with pytest.raises(HostError) as caught:
            await self.wait(who, **given)
        assert caught.value.code is Code.WAIT_CYCLE
        return caught.value


async def _ended(sleeping: asyncio.Task[Any]) -> None:
    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)


@pytest.fixture
async def trio(host: Host) -> AsyncIterator[Trio]:
    """The three."""
    host.slots.free = 3
    slots = WatchedSlots()
    async with AsyncExitStack() as opened:
        live: list[Invocation] = []
        for title in "abc":
            session_id = await host.new_session(title)
            turn_id = (await host.ask("session.prompt", sessionId=session_id, text="Go."))["turnId"]
            call = host.parts.invocations.live(SessionId(session_id), TurnId(turn_id), f"call of {title}", None)
            live.append(opened.enter_context(call))
        yield Trio(host, replace(host.parts, slots=slots), slots, opened, *live)


# Rings


async def test_a_refusal_has_status_code_and_path_at_both_doors(trio: Trio) -> None:
    """Case 75: whoever asks for an agent learns at once, and by ids, who waits for whom."""
    a, b, c, host = trio.a, trio.b, trio.c, trio.host
    await trio.asleep(a, messageIds=[await trio.task(a, b)])
    await trio.asleep(b, messageIds=[await trio.task(b, c)])

    class ForAgent(Operations):
        async def perform(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View:
            del caller
            return await super().perform(Agent(c), name, given)

    app = build_app(ForAgent(host.parts), token=TOKEN, hosts=lambda: frozenset({HOST}), stopping=host.stopping)
    async with in_process(app) as client:
        given = {"messageIds": [await trio.task(c, a)]}
        rest, called = await Door(client).rest(BY_NAME[WAIT], given), await Door(client).rpc(WAIT, given)

    assert rest.status_code == 409
    assert rest.json() == {"error": called["error"]}
    assert called["error"]["code"] == ERRORS[Code.WAIT_CYCLE].rpc
    path = [c.session_id, a.session_id, b.session_id, c.session_id]
    assert called["error"]["data"] == {"errorCode": "WAIT_CYCLE", "retryable": False, "path": path}
    assert " → ".join(path) in called["error"]["message"]


async def test_the_document_shows_the_refusal(door: Door) -> None:
    """Generators of clients read it there, and at no other route."""
    paths = (await door.client.get("/api/v1/openapi.json")).json()["paths"]
    with_it = [path for path, verbs in paths.items() if "WAIT_CYCLE" in json.dumps(verbs)]
    assert with_it == ["/api/v1/waits"]


async def test_a_session_that_waits_for_itself_is_refused(trio: Trio) -> None:
    """What is addressed to it begins after its turn, and its turn would end after that."""
    a = trio.a
    own = [a.session_id, a.session_id]
    sent = await trio.task(trio.b, a)
    assert (await trio.refused(a, messageIds=[sent])).detail() == {"path": own}
    assert (await trio.refused(a, sessionId=a.session_id, until="idle")).detail() == {"path": own}
    assert trio.slots.parking == []


async def test_waiting_for_idle_sessions_counts_as_well(trio: Trio) -> None:
    """A session is not idle while it sleeps."""
    await trio.asleep(trio.a, sessionId=trio.b.session_id, until="idle")
    await trio.refused(trio.b, sessionId=trio.a.session_id, until="idle")


async def test_where_one_is_enough_one_way_out_is_enough(trio: Trio) -> None:
    """Until that one closes a ring too: then it is the one that is refused."""
    a, b, c = trio.a, trio.b, trio.c
    await trio.asleep(b, messageIds=[await trio.task(b, a)])
    both = [await trio.task(a, b), await trio.task(a, c)]
    await trio.refused(a, messageIds=both, mode="all")

    sleeping = await trio.asleep(a, messageIds=both, mode="any")

    refused = await trio.refused(c, messageIds=[await trio.task(c, b)])
    assert refused.detail() == {"path": [c.session_id, b.session_id, a.session_id, c.session_id]}
    await trio.settle(c, both[1])
    assert not (await sleeping)["timedOut"]


async def test_a_session_sleeps_in_each_of_its_calls(trio: Trio) -> None:
    """Its turn goes on when all of them have ended, so each of them counts, and ends by itself."""
    a, b, c = trio.a, trio.b, trio.c
    sent = [await trio.task(b, a), await trio.task(b, c)]
    first = await trio.asleep(b, messageIds=sent[:1])
    await trio.asleep(b, messageIds=sent[1:])
    given: dict[str, Any] = {"messageIds": [await trio.task(a, b)]}
    await trio.refused(a, **given)

    await trio.settle(a, sent[0])

    assert not (await first)["timedOut"]
    await trio.asleep(a, **given)


@pytest.mark.parametrize("how", ["answered", "out of time", "cancelled"])
async def test_a_sleep_that_has_ended_stands_in_nobodys_way(trio: Trio, how: str) -> None:
    """However it ended, and also if the ring was refused before."""
    a, b = trio.a, trio.b
    sent = await trio.task(a, b)
    sleeping = await trio.asleep(a, messageIds=[sent], timeoutMs=60_000)
    given: dict[str, Any] = {"messageIds": [await trio.task(b, a)]}
    await trio.refused(b, **given)

    if how == "answered":
        await trio.settle(b, sent)
    elif how == "out of time":
        trio.pass_s(60, b)
    else:
        sleeping.cancel()
    await asyncio.wait([sleeping])

    assert sleeping.cancelled() or sleeping.result()["timedOut"] is (how == "out of time")
    await trio.asleep(b, **given)
    assert trio.slots.parking == [b.turn_id]


async def test_a_turn_that_waits_for_a_slot_only_is_in_nobodys_way(trio: Trio) -> None:
    """Its time has run out, and it will go on whatever others do."""
    a, b = trio.a, trio.b
    woken, free = asyncio.Event(), asyncio.Event()

    class FullSlots(IdleSlots):
        @asynccontextmanager
        async def parked(self, turn_id: TurnId) -> AsyncGenerator[None]:
            async with trio.slots.parked(turn_id):
                yield
            woken.set()
            await free.wait()

    full = replace(trio.parts, slots=FullSlots())
    sleeping = await trio.asleep(a, full, messageIds=[await trio.task(a, b)], timeoutMs=60_000)
    trio.pass_s(60, b)
    await asyncio.wait_for(woken.wait(), BOUND_S)

    await trio.asleep(b, messageIds=[await trio.task(b, a)])

    free.set()
    assert (await sleeping)["timedOut"]


async def test_what_has_settled_closes_no_ring_although_nobody_has_heard_of_it(trio: Trio) -> None:
    """Wake-ups may be lost: only what the ledger says now is a reason to refuse."""
    a, b = trio.a, trio.b
    first, second = await trio.task(a, b), await trio.task(a, b)
    deaf = replace(trio.parts, feed=MemoryFeed())
    await trio.asleep(a, deaf, messageIds=[first, second])
    given: dict[str, Any] = {"messageIds": [await trio.task(b, a)]}

    await trio.settle(b, first)
    await trio.refused(b, **given)
    await trio.settle(b, second)

    await trio.asleep(b, **given)


async def test_what_is_gone_closes_no_ring_and_is_no_fault_of_others(trio: Trio) -> None:
    """The look that finds it is a stranger's, who has never named it."""
    a, b, c = trio.a, trio.b, trio.c
    deaf = replace(trio.parts, feed=MemoryFeed())
    await trio.asleep(a, deaf, sessionId=c.session_id, until="idle")
    await trio.asleep(a, messageIds=[await trio.task(a, b)])
    await trio.host.ask("session.delete", sessionId=c.session_id)

    refused = await trio.refused(b, messageIds=[await trio.task(b, a)])

    assert refused.detail() == {"path": [b.session_id, a.session_id, b.session_id]}


class CountedFeed(MemoryFeed):
    """Wakes one sleeper by hand, and tells when it sleeps again."""

    def __init__(self) -> None:
        super().__init__()
        self._asleep = asyncio.Event()

    @contextmanager
    def listen(self, topics: Iterable[str] | None) -> Generator[Any]:
        """See the port."""
        with super().listen(topics) as self._listener:
            yield self

    async def wait(self, timeout_s: float | None = None) -> bool:
        """See the port."""
        self._asleep.set()
        return await self._listener.wait(timeout_s)

    async def look_again(self, watched: Invocation) -> None:
        """Wake the sleeper, and return when it sleeps on."""
        self._asleep.clear()
        self.wake([watched.session_id])
        await asyncio.wait_for(self._asleep.wait(), BOUND_S)


async def _next_turn(trio: Trio, of: Invocation) -> Invocation:
    """End a turn, let a stranger look while its session is idle, and begin the next turn; returns a call of that."""
    host = trio.host
    await host.parts.store.run(settle_turn, SettleTurn(of.turn_id, (Reply("Done."),), slot=False))
    await trio.refused(trio.c, sessionId=trio.c.session_id, until="idle")
    host.slots.free = 1
    turn_id = (await host.ask("session.prompt", sessionId=of.session_id, text="Go on."))["turnId"]
    return trio.opened.enter_context(host.parts.invocations.live(of.session_id, TurnId(turn_id), "next", None))


@guarantee("I12")
async def test_who_sleeps_on_for_a_session_that_was_idle_for_a_while_is_in_its_way_again(trio: Trio) -> None:
    """It slept through the moment in which others saw that nobody had to wait."""
    a, feed = trio.a, CountedFeed()
    await trio.asleep(a, replace(trio.parts, feed=feed), sessionId=trio.b.session_id, until="idle")
    b = await _next_turn(trio, trio.b)

    await feed.look_again(b)

    refused = await trio.refused(b, messageIds=[await trio.task(b, a)])
    assert refused.detail() == {"path": [b.session_id, a.session_id, b.session_id]}


@guarantee("I12")
async def test_who_would_sleep_on_for_a_session_that_waits_for_it_by_now_is_refused(trio: Trio) -> None:
    """Nothing was wrong with the second wait when it began, so the first one ends, though it is older."""
    a, feed = trio.a, MemoryFeed()
    parts = replace(trio.parts, feed=feed)
    sleeping = await trio.asleep(a, parts, sessionId=trio.b.session_id, until="idle")
    b = await _next_turn(trio, trio.b)
    sent = await trio.task(b, a)
    other = await trio.asleep(b, messageIds=[sent])

    feed.wake([b.session_id])

    with pytest.raises(HostError) as refused:
        await asyncio.wait_for(sleeping, BOUND_S)
    assert refused.value.code is Code.WAIT_CYCLE
    assert refused.value.detail() == {"path": [a.session_id, b.session_id, a.session_id]}
    assert trio.slots.parking == [b.turn_id]
    await trio.settle(a, sent)
    assert not (await other)["timedOut"]


async def test_a_look_that_others_have_overtaken_is_no_reason_to_refuse() -> None:
    """What it has found has settled, as they have seen and let go; it sleeps on for nobody, until it sees that too."""
    one, two = SessionId("ses_one"), SessionId("ses_two")

    async def nobody() -> tuple[SessionId, ...]:
        return ()

    async def first() -> tuple[SessionId, ...]:
        return (one,)

    waits, sleep = Waits(), Sleep(Wait(one, (two,)), nobody)
    await waits.begin(sleep)
    await sleep.look()
    await waits.begin(Sleep(Wait(two, (one,)), first))

    await waits.renew(sleep, (two,))

    assert sleep.wait.targets == ()


class GatedStore:
    """Hands out what was read when *parties* have read as often, for the first *rounds*."""

    def __init__(self, store: Store, parties: int, rounds: int) -> None:
        self._store, self._barrier, self._left = store, asyncio.Barrier(parties), parties * rounds

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        return await self._store.run(use_case, command, brief=brief)

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        found = await self._store.read(query, command, brief=brief)
        if self._left > 0:
            self._left -= 1
            await self._barrier.wait()
        return found


async def test_of_two_that_go_to_sleep_at_once_one_is_refused(trio: Trio) -> None:
    """Both have read the ledger before either sleeps, so each sees the other awake until the last moment."""
    a, b = trio.a, trio.b
    sent = {a: await trio.task(a, b), b: await trio.task(b, a)}
    gated = replace(trio.parts, store=GatedStore(trio.parts.store, parties=2, rounds=2))
    both = [asyncio.ensure_future(trio.wait(who, gated, messageIds=[sent[who]])) for who in (a, b)]

    ended, sleeping = await asyncio.wait(both, timeout=BOUND_S, return_when=asyncio.FIRST_COMPLETED)

    assert (len(ended), len(sleeping)) == (1, 1)
    refused = ended.pop().exception()
    assert isinstance(refused, HostError)
    assert refused.code is Code.WAIT_CYCLE
    assert len(trio.slots.parking) == 1
    await _ended(sleeping.pop())


async def test_a_person_is_never_refused(trio: Trio) -> None:
    """A person holds nobody up, and neither do they who wait beside a ring."""
    a, b = trio.a, trio.b
    sent = [await trio.task(a, b), await trio.task(b, a)]
    await trio.asleep(a, messageIds=sent[:1])
    trio.host.feed.listened.clear()
    watching = asyncio.ensure_future(trio.host.ask(WAIT, messageIds=sent))
    await asyncio.wait_for(trio.host.feed.listened.wait(), BOUND_S)

    for target, message_id in zip((b, a), sent, strict=True):
        await trio.settle(target, message_id)

    assert not (await asyncio.wait_for(watching, BOUND_S))["timedOut"]


async def test_what_does_not_have_to_sleep_is_never_refused(trio: Trio) -> None:
    """A look costs nobody anything, and an outcome that is there is an answer."""
    a, b = trio.a, trio.b
    await trio.asleep(a, messageIds=[await trio.task(a, b)])
    sent = await trio.task(b, a)
    assert (await trio.wait(b, messageIds=[sent], timeoutMs=0))["timedOut"]

    await trio.settle(a, sent)

    answered = await trio.wait(b, messageIds=[sent])
    assert (answered["timedOut"], answered["messages"][0]["status"]) == (False, "cancelled")


async def test_a_wait_ends_with_the_call_that_it_is_for(trio: Trio) -> None:
    """A plugin may leave one behind: it must neither read for the session nor keep others from waiting."""
    a, b, host = trio.a, trio.b, trio.host
    with ExitStack() as call:
        left = call.enter_context(host.parts.invocations.live(a.session_id, a.turn_id, "one more", None))
        sleeping = await trio.asleep(left, messageIds=[await trio.task(a, b)])
    host.feed.wake([b.session_id])
    with pytest.raises(PermissionDeniedError, match="has ended"):
        await sleeping
    await trio.asleep(b, messageIds=[await trio.task(b, a)])


# Ends of a sleep


class EagerFeed(MemoryFeed):
    """Wakes everybody all the time; each sleep takes a second of the clock."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    @contextmanager
    def listen(self, topics: Iterable[str] | None) -> Generator[Any]:
        """See the port."""
        del topics
        yield self

    async def wait(self, timeout_s: float | None = None) -> bool:
        """See the port."""
        del timeout_s
        self.clock.advance(1)
        return True

    def deltas(self) -> list[Delta]:
        """See the port."""
        return []


@pytest.mark.parametrize("caller", ["person", "agent"])
async def test_a_session_that_never_stops_talking_does_not_lengthen_a_wait(trio: Trio, caller: str) -> None:
    """Case 90: the time is the caller's, whatever comes from the one that is waited for."""
    parts, sent = trio.parts, await trio.task(trio.a, trio.b)
    clock = cast("FakeClock", parts.clock)
    begun_s = clock.monotonic()
    who = Person() if caller == "person" else Agent(trio.a)

    async with asyncio.timeout(BOUND_S):
        eager = Operations(replace(parts, feed=EagerFeed(clock)))
        answer = await eager.perform(who, WAIT, {"messageIds": [sent], "timeoutMs": 3000})

    assert (answer.wire()["timedOut"], clock.monotonic() - begun_s) == (True, 3)


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """Install a plugin of others, under the very name of the official one."""
    (official,) = entry_points(group=GROUP, module=session_orchestrator.__name__)
    folder = tmp_path / "elsewhere-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{official.name} = {elsewhere.__name__}\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("tool", "timeout_ms", "seconds"),
    [("nap", None, 25), ("nap", 3_600_000, 45), ("nap", 3_000, 3), ("session_task", 60_000, 60)],
)
async def test_a_plugin_of_others_sleeps_no_longer_than_a_client_outside(
    trio: Trio, tool: str, timeout_ms: int | None, seconds: int
) -> None:
    """Only what ships with the host may hold a turn for an hour, and a name is nothing to tell it by."""
    given: dict[str, Any] = {"messageIds": [await trio.task(trio.a, trio.b)]}
    if timeout_ms is not None:
        given["timeoutMs"] = timeout_ms
    if tool == "session_task":
        given["action"] = "wait"
    clock = cast("FakeClock", trio.parts.clock)
    tools = load_tools(Operations(replace(trio.parts, feed=EagerFeed(clock))), {})
    begun_s = clock.monotonic()

    async with asyncio.timeout(BOUND_S):
        answer = json.loads((await tools[tool].run(trio.a, given)).text)

    assert (answer["timedOut"], "cursor" in answer, clock.monotonic() - begun_s) == (True, True, seconds)


class MeddlingStore(GatedStore):
    """Does something right after the first look, before whoever looked can listen."""

    def __init__(self, store: Store, meddle: Callable[[], Awaitable[None]]) -> None:
        super().__init__(store, parties=1, rounds=0)
        self.looks, self._meddle = 0, meddle

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        found = await super().read(query, command, brief=brief)
        self.looks += 1
        if self.looks == 1:
            await self._meddle()
        return found


async def test_an_outcome_that_comes_between_the_look_and_the_sleep_is_not_missed(trio: Trio) -> None:
    """Case 78: it looks once more when it listens, and answers without a sleep."""
    sent = await trio.task(trio.a, trio.b)
    store = MeddlingStore(trio.parts.store, lambda: trio.settle(trio.b, sent))

    answer = await trio.wait(trio.a, replace(trio.parts, store=store), messageIds=[sent])

    assert (answer["timedOut"], store.looks) == (False, 2)


@pytest.mark.parametrize("mode", ["all", "any"])
async def test_other_messages_of_the_same_sessions_end_no_wait(trio: Trio, mode: str) -> None:
    """Case 78: a wait is for ids, so a neighbour that settles first is not taken for the answer."""
    a, b = trio.a, trio.b
    other, sent = await trio.task(a, b), await trio.task(a, b)
    sleeping = await trio.asleep(a, messageIds=[sent], mode=mode)

    await trio.settle(b, other)
    await trio.settle(b, sent)

    assert [(one["id"], one["status"]) for one in (await sleeping)["messages"]] == [(sent, "cancelled")]


# Cursors


@pytest.mark.parametrize("mode", ["all", "any"])
async def test_a_wait_goes_on_by_its_cursor(trio: Trio, mode: str) -> None:
    """Case 187: a client with a short limit asks in slices, and needs to remember nothing else."""
    a, b = trio.a, trio.b
    sent = [await trio.task(a, b), await trio.task(a, b)]
    answer = await trio.host.ask(WAIT, messageIds=sent, mode=mode, timeoutMs=0)
    for _ in range(3):
        assert answer["timedOut"]
        assert [one["id"] for one in answer["messages"]] == sent
        answer = await trio.host.ask(WAIT, cursor=answer["cursor"], timeoutMs=0)
    cursor = answer["cursor"]

    await trio.settle(b, sent[1])
    answer = await trio.host.ask(WAIT, cursor=cursor, timeoutMs=0)
    assert (answer["timedOut"], "cursor" in answer) == (mode == "all", mode == "all")
    await trio.settle(b, sent[0])

    answer = await trio.host.ask(WAIT, cursor=cursor)
    assert (answer["timedOut"], "cursor" in answer) == (False, False)
    assert [one["status"] for one in answer["messages"]] == ["cancelled", "cancelled"]


async def test_a_wait_for_an_idle_session_goes_on_by_its_cursor_too(trio: Trio) -> None:
    """Null is nothing, as in every parameter."""
    first = await trio.host.ask(WAIT, sessionId=trio.b.session_id, until="idle", timeoutMs=0)
    again = await trio.host.ask(WAIT, cursor=first["cursor"], timeoutMs=0, sessionId=None)
    assert (again["timedOut"], again["status"], again["cursor"]) == (True, "running", first["cursor"])


async def test_the_longest_wait_has_a_cursor_that_is_taken(trio: Trio) -> None:
    """The bound on a cursor must not bite on what the host made itself."""
    sent: list[str] = []
    for _ in range(64):
        sent.append(await trio.task(trio.a, trio.b))
        if len(sent) < 64:
            await trio.settle(trio.b, sent[-1])
    first = await trio.host.ask(WAIT, messageIds=sent, timeoutMs=0)
    again = await trio.host.ask(WAIT, cursor=first["cursor"], timeoutMs=0)
    assert again == first
    assert len(first["cursor"]) < 4096


@pytest.mark.parametrize("besides", [{"messageIds": []}, {"sessionId": "ses_x"}, {"until": "settled"}, {"mode": "all"}])
async def test_a_cursor_stands_alone(trio: Trio, besides: dict[str, Any]) -> None:
    """Whatever were taken of two wishes, the other would be a surprise."""
    sent = await trio.task(trio.a, trio.b)
    cursor = (await trio.host.ask(WAIT, messageIds=[sent], timeoutMs=0))["cursor"]
    with pytest.raises(InvalidArgumentError, match="alone or with timeoutMs"):
        await trio.host.ask(WAIT, cursor=cursor, timeoutMs=0, **besides)


async def test_a_cursor_gives_no_right_to_read(trio: Trio) -> None:
    """Its ids are looked at as if they had been named."""
    sent = await trio.task(trio.a, trio.b)
    cursor = (await trio.host.ask(WAIT, messageIds=[sent], timeoutMs=0))["cursor"]
    assert (await trio.wait(trio.a, cursor=cursor, timeoutMs=0))["timedOut"]
    with pytest.raises(NotFoundError):
        await trio.wait(trio.c, cursor=cursor, timeoutMs=0)


async def test_a_damaged_cursor_is_refused_whatever_was_damaged(trio: Trio) -> None:
    """A letter less, more or other: it must never name something else."""
    sent = await trio.task(trio.a, trio.b)
    cursor = (await trio.host.ask(WAIT, messageIds=[sent], timeoutMs=0))["cursor"]
    other = {place: "A" if letter != "A" else "B" for place, letter in enumerate(cursor)}
    damaged = [cursor[:place] + letter + cursor[place + 1 :] for place, letter in other.items()]
    damaged += [cursor[:place] for place in range(len(cursor))]
    damaged += [f"{cursor}{more}" for more in ("A", "=", "==", "\n", " ", "é")]
    for text in damaged:
        with pytest.raises(InvalidArgumentError, match="hand it back as it was, or name messageIds"):
            await trio.host.ask(WAIT, cursor=text, timeoutMs=0)


def _forged(body: str) -> str:
    text = f"{zlib.crc32(body.encode()):08x}{body}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 2000,
        '{"messageIds":[]}',
        '{"messageIds":"msg_x"}',
        '{"messageIds": ["msg_x"]}',
        '{"messageIds":["msg_x"],"mode":"some"}',
        '{"messageIds":["msg_x"],"mode":"all"}',
        '{"messageIds":["msg_x"],"timeoutMs":1}',
        '{"messageIds":["msg_x"],"cursor":"x"}',
        '{"messageIds":["msg_x"],"asSessionId":"ses_x"}',
        '{"sessionId":"ses_x","until":"idle","messageIds":["msg_x"]}',
    ],
)
async def test_a_forged_cursor_is_refused(host: Host, body: str) -> None:
    """Even with a good checksum it says only what a wait could say, in the words in which the host says it."""
    with pytest.raises(InvalidArgumentError):
        await host.ask(WAIT, cursor=_forged(body), timeoutMs=0)


async def test_a_cursor_that_names_nothing_is_told_so(host: Host) -> None:
    """A forgery that is well made is as good as the parameters, and no better."""
    with pytest.raises(NotFoundError):
        await host.ask(WAIT, cursor=_forged('{"messageIds":["msg_x"]}'), timeoutMs=0)
