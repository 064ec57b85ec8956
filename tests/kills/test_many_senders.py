"""Processes that write to one session at the same time."""

from pathlib import Path
from typing import Final

from tests.guarantees import guarantee
from tests.kills.senders import write

SENDERS: Final = 32
EACH: Final = 100


@guarantee("I4")
@guarantee("I14")
def test_each_key_of_many_senders_is_one_row_or_one_refusal(tmp_path: Path) -> None:
    """No message is lost between processes, none is written twice, and a repeated key writes nothing."""
    crowd = write(tmp_path, SENDERS, EACH)
    assert crowd.ok, crowd
    assert crowd.requests == SENDERS * EACH
    assert crowd.rows > 9, "more than the queue holds at once"
    assert crowd.busy
    assert crowd.repeated
