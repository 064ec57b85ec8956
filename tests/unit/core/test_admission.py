"""Who may wait, what starts next, and what may start at once."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core import admission
from coterie.core.admission import STREAK_MAX, Heads, Places
from coterie.core.codes import Code


@pytest.mark.parametrize(("waiting", "places_max", "free"), [(0, 1, True), (7, 8, True), (8, 8, False), (9, 8, False)])
def test_places_are_counted_up_to_their_bound(waiting: int, places_max: int, *, free: bool) -> None:
    """At the bound there is none; the refusal names the setting and its value."""
    prompt = admission.admit_prompt(Places(waiting, 99, 99, running=True), places_max)
    message = admission.admit_message(Places(99, waiting, 99, running=True), places_max)
    worker = admission.admit_worker(waiting, places_max, "workers_active_max")
    assert [refusal is None for refusal in (prompt, message, worker)] == [free] * 3
    if prompt and message and worker:
        assert (prompt.code, prompt.limit, prompt.value) == (Code.QUEUE_FULL, "prompts_max", places_max)
        assert (message.code, message.limit, message.value) == (Code.AGENT_BUSY, "inbox_max", places_max)
        assert (worker.code, worker.limit, worker.value) == (Code.LIMIT_EXCEEDED, "workers_active_max", places_max)


@pytest.mark.parametrize(("held", "slot", "running"), list(product([False, True], repeat=3)))
@pytest.mark.parametrize("places", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_an_input_starts_at_once_where_nothing_is_before_it(
    places: tuple[int, int, int], *, held: bool, slot: bool, running: bool
) -> None:
    """A free slot, a session that is not held, runs nothing and has nobody waiting: all four or not."""
    may = admission.may_bind(Places(*places, running=running), held=held, slot=slot)
    assert may is (slot and not held and not running and places == (0, 0, 0))


_PART = [st.sampled_from([name, None]) for name in "fpm"]


@given(*_PART, st.integers(0, 10))
def test_people_come_first_but_not_for_ever(
    promoted: str | None, prompt: str | None, message: str | None, streak: int
) -> None:
    """What was promoted goes; whoever waits alone goes; of two the prompt, but after three human turns the message."""
    first = admission.head(Heads(promoted, prompt, message), streak)
    if promoted:
        assert first == promoted
    elif prompt and message:
        assert first == ("m" if streak >= STREAK_MAX else "p")
    else:
        assert first == (prompt or message)
