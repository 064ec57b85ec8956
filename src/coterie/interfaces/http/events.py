"""Server-sent events: the changes of one session, or of all, from a position on and without gaps.

Event ids are positions, so a client that comes back with `Last-Event-ID` gets what it missed. Live text has no id: it
may be lost, and the item that it becomes replaces it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Final, NoReturn

from fastapi import FastAPI
from fastapi.sse import format_sse_event
from pydantic import Field
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from coterie.core.permission import Risk
from coterie.interfaces.http import openapi
from coterie.interfaces.http.answers import SAFE_HEADERS
from coterie.interfaces.http.rest import ROOT, query_of
from coterie.interfaces.wire.errors import fault_of
from coterie.interfaces.wire.strict_json import encode, encode_view
from coterie.operations import events
from coterie.operations.act import Act, HostParts
from coterie.operations.caller import Person
from coterie.operations.catalogue import Operation
from coterie.operations.params import Params
from coterie.operations.perform import Operations, decode
from coterie.operations.views import ChangeView
from coterie.ports.feed import Delta
from coterie.ports.rows import Change

BEAT_S: Final = 15.0
"""Seconds of silence after which a comment tells that the stream lives."""


class Subscribe(Params):
    """Which stream, and where to go on."""

    session_id: str | None = None
    """One session's stream, positions are its revisions; the stream over all if absent."""
    after: Annotated[int | None, Field(ge=0, lt=2**53)] = None
    """The last position that is known; only what comes from now on if absent."""


async def _subscribe(act: Act, given: Subscribe) -> NoReturn:
    """Follow changes and live text, as server-sent events."""
    raise NotImplementedError(act, given)


SUBSCRIBE: Final = Operation(
    "events.subscribe", Subscribe, ChangeView, _subscribe, risk=Risk.LOW, agents=False, path="/events"
)
"""Not in the catalogue: it answers many times. Its parameters are decoded and documented like any operation's."""


_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "event": {"enum": ["cursor", "reset", "change", "delta"]},
        "data": {"type": "string", "description": "JSON"},
        "id": {"type": "string", "description": "The position; a delta has none"},
    },
    "required": ["event", "data"],
}
_DOCUMENTED: Final[dict[str, Any]] = {
    "description": "`cursor` first (or `reset`, where the position is of another ledger), then `change` and `delta`. "
    "The id of a change is its position: the revision in a session's own stream, the number in the stream over all.",
    "content": {"text/event-stream": {"schema": _EVENT}},
}


class EventStream(StreamingResponse):
    """Sends until the client leaves or the host stops."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes], stopping: asyncio.Event) -> None:
        super().__init__(chunks, headers={**SAFE_HEADERS, "x-accel-buffering": "no"})
        self._chunks, self._stopping = chunks, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del scope
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with asyncio.TaskGroup() as group:
            racing = {
                group.create_task(self._write(send)),
                group.create_task(_until_gone(receive)),
                group.create_task(_until_set(self._stopping)),
            }
            await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
            for task in racing:
                task.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send) -> None:
        try:
            async with aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except Exception as error:  # noqa: BLE001 - a server's edge: what is not foreseen ends this stream only
            # The answer has begun, so no status can tell: the stream ends, and the client comes back with its position.
            fault_of(error)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _until_set(event: asyncio.Event) -> None:
    await event.wait()


def add_route(app: FastAPI, operations: Operations, stopping: asyncio.Event, beat_s: float) -> None:
    """Add the stream."""

    async def answer(request: Request) -> StreamingResponse:
        given = decode(SUBSCRIBE, query_of(SUBSCRIBE, request))
        assert isinstance(given, Subscribe)
        if given.session_id is not None:
            # Before the answer begins, so that an unknown session is a refusal and not an empty stream.
            await operations.perform(Person(), "session.get", {"sessionId": given.session_id})
        resumed = request.headers.get("last-event-id")
        if resumed is not None:
            # A browser that comes back repeats its first URL, so the header is the newer word.
            position = int(resumed) if resumed.isdecimal() and len(resumed) < 19 else resumed  # noqa: PLR2004 - 64 bits
            given = given.model_copy(update={"after": decode(SUBSCRIBE, {"after": position}).model_dump()["after"]})
        return EventStream(_chunks(operations.host, given, beat_s), stopping)

    app.add_api_route(
        ROOT + SUBSCRIBE.path,
        answer,
        methods=["GET"],
        response_class=StreamingResponse,
        operation_id=SUBSCRIBE.name,
        summary=SUBSCRIBE.summary,
        tags=["events"],
        responses={200: _DOCUMENTED, **openapi.responses(SUBSCRIBE)},
        openapi_extra=openapi.request(SUBSCRIBE),
    )


async def _chunks(host: HostParts, given: Subscribe, beat_s: float) -> AsyncGenerator[bytes]:
    newest = await events.newest(host, given.session_id)
    # A position that was never given out belongs to another ledger: what was missed cannot be told.
    known = given.after is None or given.after <= newest
    after = given.after if known and given.after is not None else newest
    # The first event carries a position, so that a client that leaves before any change can come back without a gap.
    yield _event("cursor" if known else "reset", encode({"cursor": after}), str(after))
    async with aclosing(events.changes(host, given.session_id, after, beat_s=beat_s)) as found:
        async for one in found:
            yield _chunk(one, whole=given.session_id is None)


def _chunk(one: Change | Delta | None, *, whole: bool) -> bytes:
    match one:
        case None:
            return format_sse_event(comment="the stream lives")
        case Delta(session_id, turn_id, text, call_id):
            told = {"sessionId": session_id, "turnId": turn_id, "text": text}
            return _event("delta", encode(told | ({"callId": call_id} if call_id is not None else {})), None)
        case Change():
            return _event("change", encode_view(ChangeView.of(one)), str(one.number if whole else one.revision))


def _event(name: str, data: bytes, position: str | None) -> bytes:
    return format_sse_event(event=name, data_str=data.decode(), id=position)
