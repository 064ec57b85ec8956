"""The line to Gemini over its own wire protocol.

Its SDK comes with the extra `google`, so this module is loaded only for a binding that speaks it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, cast

import httpx2
from google.genai import Client
from google.genai.types import HttpOptions
from pydantic_ai.models import StreamedResponse, create_async_httpx2_client
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from coterie.core.model_ref import Binding
from coterie.runtime.providers._line import Line, profile, secret

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com"
_MS: Final = 1000
_READING: Final = ContextVar[list[AsyncGenerator[str]]]("_READING")
"""What the SDK reads for the request that is being asked."""


def open_line(binding: Binding, timeout: httpx2.Timeout) -> Line:
    """Return a line for *binding* with these bounds on connecting and on silence."""
    # The SDK puts one bound on all phases of a request; this client keeps its own shorter one for connecting.
    connections = create_async_httpx2_client(timeout=timeout)
    connections.event_hooks = {**connections.event_hooks, "response": [_watch]}
    options = HttpOptions(
        base_url=binding.base_url or GOOGLE_URL,
        httpx_async_client=connections,
        timeout=int(timeout.read * _MS) if timeout.read else None,
    )
    # What is not said here the SDK takes from the environment: key, address, and which of two products is meant.
    client = Client(vertexai=False, api_key=secret(binding), http_options=options)

    async def close() -> None:
        await connections.aclose()
        client.close()

    return Line(_Gemini(binding.model, provider=GoogleProvider(client=client), profile=profile(binding)), close)


class _Gemini(GoogleModel):
    """Asks once, and closes what it read; the SDK does neither by itself."""

    async def _build_content_and_config(self, *given: Any, **named: Any) -> Any:
        # A content may be a picture of a library that is not installed, so the type is known only in part.
        building = super()._build_content_and_config  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        contents, config = cast("tuple[object, dict[str, object]]", await building(*given, **named))
        # The SDK would take up a broken stream with requests of its own.
        return contents, config | {"automatic_continuation": False}

    @asynccontextmanager
    async def request_stream(self, *given: Any, **named: Any) -> AsyncGenerator[StreamedResponse]:
        reading: list[AsyncGenerator[str]] = []
        before = _READING.set(reading)
        try:
            async with super().request_stream(*given, **named) as stream:
                yield stream
        finally:
            _READING.reset(before)
            # After a fault the SDK leaves its answer to the garbage collection, and the connection with it.
            for lines in reading:
                await lines.aclose()


class _Answer(httpx2.Response):
    """An answer that notes who reads it."""

    def aiter_lines(self) -> AsyncGenerator[str]:
        lines = cast("AsyncGenerator[str]", super().aiter_lines())
        _READING.get().append(lines)
        return lines


async def _watch(response: httpx2.Response) -> None:
    # A transport of our own could make the answers, but with one no proxy of the environment is used.
    response.__class__ = _Answer
