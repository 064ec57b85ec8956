"""HTTP answers: JSON, and the one body of every refusal."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from coterie.core.errors import HostError
from coterie.interfaces.wire.errors import ERRORS, error_body
from coterie.interfaces.wire.strict_json import encode

# What the host answers is private to who asked, and never to be taken for another type.
SAFE_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def json_answer(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a JSON text."""
    return Response(body, status, {**SAFE_HEADERS, **(headers or {})}, "application/json")


def refusal(error: HostError, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a fault.

    Args:
        error: The fault.
        status: Where HTTP has a finer word than the error table.
        headers: Further headers.
    """
    code = ERRORS[error.code].http if status is None else status
    return json_answer(encode({"error": error_body(error)}), code, headers)
