"""The line to OpenAI's responses.

Nothing is left at the vendor: each request carries its whole conversation, with the model's own reasoning sealed in it.
"""

import httpx2
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.profiles import merge_profile
from pydantic_ai.profiles.openai import OpenAIModelProfile

from coterie.core.model_ref import Binding
from coterie.runtime.providers import _openai
from coterie.runtime.providers._line import Line, profile


def open_line(binding: Binding, timeout: httpx2.Timeout) -> Line:
    """Return a line for *binding* with these bounds on connecting and on silence."""
    provider, client = _openai.provider(binding, timeout)
    settings = OpenAIResponsesModelSettings(openai_store=False)
    sealed = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=True) if binding.reasoning else None
    known = merge_profile(profile(binding), sealed)
    model = OpenAIResponsesModel(binding.model, provider=provider, profile=known, settings=settings)
    return Line(model, client.close)
