"""One JSON-RPC 2.0 call: bytes in, bytes out, whatever carries them.

Parameters go by name. A batch is refused: its calls would run in no order that the standard names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from coterie.core.errors import HostError, InvalidArgumentError, NotFoundError
from coterie.core.text import nearest
from coterie.interfaces.wire.door import Performs
from coterie.interfaces.wire.errors import error_body
from coterie.interfaces.wire.strict_json import decode, encode, encode_view
from coterie.operations.caller import Caller
from coterie.operations.catalogue import BY_NAME

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601

_MEMBERS: Final = ("jsonrpc", "id", "method", "params")

Id: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is well formed."""

    method: str
    params: Mapping[str, Any]
    id: Id
    wants_answer: bool
    """False for a notification, which is performed all the same."""


class _InvalidRequestError(Exception):
    """Carries the fault, the number that the protocol has for it, and the request's id as far as it could be read."""

    def __init__(self, fault: HostError, number: int, request_id: Id = None) -> None:
        super().__init__(str(fault))
        self.fault, self.number, self.id = fault, number, request_id


async def answer(operations: Performs, caller: Caller, body: bytes) -> bytes | None:
    """Perform the call that *body* holds and return its answer; None for a notification."""
    try:
        call = _call(body)
    except _InvalidRequestError as error:
        return _failed(error.id, error_body(error.fault) | {"code": error.number})
    if call.method not in BY_NAME:
        near = nearest(call.method, list(BY_NAME), 3)
        fault = error_body(NotFoundError("operation", call.method, near)) | {"code": METHOD_NOT_FOUND}
        return _failed(call.id, fault) if call.wants_answer else None
    try:
        view = await operations.perform(caller, call.method, call.params)
    except HostError as error:
        return _failed(call.id, error_body(error)) if call.wants_answer else None
    if not call.wants_answer:
        return None
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(call.id), encode_view(view))


def _failed(request_id: Id, error: Mapping[str, Any]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def _call(body: bytes) -> Call:
    try:
        found = decode(body)
    except InvalidArgumentError as error:
        raise _InvalidRequestError(error, PARSE_ERROR) from None
    if isinstance(found, list):
        raise _invalid("A batch is not taken; send one call to a request.")
    if not isinstance(found, dict):
        raise _invalid("A call is a JSON object with jsonrpc, id, method and params.")
    members = cast("dict[str, Any]", found)
    request_id = _id(members)
    for name in members:
        if name not in _MEMBERS:
            near = nearest(name, _MEMBERS, 1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise _invalid(f"{name} is no member of a call{meant}.", request_id)
    if members.get("jsonrpc") != "2.0":
        raise _invalid('jsonrpc is not "2.0".', request_id)
    method = members.get("method")
    if not isinstance(method, str):
        raise _invalid("method is not a text: name an operation.", request_id)
    given = members.get("params", {})
    if not isinstance(given, dict):
        fault = InvalidArgumentError("params is not an object: give parameters by name, or leave it out.")
        raise _InvalidRequestError(fault, error_body(fault)["code"], request_id)
    return Call(method, cast("dict[str, Any]", given), request_id, wants_answer="id" in members)


def _id(members: Mapping[str, Any]) -> Id:
    found = members.get("id")
    if isinstance(found, bool) or not isinstance(found, str | int | float | None):
        raise _invalid("id is neither a text nor a number.")
    return found


def _invalid(text: str, request_id: Id = None) -> _InvalidRequestError:
    return _InvalidRequestError(InvalidArgumentError(text), INVALID_REQUEST, request_id)
