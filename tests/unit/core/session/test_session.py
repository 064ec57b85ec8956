"""What a session is called and what it does."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.session.session import TITLE_CHARS_MAX, status_of, title_from
from coterie.core.turn.states import TurnState


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Plan it\nand more", "Plan it"),
        ("\n\n  two  \nthree", "two"),
        ("", "Untitled"),
        (" \n ", "Untitled"),
        ("x" * 99, "x" * 80),
    ],
)
def test_a_title_is_the_first_line(text: str, title: str) -> None:
    """What a person wrote first says what it is about."""
    assert title_from(text) == title


@given(st.text())
def test_a_title_is_one_short_line(text: str) -> None:
    """It stands in lists."""
    title = title_from(text)
    assert 0 < len(title) <= TITLE_CHARS_MAX
    assert len(title.splitlines()) == 1


@pytest.mark.parametrize(
    ("running", "waiting", "newest"),
    list(product([True, False], [True, False], [None, *TurnState])),
)
def test_a_status_says_what_is_then_what_waits_then_what_was(
    *, running: bool, waiting: bool, newest: str | None
) -> None:
    """The whole table."""
    expected = "running" if running else "queued" if waiting else newest or "idle"
    assert status_of(running=running, waiting=waiting, newest=newest) == expected
