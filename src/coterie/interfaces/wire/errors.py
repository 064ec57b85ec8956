"""The error table: what each code is at each door, and the one body in which a fault is told.

Doors look codes up here. They never look at an error's class or text.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from coterie.core.codes import Code
from coterie.core.errors import HostError, InternalError
from coterie.core.text import mend

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Row:
    """One code at every door."""

    http: int
    """HTTP status."""
    rpc: int
    """JSON-RPC's number, each one's own: below -32000 the server's range, `-326xx` the protocol's."""
    exit: int
    """Exit status of the terminal: 2 for usage and refused binds, 3 where another host has the directory, else 1."""


ERRORS: Final[Mapping[Code, Row]] = MappingProxyType(
    {
        Code.INVALID_ARGUMENT: Row(400, -32602, 2),
        Code.UNAUTHENTICATED: Row(401, -32001, 1),
        Code.PERMISSION_DENIED: Row(403, -32002, 1),
        Code.FORBIDDEN_ORIGIN: Row(403, -32003, 1),
        Code.FORBIDDEN_HOST: Row(421, -32004, 1),
        Code.NOT_FOUND: Row(404, -32005, 1),
        Code.CONFLICT: Row(409, -32006, 1),
        Code.IDEMPOTENCY_CONFLICT: Row(409, -32007, 1),
        Code.WORKER_NOT_READY: Row(409, -32012, 1),
        Code.LIMIT_EXCEEDED: Row(429, -32008, 1),
        Code.AGENT_BUSY: Row(429, -32009, 1),
        Code.QUEUE_FULL: Row(429, -32010, 1),
        Code.WAIT_CYCLE: Row(409, -32011, 1),
        Code.INTERNAL: Row(500, -32603, 1),
        Code.STORAGE_ERROR: Row(503, -32013, 1),
        Code.STORAGE_UNKNOWN: Row(503, -32014, 1),
        Code.HOST_UNAVAILABLE: Row(503, -32015, 1),
        Code.MODEL_NOT_CONFIGURED: Row(422, -32016, 1),
        Code.MODEL_NOT_FOUND: Row(422, -32017, 1),
        Code.MODEL_AMBIGUOUS: Row(422, -32018, 1),
        Code.EMPTY_MODEL_RESPONSE: Row(502, -32019, 1),
        Code.PROVIDER_ERROR: Row(502, -32020, 1),
        Code.PROVIDER_AUTH: Row(502, -32021, 1),
        Code.STREAM_INTERRUPTED: Row(502, -32022, 1),
        Code.FOLDER_GONE: Row(409, -32023, 1),
        Code.INTERRUPTED: Row(409, -32024, 1),
        Code.CONFIG_INVALID: Row(500, -32025, 2),
        Code.PORT_IN_USE: Row(500, -32026, 1),
        Code.HOST_RUNNING: Row(409, -32027, 3),
        Code.EXTRA_MISSING: Row(501, -32028, 1),
        Code.SCHEMA_NEWER: Row(503, -32029, 1),
        Code.DATABASE_CORRUPT: Row(503, -32030, 1),
        Code.PUBLIC_BIND_REFUSED: Row(403, -32031, 2),
    }
)


MESSAGE_CHARS_MAX: Final = 2_000
"""Characters of an error's text: it may quote what was asked, and that may be a megabyte."""


def error_body(error: HostError) -> dict[str, Any]:
    """The fault as JSON-RPC's error object, equal at every door."""
    shown = {"errorCode": error.code.value, "retryable": error.retryable, **error.detail()}
    return {"code": ERRORS[error.code].rpc, "message": mend(_bounded(str(error))), "data": shown}


def _bounded(text: str) -> str:
    half = MESSAGE_CHARS_MAX // 2 - 2
    return text if len(text) <= MESSAGE_CHARS_MAX else f"{text[:half]} … {text[-half:]}"


def fault_of(error: Exception) -> HostError:
    """What a door may show of *error*: itself if it is ours, else `INTERNAL`, and the cause goes to the log."""
    if isinstance(error, HostError):
        return error
    _log.error("a request failed by a fault of the host", exc_info=error)
    return InternalError("The host failed at this; its log has the cause.")
