"""Builds the ASGI app: REST, JSON-RPC, events and the status page, behind one gate."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from coterie.core.errors import HostError, InternalError, InvalidArgumentError, NotFoundError
from coterie.core.limits import Limits
from coterie.interfaces import rpc
from coterie.interfaces.http import events, openapi, rest
from coterie.interfaces.http.answers import SAFE_HEADERS, json_answer, refusal
from coterie.interfaces.http.edge import Edge
from coterie.interfaces.http.gate import Gate
from coterie.interfaces.http.page import status_page
from coterie.interfaces.wire.strict_json import encode
from coterie.operations.caller import Person
from coterie.operations.perform import Operations

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of a request's body; more where `content_chars_max` allows longer messages."""
# A character outside the first plane is two escapes of six bytes.
_BYTES_PER_CHAR_MAX: Final = 12
_NOT_FOUND: Final = 404
_METHOD_NOT_ALLOWED: Final = 405
_CONTENT_TOO_LARGE: Final = 413
_DESCRIPTION: Final = "A host for agent sessions that work together. Every operation is also a method of `POST /rpc`."


def build_app(
    operations: Operations,
    *,
    token: str,
    hosts: Callable[[], frozenset[str]],
    stopping: asyncio.Event,
    beat_s: float = events.BEAT_S,
) -> ASGIApp:
    """Build the app that the server runs.

    Args:
        operations: What is asked.
        token: The owner's bearer token.
        hosts: The names of this host with their port (`hosts_of`); asked at each request.
        stopping: Set when the host stops: streams and waits end then.
        beat_s: Seconds of silence after which an event stream says that it lives.
    """
    app = FastAPI(
        title="Coterie",
        version=operations.host.version,
        description=_DESCRIPTION,
        # The document is served below, complete; the pages would load scripts from elsewhere.
        openapi_url=None,
        redirect_slashes=False,
    )
    edge, bytes_max = Edge(operations, stopping), body_bytes_max(operations.host.limits)
    page = status_page(operations.host.version)

    # Made when somebody asks: a start should not wait for it.
    @cache
    def document() -> Response:
        return json_answer(encode(openapi.document(app)))

    async def show_document(request: Request) -> Response:
        del request
        return document()

    async def show_page(request: Request) -> Response:
        del request
        return page

    async def call(request: Request) -> Response:
        found = await rpc.answer(edge, Person(), await rest.body_of(request, bytes_max))
        return Response(status_code=204, headers=SAFE_HEADERS) if found is None else json_answer(found)

    # Routes are compared in this order: what programs call most comes first.
    app.add_route("/rpc", call, methods=["POST"])
    rest.add_routes(app, edge, bytes_max)
    events.add_route(app, operations, stopping, beat_s)
    app.add_route(f"{rest.ROOT}/openapi.json", show_document, methods=["GET"])
    app.add_route("/", show_page, methods=["GET"])
    _answer_faults(app)
    return Gate(app, hosts, token, open_paths=frozenset({"/"}))


def body_bytes_max(limits: Limits) -> int:
    """The largest body that is read."""
    return max(BODY_BYTES_MAX, _BYTES_PER_CHAR_MAX * limits.content_chars_max + BODY_BYTES_MAX // 4)


def _answer_faults(app: FastAPI) -> None:
    app.add_exception_handler(HostError, _fault)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(Exception, _unforeseen)


async def _fault(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HostError)
    return refusal(error, status=_CONTENT_TOO_LARGE if isinstance(error, rest.BodyTooLargeError) else None)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == _NOT_FOUND:
        return refusal(NotFoundError("resource", request.url.path))
    if error.status_code == _METHOD_NOT_ALLOWED:
        allowed = dict(error.headers or {}).get("Allow", "another method")
        fault = InvalidArgumentError(f"{request.url.path} does not take {request.method} but {allowed}.")
        return refusal(fault, status=error.status_code, headers=error.headers)
    return refusal(InvalidArgumentError(error.detail), status=error.status_code, headers=error.headers)


async def _unforeseen(request: Request, error: Exception) -> Response:
    # The gate writes the log line: the error reaches it after this answer.
    del request, error
    return refusal(InternalError("The host failed at this; its log has the cause."))
