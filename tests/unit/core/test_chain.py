"""Bounds on what one person's input may cause."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core import chain
from coterie.core.chain import MICRO, Chain, Spending
from coterie.core.codes import Code
from coterie.core.ids import ChainId
from coterie.core.refusal import Refusal


@given(st.integers(0, 20))
def test_a_prompt_grants_as_many_deliveries_in_a_row_as_the_limit_says(hops_max: int) -> None:
    """Eight are eight: no more, and no fewer."""
    hops: int | Refusal = chain.hops_of_prompt(hops_max)
    delivered: list[int] = []
    while isinstance(hops := chain.hops_of_send(hops, hops_max), int):
        delivered.append(hops)
    assert delivered == list(range(hops_max, 0, -1))
    assert (hops.code, hops.limit, hops.value) == (Code.LIMIT_EXCEEDED, "hops_max", hops_max)


@given(st.lists(st.sampled_from(["send", "completion"]), max_size=40), st.integers(0, 12))
def test_hops_never_grow(moves: list[str], hops_max: int) -> None:
    """Whatever agents do among themselves, the depth that is left only falls."""
    hops = chain.hops_of_prompt(hops_max)
    for move in moves:
        after = chain.hops_of_completion(hops) if move == "completion" else chain.hops_of_send(hops, hops_max)
        if isinstance(after, Refusal):
            return
        assert 0 <= after <= hops
        assert after < hops or hops == 0
        hops = after


@pytest.mark.parametrize(
    ("used", "used_max", "free"), [(0, 1, True), (127, 128, True), (128, 128, False), (5, 1, False)]
)
def test_budgets_end_at_their_bound(used: int, used_max: int, *, free: bool) -> None:
    """Messages and sessions are counted apart, each refusal names its own setting."""
    message = chain.admit_message(Chain(ChainId("chn_1"), used, 999, 0), used_max)
    session = chain.admit_session(Chain(ChainId("chn_1"), 999, used, 0), used_max)
    assert (message is None, session is None) == (free, free)
    if message and session:
        assert (message.limit, message.value) == ("chain_messages_max", used_max)
        assert (session.limit, session.value) == ("chain_sessions_max", used_max)


@pytest.mark.parametrize(
    ("cost", "tokens", "spent"),
    [
        (0, 0, False),
        (4_999_999, 1_999, False),
        (5_000_000, 0, True),
        (0, 2_000, True),
        (5_000_000, 2_000, True),
    ],
)
def test_a_chain_is_spent_at_its_bound_in_money_or_in_tokens(cost: int, tokens: int, *, spent: bool) -> None:
    """Where no price is known tokens take its place, and a chain may have run on models of both kinds."""
    used = Chain(ChainId("chn_1"), 1, 0, 0, cost=cost, tokens=tokens)
    assert chain.is_spent(used, Spending(5.0, 2_000)) is spent


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 9), st.integers(1, 5))
def test_each_grant_is_as_much_again_in_both(cost: int, tokens: int, grants: int, most: int) -> None:
    """A person who lets a chain go on is asked again after the same amount, not never."""
    used = Chain(ChainId("chn_1"), 1, 0, 0, cost=cost * MICRO, tokens=tokens, grants=grants)
    fits = cost < most * (1 + grants) and tokens < most * (1 + grants)
    assert chain.is_spent(used, Spending(most, most)) is not fits


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 9), st.integers(1, 5))
def test_a_release_lets_a_chain_go_on_however_far_it_has_gone(cost: int, tokens: int, grants: int, most: int) -> None:
    """Who released it once must not have to do it nine times; and nobody gets more than one bound ahead."""
    spending = Spending(most, most)
    used = Chain(ChainId("chn_1"), 1, 0, 0, cost=cost * MICRO, tokens=tokens, grants=grants)
    times = chain.grants_of_release(used, spending)
    assert not chain.is_spent(replace(used, grants=grants + times), spending)
    assert times == 1 or chain.is_spent(replace(used, grants=grants + times - 1), spending)


def test_a_release_of_a_bound_of_nothing_is_one_grant() -> None:
    """No number of grants would make room there; the marks are taken away all the same."""
    assert chain.grants_of_release(Chain(ChainId("chn_1"), 0, 0, 0, cost=9), Spending(0.0, 1)) == 1


def test_a_bound_of_nothing_is_spent_before_it_begins() -> None:
    """`chain_cost_max = 0` lets nothing start without a person, which is what it says."""
    assert chain.is_spent(Chain(ChainId("chn_1"), 0, 0, 0), Spending(0.0, 1))
