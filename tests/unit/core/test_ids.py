"""Ids tell their kind and their time, and nothing else."""

import uuid
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.ids import RANDOM_BITS, Prefix, make_id, nonce_of

moments = st.integers(0, (1 << 48) - 1)
randomness = st.integers(0, (1 << RANDOM_BITS) - 1)


@given(moments, randomness)
def test_an_id_is_a_uuid_of_version_seven(now_ms: int, random: int) -> None:
    """So that other tools can read it."""
    prefix, _, digits = make_id("msg", now_ms, random).partition("_")
    found = uuid.UUID(hex=digits)
    assert prefix == "msg"
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert found.int >> 80 == now_ms


@given(moments, moments, randomness, randomness)
def test_later_ids_sort_behind(one: int, other: int, first: int, second: int) -> None:
    """A convenience for people; nothing rests on it."""
    if one < other:
        assert make_id("ses", one, first) < make_id("ses", other, second)


@given(moments, randomness, randomness)
def test_other_randomness_makes_another_id(now_ms: int, first: int, second: int) -> None:
    """Every random bit counts."""
    assert (make_id("ses", now_ms, first) == make_id("ses", now_ms, second)) is (first == second)


@pytest.mark.parametrize("prefix", get_args(Prefix))
def test_a_nonce_is_the_random_end_of_an_id(prefix: Prefix) -> None:
    """The time in front of it could be guessed."""
    made = make_id(prefix, 0, (1 << 61) + 5)
    assert made.endswith(nonce_of(made))
    assert len(nonce_of(made)) == 16
    assert nonce_of(make_id(prefix, 0, 1)) == nonce_of(make_id(prefix, 12345, 1))
