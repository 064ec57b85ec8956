"""What an answer costs: exact, rounded up, and None where something is not known."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.model_price import is_local, millionths, own_cost
from coterie.core.model_ref import Binding

BINDING = Binding("a/b", "openai-chat", None, "b")


def _priced(input_price: float | None, output_price: float | None) -> Binding:
    return replace(BINDING, input_price=input_price, output_price=output_price)


@pytest.mark.parametrize(
    ("prices", "tokens", "cost"),
    [
        ((3.0, 15.0), (11, 7), 138),
        ((0.25, 1.25), (1, 1), 2),
        ((0.07, 0.0), (100, 5), 7),
        ((0.1, 0.2), (1, 1), 1),
        ((0.0, 0.0), (None, None), 0),
        ((0.0, 2.0), (None, 3), 6),
        ((3.0, 15.0), (None, 7), None),
        ((3.0, 15.0), (11, None), None),
        ((3.0, None), (11, 7), None),
        ((None, None), (11, 7), None),
    ],
)
def test_own_prices_are_for_a_million_tokens(
    prices: tuple[float | None, float | None], tokens: tuple[int | None, int | None], cost: int | None
) -> None:
    """A dollar for a million tokens is a millionth for one; what is free costs nothing, however much it was."""
    assert own_cost(_priced(*prices), *tokens) == cost


@pytest.mark.parametrize(
    ("prices", "has"), [((None, None), False), ((0.0, None), True), ((None, 1.0), True), ((0.0, 0.0), True)]
)
def test_a_price_of_nothing_is_a_price(prices: tuple[float | None, float | None], *, has: bool) -> None:
    """Whoever says that a model is free must not be billed by a table."""
    assert _priced(*prices).has_prices is has


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_cost_is_never_below_the_bill_and_never_a_whole_unit_above(
    read: int, written: int, one: int, two: int
) -> None:
    """Prices are written with a few decimals, which floating point cannot hold."""
    cost = own_cost(_priced(one / 1000, two / 1000), read, written)
    assert cost is not None
    assert 0 <= cost * 1000 - (read * one + written * two) < 1000


def test_dollars_are_rounded_up_to_millionths() -> None:
    """The table of prices counts in dollars, exactly."""
    assert [millionths(Decimal(text)) for text in ("0", "1.5", "0.0000010", "0.0000010001")] == [0, 1_500_000, 1, 2]


@pytest.mark.parametrize(
    ("key", "url", "local"),
    [
        ("local/gpt-4", None, True),
        ("ollama/qwen3", "https://ollama.example/v1", True),
        ("openai/gpt-4", "http://127.0.0.1:8900/v1", True),
        ("openai/gpt-4", "http://LOCALHOST/v1", True),
        ("openai/gpt-4", "http://[::1]:1/v1", True),
        ("openai/gpt-4", "http://192.168.0.7/v1", True),
        ("openai/gpt-4", "http://box:8000", True),
        ("openai/gpt-4", "http://box.local:8000", True),
        ("openai/gpt-4", None, False),
        ("openai/gpt-4", "https://api.openai.com/v1", False),
        ("openai/gpt-4", "https://8.8.8.8/v1", False),
        ("openai/gpt-4", "https://gateway.example/v1", False),
    ],
)
def test_what_runs_at_home_has_no_vendor(key: str, url: str | None, *, local: bool) -> None:
    """A server here may call its model what it likes; the price of a vendor's model of that name is not its own."""
    assert is_local(Binding(key, "openai-chat", url, "gpt-4")) is local
