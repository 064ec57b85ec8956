"""Items as they are stored: what an earlier version wrote must still be read."""

import msgspec

from coterie.core.turn.items import Reply, Usage


def test_a_reply_of_a_time_without_costs_has_an_unknown_one() -> None:
    """Transcripts outlive versions; what was not noted then is unknown, not free."""
    stored = b'{"text":"Hi","usage":{"input_tokens":11,"output_tokens":7}}'
    assert msgspec.json.decode(stored, type=Reply) == Reply("Hi", usage=Usage(11, 7, None))


def test_a_cost_is_stored_with_its_reply() -> None:
    """The bill of a turn is the sum of what its replies say."""
    reply = Reply("Hi", usage=Usage(11, 7, 138))
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply
