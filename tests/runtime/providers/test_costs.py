"""What an answer is said to cost: by the prices of its binding, else by the list, else nobody knows."""

from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage
from tests.runtime.providers.vendor import (
    APIS,
    Answer,
    Vendor,
    asked,
    binding_of,
    needs_google,
    request,
    serving,
)
from tests.runtime.providers.wires import HELLO, MESSAGE, chat, event, stop, text_block

from coterie.core.model_ref import Binding
from coterie.core.turn.items import Usage
from coterie.core.turn.loop import Replied
from coterie.runtime.providers.direct import DirectProvider
from coterie.runtime.providers.price_table import listed_cost

GATEWAY = "http://gateway.example/v1"


async def usage_of(provider: DirectProvider, binding: Binding) -> Usage:
    outcome, _ = await asked(provider, request(binding))
    assert isinstance(outcome, Replied)
    return outcome.reply.usage


def reached_by(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let *vendor* answer for every address, as the proxy of this machine."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, vendor.url)
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("api", APIS)
async def test_own_prices_are_what_an_answer_costs(provider: DirectProvider, api: str) -> None:
    """A person who pays another price than the list knows it best; even a server of one's own may cost something."""
    async with serving(HELLO[api], HELLO[api]) as vendor:
        priced = replace(binding_of(vendor, api), input_price=3.0, output_price=15.0)
        assert await usage_of(provider, priced) == Usage(11, 7, 11 * 3 + 7 * 15)
        free = replace(priced, input_price=0.0, output_price=0.0)
        assert await usage_of(provider, free) == Usage(11, 7, 0)


GPT, HAIKU, FLASH = "gpt-4", "claude-3-haiku-20240307", "gemini-2.0-flash"


@pytest.mark.parametrize(
    ("binding", "cost"),
    [
        (Binding("openai/gpt", "openai-chat", GATEWAY, GPT), 11 * 30 + 7 * 60),
        (Binding("work/gpt", "openai-chat", "http://work.openai.azure.com/v1", GPT), 11 * 30 + 7 * 60),
        (Binding("anthropic/haiku", "anthropic", GATEWAY, HAIKU), 12),
        pytest.param(Binding("gemini/flash", "google", GATEWAY, FLASH), 4, marks=needs_google),
    ],
    ids=lambda value: getattr(value, "key", ""),
)
async def test_the_list_prices_what_a_known_vendor_sells(
    provider: DirectProvider, monkeypatch: pytest.MonkeyPatch, binding: Binding, cost: int
) -> None:
    """Parts of a millionth are rounded up; the vendor is known by its address, else by its name."""
    async with serving(HELLO[binding.api]) as vendor:
        reached_by(vendor, monkeypatch)
        assert await usage_of(provider, binding) == Usage(11, 7, cost)
        assert vendor.asked


async def test_own_prices_win_over_the_list_and_do_not_mix_with_it(
    provider: DirectProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum of one's own price and a stranger's is nobody's bill."""
    async with serving(HELLO["openai-chat"], HELLO["openai-chat"]) as vendor:
        reached_by(vendor, monkeypatch)
        binding = Binding("openai/gpt", "openai-chat", GATEWAY, GPT, input_price=1.0, output_price=2.0)
        assert await usage_of(provider, binding) == Usage(11, 7, 25)
        assert await usage_of(provider, replace(binding, output_price=None)) == Usage(11, 7, None)


async def test_what_a_vendor_kept_from_before_is_cheaper_by_the_list_only(
    provider: DirectProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list knows a price for it; a person sets one for all that a model reads."""
    counted = {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 100}
    start = event("message_start", message=MESSAGE | {"usage": counted})
    answer = Answer((start, text_block(0, "Hello"), stop("end_turn")))
    async with serving(answer, answer) as vendor:
        reached_by(vendor, monkeypatch)
        binding = Binding("anthropic/haiku", "anthropic", GATEWAY, HAIKU)
        assert await usage_of(provider, binding) == Usage(111, 7, 15)
        priced = replace(binding, input_price=0.25, output_price=1.25)
        assert await usage_of(provider, priced) == Usage(111, 7, 37)


async def test_a_server_of_ones_own_has_no_price_of_a_vendor(provider: DirectProvider) -> None:
    """It may call its model what it likes: unknown, and not nothing."""
    async with serving(HELLO["openai-chat"]) as vendor:
        binding = replace(binding_of(vendor), key="openai/gpt", model=GPT)
        assert await usage_of(provider, binding) == Usage(11, 7, None)


async def test_tokens_that_were_not_counted_have_no_known_cost(provider: DirectProvider) -> None:
    """Nothing times a price is not what the vendor will bill."""
    silent = Answer((chat({"content": "Hi"}, "stop"), "data: [DONE]\n\n"))
    async with serving(silent) as vendor:
        priced = replace(binding_of(vendor), input_price=3.0, output_price=15.0)
        assert await usage_of(provider, priced) == Usage(None, None, None)


COUNTED = ModelResponse([], usage=RequestUsage(input_tokens=11, output_tokens=7))


@pytest.mark.parametrize(
    ("api", "key", "url", "cost"),
    [
        ("openai-chat", "work/gpt-4", None, 750),
        ("openai-chat", "work/gpt-4", "https://api.openai.com/v1", 750),
        ("openai-chat", "work/openai/gpt-4", "https://openrouter.ai/api/v1", 750),
        ("anthropic", "work/claude-3-haiku-20240307", None, 12),
        ("google", "work/gemini-2.0-flash", None, 4),
        ("openai-chat", "local/gpt-4", None, None),
        ("openai-chat", "work/gpt-4", GATEWAY, None),
        ("openai-chat", "my-openai/gpt-4", GATEWAY, None),
        ("openai-chat", "openai/gpt-none", GATEWAY, None),
        ("openai-chat", "openai/gpt-4", "https://openrouter.ai/api/v1", None),
        ("google", "google/gemma-3", None, None),
        ("openai-chat", "openai/whisper-1", None, None),
    ],
)
def test_a_price_is_of_one_vendor_and_one_model(api: str, key: str, url: str | None, cost: int | None) -> None:
    """A model without a price for text is listed as nothing to pay, which is not true of it."""
    assert listed_cost(Binding(key, api, url, key.partition("/")[2]), COUNTED) == cost


def test_what_was_answered_in_a_hurry_costs_more() -> None:
    """The vendor says in its answer by which tariff it billed."""
    binding = Binding("work/opus", "anthropic", None, "claude-opus-4-8")
    assert listed_cost(binding, COUNTED) == 11 * 5 + 7 * 25
    assert listed_cost(binding, replace(COUNTED, provider_details={"speed": "fast"})) == 11 * 10 + 7 * 50


@pytest.mark.parametrize(
    "usage",
    [
        RequestUsage(input_tokens=11),
        RequestUsage(output_tokens=7),
        RequestUsage(input_tokens=1, cache_read_tokens=2, output_tokens=1),
    ],
)
def test_a_count_that_cannot_be_has_no_price(usage: RequestUsage) -> None:
    """Vendors leave numbers out, and some do not add up."""
    binding = Binding("openai/gpt-4o", "openai-chat", None, "gpt-4o")
    assert listed_cost(binding, ModelResponse([], usage=usage)) is None
