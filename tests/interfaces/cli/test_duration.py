"""How long and until when, as a person writes it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli.duration import DAYS_MAX, end_of, seconds_of

NOW = "2031-05-01T12:00:00.250Z"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("30m", 1_800), ("1h", 3_600), ("2d", 172_800), ("1h30m", 5_400), ("1d2h3m4s", 93_784), ("90m", 5_400)],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: int) -> None:
    """People think in hours and days, the host in seconds."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1x", "1.5h", "-1h", "1h ", "1H", "30m1h", "1h1h", "٣h", "\x00", "1h\n"]
)
def test_what_is_no_duration_is_refused_with_how_to_write_one(text: str) -> None:
    """A guess could let a stranger in for a year."""
    with pytest.raises(InvalidArgumentError, match="30m, 1h30m or 2d"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["0s", "0d0h", f"{DAYS_MAX}d1s", "999999999d"])
def test_a_duration_has_bounds(text: str) -> None:
    """Nothing at all and for ever are both mistakes."""
    with pytest.raises(InvalidArgumentError, match="between 1s and 365d"):
        seconds_of(text)


def test_a_refusal_quotes_no_whole_book() -> None:
    """The line that tells it has to fit a terminal."""
    with pytest.raises(InvalidArgumentError) as caught:
        seconds_of("x" * 70_000)
    assert len(str(caught.value)) < 120


@given(st.integers(1, DAYS_MAX * 86_400))
def test_a_duration_ends_so_much_later(seconds: int) -> None:
    """The end has a zone, for the host is told a moment and no clock face."""
    end = datetime.fromisoformat(end_of(f"{seconds}s", NOW))
    assert end - datetime(2031, 5, 1, 12, 0, 0, 250_000, UTC) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["2031-06-01T12:00:00Z", "2031-06-01T14:00+02:00"])
def test_a_time_is_taken_as_it_is(text: str) -> None:
    """A request that is repeated with its key has to name the same moment."""
    assert datetime.fromisoformat(end_of(text, NOW)) == datetime(2031, 6, 1, 12, tzinfo=UTC)


def test_a_time_without_a_zone_is_that_of_this_machine() -> None:
    """It is what the person's clock shows."""
    assert datetime.fromisoformat(end_of("2031-06-01T12:00", NOW)) == datetime(2031, 6, 1, 12).astimezone()


def test_what_is_neither_a_time_nor_a_duration_is_refused() -> None:
    """Words for days depend on who says them."""
    with pytest.raises(InvalidArgumentError, match="'tomorrow' is no duration"):
        end_of("tomorrow", NOW)


@pytest.mark.parametrize("text", ["0001-01-01T00:00", "9999-12-31T23:59:59"])
def test_the_ends_of_the_calendar_are_no_fault_of_ours(text: str) -> None:
    """Not every zone has them."""
    with suppress(InvalidArgumentError):
        assert datetime.fromisoformat(end_of(text, NOW)).tzinfo is not None
