"""The line to OpenAI's chat completions, and to the many servers that speak the same."""

from typing import Final
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import merge_profile
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from coterie.core.model_ref import Binding
from coterie.runtime.providers._line import Line, profile, secret

OPENAI_URL: Final = "https://api.openai.com/v1"


def open_line(binding: Binding, timeout: httpx2.Timeout) -> Line:
    """Return a line for *binding* with these bounds on connecting and on silence."""
    made, client = provider(binding, timeout)
    # A stream without a finish reason otherwise passes as a short answer that ended well.
    demanding = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    known = merge_profile(profile(binding), demanding)
    return Line(OpenAIChatModel(binding.model, provider=made, profile=known), client.close)


def provider(binding: Binding, timeout: httpx2.Timeout) -> tuple[Provider[AsyncOpenAI], AsyncOpenAI]:
    """Return who serves *binding*, with the client that asks there."""
    url = binding.base_url or OPENAI_URL
    client = AsyncOpenAI(api_key=secret(binding), base_url=url, max_retries=0, timeout=timeout)
    # Only the vendor's own address is sent what only that vendor understands.
    if urlsplit(url).hostname == urlsplit(OPENAI_URL).hostname:
        return OpenAIProvider(openai_client=client), client
    return OpenAICompatibleProvider("openai-compatible", openai_client=client), client
