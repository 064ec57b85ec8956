"""Items as they are stored: what an earlier version wrote must still be read."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.turn.items import Reply, Usage, total


def test_a_reply_of_a_time_without_costs_has_an_unknown_one() -> None:
    """Transcripts outlive versions; what was not noted then is unknown, not free."""
    stored = b'{"text":"Hi","usage":{"input_tokens":11,"output_tokens":7}}'
    assert msgspec.json.decode(stored, type=Reply) == Reply("Hi", usage=Usage(11, 7, None))


def test_a_cost_is_stored_with_its_reply() -> None:
    """The bill of a turn is the sum of what its replies say."""
    reply = Reply("Hi", usage=Usage(11, 7, 138))
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply


@given(st.lists(st.tuples(*[st.none() | st.integers(0, 9)] * 3), max_size=5))
def test_what_is_known_of_several_requests_is_added_up(counts: list[tuple[int | None, int | None, int | None]]) -> None:
    """A count that one vendor left out is not zero, and does not make the others unknown."""
    found = total(Usage(*one) for one in counts)
    for number, summed in enumerate((found.input_tokens, found.output_tokens, found.cost)):
        known = [count for one in counts if (count := one[number]) is not None]
        assert summed == (sum(known) if known else None)
