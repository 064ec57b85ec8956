"""The picture of who sent what to whom."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from coterie.interfaces.cli.sequence import Arrow, draw

TITLES = st.text(st.characters(codec="utf-8", categories=("L", "N", "So")), max_size=40)


def test_arrows_point_from_the_source_to_the_target() -> None:
    """The picture is compared as a whole: it is what people look at."""
    people = [("a", "Lead"), ("b", "Reader")]
    arrows = [Arrow("a", "b", "task", "completed"), Arrow("b", "a", "completion", "queued")]

    assert draw(people, arrows) == (
        "Lead             Reader\n"
        "  │                 │\n"
        "  │────── task ────▶│   completed\n"
        "  │◀── completion ──│   queued\n"
        "  │                 │"
    )


def test_messages_of_sessions_that_are_not_drawn_are_left_out() -> None:
    """A page of a chain may name a session that the reader did not ask for."""
    assert "task" not in draw([("a", "Lead")], [Arrow("a", "elsewhere", "task", "queued")])


@given(st.lists(TITLES, min_size=1, max_size=4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6))
def test_titles_of_any_script_keep_the_lifelines_in_place(titles: list[str], pairs: list[tuple[int, int]]) -> None:
    """Wide characters take two cells; every row of lifelines is as wide as the first."""
    people = [(str(number), title) for number, title in enumerate(titles)]
    known = [(one, two) for one, two in pairs if one != two and max(one, two) < len(people)]
    drawn = draw(people, [Arrow(str(one), str(two), "task", "") for one, two in known]).splitlines()

    assert len(drawn) == 3 + len(known)
    assert {cell_len(row) for row in drawn[1:]} == {cell_len(drawn[1])}
