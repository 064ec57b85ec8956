"""What a sender is told of a message that has settled."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import EXCERPT_CHARS_MAX, Kind, Message, completion_content
from coterie.core.ledger.states import SETTLED, MessageState

MESSAGE = Message(
    MessageId("msg_1"),
    ChainId("chn_1"),
    SessionId("ses_a"),
    "A",
    target_session_id=SessionId("ses_b"),
    target_title="B",
    kind=Kind.TASK,
    content="work",
    state=MessageState.COMPLETED,
    notify=True,
    hops=3,
    ceiling="ask",
    created_at=1,
    updated_at=2,
    turn_id=TurnId("turn_1"),
)


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_a_completion_names_message_worker_turn_and_status(state: MessageState) -> None:
    """What is not known is left out, so an empty field never looks like an answer."""
    told = json.loads(completion_content(replace(MESSAGE, state=state)))
    assert told == {"workerSessionId": "ses_b", "messageId": "msg_1", "turnId": "turn_1", "status": state.value}


def test_a_completion_tells_result_or_error() -> None:
    """And that the result was cut before it came here."""
    done = json.loads(completion_content(replace(MESSAGE, result="yes", truncated=True)))
    failed = json.loads(completion_content(replace(MESSAGE, error="X: no", turn_id=None)))
    assert (done["result"], done["truncated"]) == ("yes", True)
    assert (failed["error"], "turnId" in failed) == ("X: no", False)


@given(st.text(max_size=5000))
def test_a_completion_quotes_at_most_an_excerpt(result: str) -> None:
    """Whatever a worker wrote is a value in the JSON and nothing more."""
    told = json.loads(completion_content(replace(MESSAGE, result=result)))
    assert len(told.get("result", "")) <= EXCERPT_CHARS_MAX
    assert ("truncated" in told) is (len(result) > EXCERPT_CHARS_MAX)
    assert set(told) <= {"workerSessionId", "messageId", "turnId", "status", "result", "truncated"}
