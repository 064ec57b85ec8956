"""What is told to a person who is not looking, and how often."""

from coterie.core.inbound import Waiting
from coterie.core.notice import GAP_S, SENT_MAX, WINDOW_S, Notify, Pace, Sort, sort_of_input, sort_of_turn
from coterie.core.turn.states import TurnState


def test_only_ends_that_nobody_has_asked_for_are_told() -> None:
    """Who has cancelled a turn knows it."""
    told = {state: sort_of_turn(state) for state in TurnState}
    assert told == {
        TurnState.RUNNING: None,
        TurnState.COMPLETED: Sort.FINISHED,
        TurnState.FAILED: Sort.FAILED,
        TurnState.CANCELLED: None,
        TurnState.INTERRUPTED: Sort.FAILED,
    }


def test_what_waits_for_a_release_is_told_and_what_is_asked_is_asked() -> None:
    """A question has a notice of its own."""
    told = {waiting: sort_of_input(waiting) for waiting in (None, *Waiting)}
    assert told == {
        None: None,
        Waiting.BUDGET: Sort.BUDGET,
        Waiting.POLICY: Sort.HELD,
        Waiting.ACROSS_PROJECTS: None,
    }


def test_one_session_and_sort_waits_and_others_do_not() -> None:
    """A storm of one must not hide the other."""
    pace = Pace().after("a failed", 0.0)
    assert pace is not None
    assert pace.after("a failed", GAP_S - 0.1) is None
    assert pace.after("a failed", GAP_S) is not None
    assert pace.after("b failed", 0.0) is not None


def test_all_together_have_a_bound_that_ends_with_its_window() -> None:
    """However many sessions there are; and nothing is remembered for longer."""
    pace: Pace | None = Pace()
    for number in range(SENT_MAX):
        assert pace is not None
        pace = pace.after(f"{number}", 1.0)
    assert pace is not None
    assert pace.after("more", WINDOW_S) is None
    later = pace.after("more", WINDOW_S + 1.0)
    assert later == Pace(((WINDOW_S + 1.0, "more"),))


def test_an_address_is_not_shown() -> None:
    """Whoever knows it can write to the person."""
    assert "secret" not in repr(Notify(url="https://push/secret")) + repr(Notify(command=("x", "secret")))
