"""REST: one route for each operation of the catalogue.

Parameters are decoded by `perform`, not by FastAPI, so that a wrong one is told in the same words at every door.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.http import openapi
from coterie.interfaces.http.answers import json_answer
from coterie.interfaces.wire.door import Performs
from coterie.interfaces.wire.strict_json import decode, encode_view
from coterie.operations.caller import Person
from coterie.operations.catalogue import OPERATIONS, Operation

ROOT: Final = "/api/v1"
_CREATED: Final = 201
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_BOOLEANS: Final = {"true": True, "false": False}


class BodyTooLargeError(InvalidArgumentError):
    """The body has more bytes than any request needs."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"The body is larger than {bytes_max} bytes.")


async def body_of(request: Request, bytes_max: int) -> bytes:
    """Read the body.

    Raises:
        BodyTooLargeError: It is larger; what is over the bound is not read.
    """
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > bytes_max:
            raise BodyTooLargeError(bytes_max)
    return bytes(found)


def add_routes(app: FastAPI, performer: Performs, body_bytes_max: int) -> None:
    """Add the route of every operation."""
    for operation in OPERATIONS:
        status = _CREATED if operation.name.endswith(".create") else 200
        app.add_api_route(
            ROOT + operation.path,
            _endpoint(performer, operation, status, body_bytes_max),
            methods=[operation.verb],
            status_code=status,
            response_model=operation.result,
            operation_id=operation.name,
            summary=operation.summary,
            tags=[operation.name.partition(".")[0]],
            responses=openapi.responses(operation),
            openapi_extra=openapi.request(operation),
        )


def _endpoint(
    performer: Performs, operation: Operation, status: int, body_bytes_max: int
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if operation.verb == "GET":
            given = query_of(operation, request)
        else:
            given = _posted(operation, request, await body_of(request, body_bytes_max))
        return json_answer(encode_view(await performer.perform(Person(), operation.name, given)), status)

    return answer


def query_of(operation: Operation, request: Request) -> dict[str, Any]:
    """The parameters of a GET: from its path and its query, each as the type that the operation wants.

    Raises:
        InvalidArgumentError: One is given twice.
    """
    kinds = openapi.properties(operation)
    given: dict[str, Any] = dict(request.path_params)
    for name, text in request.query_params.multi_items():
        if name in given:
            raise InvalidArgumentError(f"{name} is given twice.")
        given[name] = _typed(text, kinds.get(name, {}).get("type"))
    return given


def _typed(text: str, kind: str | None) -> str | int | bool:
    # What does not look like its type stays a text, and the operation says what it wants.
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    return _BOOLEANS.get(text, text) if kind == "boolean" else text


def _posted(operation: Operation, request: Request, body: bytes) -> dict[str, Any]:
    if request.query_params:
        name = next(iter(request.query_params))
        raise InvalidArgumentError(f"{name} stands in the query; {operation.name} takes its parameters in the body.")
    found: Any = decode(body) if body.strip() else {}
    if not isinstance(found, dict):
        raise InvalidArgumentError("The body is not a JSON object: give parameters by name.")
    given = cast("dict[str, Any]", found)
    _merge(given, request.path_params, "the path")
    if operation.mutates:
        _merge(given, _header_key(request), "the header Idempotency-Key")
    return given


def _merge(given: dict[str, Any], further: Mapping[str, Any], where: str) -> None:
    for name, value in further.items():
        if given.setdefault(name, value) != value:
            raise InvalidArgumentError(f"{name} is one value in the body and another in {where}; give it once.")


def _header_key(request: Request) -> dict[str, str]:
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return {}
    if len(keys) > 1:
        raise InvalidArgumentError("idempotencyKey is given twice: send the header Idempotency-Key once.")
    try:
        # A server reads header bytes as Latin-1; the same key in a body is UTF-8.
        return {"idempotencyKey": keys[0].encode("latin-1").decode()}
    except UnicodeDecodeError:
        raise InvalidArgumentError("idempotencyKey: the header Idempotency-Key is not UTF-8.") from None
