"""The line to Gemini over its own wire protocol.

Its SDK comes with the extra `google`, so this module is loaded only for a binding that speaks it.
"""

from typing import Any, Final

import httpx2
from google.genai import Client
from google.genai.types import GenerateContentConfigDict, HttpOptions
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from coterie.core.model_ref import Binding
from coterie.runtime.providers._line import Line, secret

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com"
_MS: Final = 1000


def open_line(binding: Binding, timeout: httpx2.Timeout) -> Line:
    """Return a line for *binding* with these bounds on connecting and on silence."""
    # The SDK puts one bound on all phases of a request; this client keeps the shorter one for connecting.
    connections = create_async_httpx2_client(timeout=timeout)
    options = HttpOptions(
        base_url=binding.base_url or GOOGLE_URL,
        httpx_async_client=connections,
        timeout=int(timeout.read * _MS) if timeout.read else None,
    )
    # What is not said here the SDK takes from the environment: key, address, and whether it is the cloud's product.
    client = Client(vertexai=False, api_key=secret(binding), http_options=options)

    async def close() -> None:
        await connections.aclose()
        client.close()

    return Line(_OneRequest(binding.model, provider=GoogleProvider(client=client)), close)


class _OneRequest(GoogleModel):
    """Asks once: the SDK would take up a broken stream with requests of its own."""

    async def _build_content_and_config(self, *given: Any, **named: Any) -> tuple[Any, GenerateContentConfigDict]:
        # The contents may be pictures of a library that is not installed, so their type is not known.
        building = super()._build_content_and_config(*given, **named)  # pyright: ignore[reportUnknownMemberType]
        contents, config = await building
        config["automatic_continuation"] = False
        return contents, config
