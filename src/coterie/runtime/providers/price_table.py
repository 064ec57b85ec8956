"""What a vendor asks for an answer, by the list that an installed library holds; nothing is fetched.

A list price is the best that can be known before the bill. Who is asked is told by the address; behind an address that
the list does not know, as a gateway's, by the provider's name.
"""

from typing import Final

from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from pydantic_ai.messages import ModelResponse

from coterie.core.model_price import is_local, millionths
from coterie.core.model_ref import Binding

_AT_HOME: Final = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "google": "google",
}
"""Of an api: whose own address it has where none is set."""
_BY_NAME: Final = {
    "anthropic": "anthropic",
    "gemini": "google",
    "google": "google",
    "openai": "openai",
    "openrouter": "openrouter",
}
"""Of a provider's name: whom it can only mean. The library itself would take any name that holds one of these."""


def listed_cost(binding: Binding, response: ModelResponse) -> int | None:
    """Return what *response* costs by the list, in millionths of a US dollar.

    None if the model is local or not listed, or if its vendor did not count the tokens.
    """
    usage, vendor = response.usage, _vendor(binding)
    if vendor is None or not usage.input_tokens or not usage.output_tokens:
        return None
    try:
        price = calc_price(usage, binding.model, provider_id=vendor, price_context=response.provider_details)
    except (LookupError, ValueError):
        return None
    # A row without these is there for its name alone, or for another kind of use, and comes out as nothing to pay.
    if price.model_price.input_mtok is None or price.model_price.output_mtok is None:
        return None
    return millionths(price.total_price)


def _vendor(binding: Binding) -> str | None:
    if is_local(binding):
        return None
    if binding.base_url is None:
        return _AT_HOME[binding.api]
    try:
        return get_snapshot().find_provider(None, None, binding.address).id
    except LookupError:
        return _BY_NAME.get(binding.provider)
