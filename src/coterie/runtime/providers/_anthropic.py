"""The line to Anthropic's messages."""

from typing import Final

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider

from coterie.core.model_ref import Binding
from coterie.runtime.providers._line import Line, profile, secret

ANTHROPIC_URL: Final = "https://api.anthropic.com"
_CACHED: Final = AnthropicModelSettings(
    anthropic_cache_instructions=True, anthropic_cache_tool_definitions=True, anthropic_cache_messages=True
)
"""A turn sends the same beginning again and again, which costs a tenth from the cache; others cache unasked."""


def open_line(binding: Binding, timeout: httpx2.Timeout) -> Line:
    """Return a line for *binding* with these bounds on connecting and on silence."""
    url = binding.base_url or ANTHROPIC_URL
    client = AsyncAnthropic(api_key=secret(binding), base_url=url, max_retries=0, timeout=timeout)
    provider = AnthropicProvider(anthropic_client=client)
    model = AnthropicModel(binding.model, provider=provider, profile=profile(binding), settings=_CACHED)
    return Line(model, client.close)
