"""What a vendor or the way to it did wrong, as values for the loop.

A text names the model, the address and what to do; never the key.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
)

from coterie.core.codes import Code
from coterie.core.model_ref import Binding
from coterie.core.text import cut, mend
from coterie.core.turn.loop import ModelFailed

_REFUSED: Final = frozenset({401, 403})
_TRANSIENT: Final = frozenset({408, 429})
_SERVER_FAULT: Final = 500
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|window|size|limit)|prompt is too long|maximum prompt length|input token count", re.IGNORECASE
)
"""No vendor has a status for it, and few a code."""
_DETAIL_CHARS_MAX: Final = 500


def fault(error: Exception, binding: Binding, partial: str) -> ModelFailed:
    """Return the failure that *error* means."""
    match error:
        case ModelHTTPError():
            return _http(error, binding, partial)
        case ModelConnectionError() if not _is_broken_stream(error):
            text = f"{binding.key}: {_address(binding)} {_trouble(error)}."
            return ModelFailed(Code.PROVIDER_ERROR, text, transient=True, partial=partial)
        case _:
            return interrupted(binding, partial, _detail(error, binding))


def interrupted(binding: Binding, partial: str, detail: str = "no finish reason came") -> ModelFailed:
    """Return the failure of a stream that ended before its answer did."""
    text = f"{binding.key}: the answer of {_address(binding)} broke off: {detail}."
    return ModelFailed(Code.STREAM_INTERRUPTED, text, transient=True, partial=partial)


def withheld(binding: Binding, reason: str) -> ModelFailed:
    """Return the failure of an answer that the vendor's filter kept back whole."""
    text = f"{binding.key}: the provider withheld the answer ({reason}). Change the prompt, or use another model."
    return ModelFailed(Code.PROVIDER_ERROR, text, transient=False)


def unfit_key(binding: Binding) -> ModelFailed | None:
    """Return the failure of a key that no header can carry; the libraries would name it in theirs."""
    key = binding.api_key or ""
    if key.isascii() and key.isprintable() and key == key.strip():
        return None
    text = (
        f"{binding.key}: the key from {_source(binding)} cannot be sent: it has line breaks or other characters that "
        "no key has. Set the key alone there, and start the host again."
    )
    return ModelFailed(Code.PROVIDER_AUTH, text, transient=False)


def _http(error: ModelHTTPError, binding: Binding, partial: str) -> ModelFailed:
    status = error.status_code
    # Google refuses a key with 400 and a reason in the body, which the library knows.
    if status in _REFUSED or isinstance(error, ModelAuthenticationError):
        return ModelFailed(Code.PROVIDER_AUTH, _key_refused(status, binding), transient=False, partial=partial)
    transient = status in _TRANSIENT or status >= _SERVER_FAULT
    detail = _detail(error, binding)
    text = f"{binding.key}: {_address(binding)} answered HTTP {status}: {detail}."
    wait = error.retry_after if transient else None
    too_long = not transient and _TOO_LONG.search(detail) is not None
    return ModelFailed(
        Code.PROVIDER_ERROR, text, transient=transient, retry_after_s=wait, partial=partial, too_long=too_long
    )


def _key_refused(status: int, binding: Binding) -> str:
    refused = "refused the key" if binding.api_key else "wants a key, and there is none"
    return (
        f"{binding.key}: {_address(binding)} {refused} (HTTP {status}). The key comes from {_source(binding)}; "
        "set a valid key there, see that it may use this model, and start the host again."
    )


def _source(binding: Binding) -> str:
    return binding.origin or "the binding"


def _is_broken_stream(error: ModelConnectionError) -> bool:
    return error.phase == "read" and not isinstance(error, ModelTimeoutError)


def _trouble(error: ModelConnectionError) -> str:
    if error.phase == "connect":
        return f"cannot be reached ({_cause(error)})"
    return f"does not answer ({_cause(error)})"


def _cause(error: BaseException) -> str:
    """The text of the innermost cause: the outer ones say only that a connection failed."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _detail(error: Exception, binding: Binding) -> str:
    body = error.body if isinstance(error, ModelAPIError) else None
    text = _said(body) or (error.message if isinstance(error, ModelAPIError) else str(error))
    if binding.api_key:
        text = text.replace(binding.api_key, "…")
    return cut(mend(" ".join(text.split())), _DETAIL_CHARS_MAX)[0].rstrip(".")


def _said(body: object) -> str:
    """Return what a vendor says in an error body: its `message`, at the top or under `error`."""
    match body:
        case {"error": {"message": str(text)}} | {"message": str(text)} | {"error": str(text)} | str(text):
            return text
        case _:
            return ""


def _address(binding: Binding) -> str:
    """Return the address without a password in it."""
    if binding.base_url is None:
        return "the provider"
    parts = urlsplit(binding.base_url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
