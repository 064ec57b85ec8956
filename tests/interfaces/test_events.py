"""Server-sent events over a real port: no gap and no repeat, whoever leaves and comes back."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from tests.interfaces.conftest import BOUND_S, Door, Host

from coterie.ports.feed import Delta

URL = "/api/v1/events"


class Viewer:
    """One who reads a stream."""

    def __init__(self, events: AsyncIterator[httpx2.ServerSentEvent]) -> None:
        self._events = events
        self.position = ""

    async def next(self) -> tuple[str, Any]:
        """Name and content of the next event; notes its id, as browsers do."""
        async with asyncio.timeout(BOUND_S):
            found = await anext(self._events)
        self.position = found.id
        return found.event, found.json()

    async def changes(self, count: int) -> list[dict[str, Any]]:
        """The next *count* events, which are changes."""
        found = [await self.next() for _ in range(count)]
        assert {name for name, _ in found} == {"change"}
        return [change for _, change in found]


@asynccontextmanager
async def _viewer(
    door: Door, session_id: str | None = None, after: int | None = None, resumed: str | None = None
) -> AsyncGenerator[Viewer]:
    params = {key: value for key, value in (("sessionId", session_id), ("after", after)) if value is not None}
    headers = {"last-event-id": resumed} if resumed is not None else {}
    async with door.client.sse(URL, params=params, headers=headers) as source:
        yield Viewer(aiter(source))


async def test_a_sessions_stream_counts_its_revisions(served: Door, host: Host) -> None:
    """From a snapshot's revision on, everything that came after it, and nothing of other sessions."""
    session_id = await host.new_session()
    await host.new_session("another")
    revision = (await host.ask("session.get", sessionId=session_id))["session"]["revision"]
    async with _viewer(served, session_id, after=revision) as viewer:
        assert await viewer.next() == ("cursor", {"cursor": revision})
        prompted = await host.ask("session.prompt", sessionId=session_id, text="Hi.")
        first = (await viewer.changes(1))[0]
        assert (first["sessionId"], first["revision"]) == (session_id, revision + 1)
        assert viewer.position == str(revision + 1)
        await host.say(prompted["turnId"], "Hello.")
        assert "items" in {change["kind"] for change in await viewer.changes(1)}


async def test_who_comes_back_misses_nothing_and_sees_nothing_twice(served: Door, host: Host) -> None:
    """The id of the last event is all that a client must keep."""
    session_id = await host.new_session()
    turn_id = (await host.ask("session.prompt", sessionId=session_id, text="Hi."))["turnId"]
    newest = (await host.ask("session.get", sessionId=session_id))["session"]["revision"]
    seen: list[int] = []
    async with _viewer(served, session_id, after=0) as viewer:
        await viewer.next()
        seen += [change["revision"] for change in await viewer.changes(newest)]
    position = viewer.position
    for number in range(3):
        await host.say(turn_id, f"Away {number}.")
    # The first address is repeated, as browsers do, and the header is the newer word.
    async with _viewer(served, session_id, after=0, resumed=position) as viewer:
        assert await viewer.next() == ("cursor", {"cursor": newest})
        seen += [change["revision"] for change in await viewer.changes(3)]
        await host.say(turn_id, "Back.")
        seen += [change["revision"] for change in await viewer.changes(1)]
    assert seen == list(range(1, newest + 5))


async def test_who_leaves_before_any_change_can_come_back(served: Door, host: Host) -> None:
    """The first event carries a position, whatever happens after it."""
    async with _viewer(served) as viewer:
        assert (await viewer.next())[0] == "cursor"
    session_id = await host.new_session()
    async with _viewer(served, resumed=viewer.position) as viewer:
        await viewer.next()
        assert [change["sessionId"] for change in await viewer.changes(1)] == [session_id]


async def test_without_a_position_only_news_come(served: Door, host: Host) -> None:
    """A list that is read after the stream has opened needs no past."""
    await host.new_session("old")
    async with _viewer(served) as viewer:
        await viewer.next()
        session_id = await host.new_session("new")
        assert [change["sessionId"] for change in await viewer.changes(1)] == [session_id]


async def test_two_viewers_see_the_same(served: Door, host: Host) -> None:
    """A page and a terminal, one on the session and one on all."""
    session_id = await host.new_session()
    async with _viewer(served, session_id, after=0) as one, _viewer(served, after=0) as all_:
        await one.next()
        await all_.next()
        await host.ask("session.prompt", sessionId=session_id, text="Hi.")
        newest = (await host.ask("session.get", sessionId=session_id))["session"]["revision"]
        assert await one.changes(newest) == await all_.changes(newest)


async def test_live_text_has_no_position(served: Door, host: Host) -> None:
    """It may be lost, so nobody may resume from it."""
    session_id = await host.new_session()
    async with AsyncExitStack() as stack:
        viewer = await stack.enter_async_context(_viewer(served, session_id))
        await viewer.next()
        # The position is told before the feed is listened to, and live text is not kept for the late.
        await host.feed.listened.wait()
        host.feed.listened.clear()
        everything = await stack.enter_async_context(_viewer(served))
        await everything.next()
        await host.feed.listened.wait()
        before = viewer.position
        text = "two\nlines, and \u2028 another"
        host.feed.publish(Delta(session_id, "turn_x", text))
        shown = {"sessionId": session_id, "turnId": "turn_x", "text": text}
        assert await viewer.next() == ("delta", shown)
        assert viewer.position == before
        assert await everything.next() == ("delta", shown)
        # What a tool prints is no part of a reply, so it says whose it is.
        host.feed.publish(Delta(session_id, "turn_x", "printed", "call_x"))
        assert await viewer.next() == ("delta", shown | {"text": "printed", "callId": "call_x"})


async def test_a_position_of_another_ledger_is_reset(served: Door, host: Host) -> None:
    """After a restored copy a silent wait for that position would hide everything."""
    session_id = await host.new_session()
    async with _viewer(served, session_id, resumed="1000") as viewer:
        assert await viewer.next() == ("reset", {"cursor": 1})
        assert viewer.position == "1"


async def test_silence_is_told(served: Door, host: Host) -> None:
    """Proxies and clients give up on connections that say nothing."""
    async with served.client.stream("GET", URL) as answer, asyncio.timeout(BOUND_S):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        lines = answer.aiter_lines()
        while not (await anext(lines)).startswith(": "):
            pass


async def test_a_stream_ends_when_the_host_stops(served: Door, host: Host) -> None:
    """The client sees an end, not a broken connection."""
    async with _viewer(served) as viewer:
        await viewer.next()
        host.stopping.set()
        with pytest.raises(StopAsyncIteration):
            await viewer.next()


async def test_nobody_listens_for_a_client_that_has_left(served: Door, host: Host) -> None:
    """Otherwise every visit of a page would cost memory for good."""
    async with _viewer(served) as viewer:
        await viewer.next()
        await host.feed.listened.wait()
    async with asyncio.timeout(BOUND_S):
        await host.feed.left.wait()


@pytest.mark.parametrize(
    ("params", "headers", "told"),
    [
        ({"sessionId": "ses_nothing"}, {}, (404, "ses_nothing")),
        ({"after": "-1"}, {}, (400, "after")),
        ({"after": "soon"}, {}, (400, "after")),
        ({"sesionId": "x"}, {}, (400, "did you mean sessionId?")),
        ({}, {"last-event-id": "soon"}, (400, "after")),
        ({}, {"last-event-id": "9" * 30}, (400, "after")),
    ],
)
async def test_what_cannot_be_streamed_is_refused(
    door: Door, params: dict[str, str], headers: dict[str, str], told: tuple[int, str]
) -> None:
    """With a status, before the stream begins."""
    answer = await door.client.get(URL, params=params, headers=headers)
    status, words = told
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
