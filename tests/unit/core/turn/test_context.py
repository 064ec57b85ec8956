"""What a model is shown of a transcript."""

from hypothesis import given
from hypothesis import strategies as st

from coterie.core.ids import MessageId, SessionId
from coterie.core.turn.context import INTERRUPTED, UserPart, shown
from coterie.core.turn.frame import frame, report_frame
from coterie.core.turn.items import Item, Origin, PersonText, Reply, Report, SessionText, ToolCall, ToolResult
from coterie.core.turn.silence import is_silent

ORIGIN = Origin(MessageId("msg_1"), SessionId("ses_a"), "A", SessionId("ses_b"), kind="task")

names = st.sampled_from("abcd")
texts = st.sampled_from(["", " ", "\u200b", "word"])
calls = st.lists(st.builds(ToolCall, names, st.just("tool"), st.just("{}")), max_size=3, unique_by=lambda call: call.id)
items = st.lists(
    st.one_of(
        st.builds(PersonText, texts),
        st.builds(SessionText, st.just(ORIGIN), texts, st.just("n")),
        st.builds(Report, names, st.just("general"), st.just("completed"), texts, st.just("n")),
        st.builds(Reply, texts, calls.map(tuple), texts),
        st.builds(ToolResult, names, st.just("tool"), texts, st.booleans()),
    ),
    max_size=14,
)


@given(items)
def test_every_call_has_one_result_right_behind_its_reply(transcript: list[Item]) -> None:
    """Vendors refuse a request that has it otherwise, and a crash can leave any transcript."""
    found = shown(transcript)
    at = 0
    while at < len(found):
        part = found[at]
        assert not isinstance(part, ToolResult), "a result without a call"
        at += 1
        if isinstance(part, Reply):
            results = found[at : at + len(part.calls)]
            assert all(isinstance(result, ToolResult) for result in results)
            answered = {result.call_id for result in results if isinstance(result, ToolResult)}
            assert answered == {call.id for call in part.calls}
            assert len(results) == len(part.calls)
            at += len(results)


@given(items)
def test_no_silent_reply_is_shown_and_everything_said_is(transcript: list[Item]) -> None:
    """No request carries an assistant message without text and without a call; nothing else is dropped."""
    found = shown(transcript)
    said = [item for item in transcript if isinstance(item, Reply) and not is_silent(item)]
    heard = [item for item in transcript if isinstance(item, PersonText | SessionText | Report)]
    assert [part for part in found if isinstance(part, Reply)] == said
    assert [part.text for part in found if isinstance(part, UserPart)] == [
        item.text
        if isinstance(item, PersonText)
        else frame(item)
        if isinstance(item, SessionText)
        else report_frame(item)
        for item in heard
    ]


@given(items)
def test_a_silent_reply_changes_nothing_about_what_is_shown(transcript: list[Item]) -> None:
    """Accepted, asked again or failed, reasoning or none: the next request is as if it had never come."""
    spoken = [item for item in transcript if not (isinstance(item, Reply) and is_silent(item))]
    assert shown(transcript) == shown(spoken)


def test_a_call_without_a_result_is_answered_as_interrupted() -> None:
    """The model must not take it for done, nor for not done."""
    call, other = ToolCall("1", "bash", "{}"), ToolCall("2", "read", "{}")
    result = ToolResult("2", "read", "text")
    found = shown([Reply("", (call, other)), result, PersonText("go on")])
    assert found[1:] == (result, ToolResult("1", "bash", INTERRUPTED, error=True), UserPart("go on"))


def test_a_late_result_is_not_shown_twice() -> None:
    """The call has its answer already."""
    call = ToolCall("1", "bash", "{}")
    found = shown([Reply("", (call,)), PersonText("x"), ToolResult("1", "bash", "late")])
    assert found[1:] == (ToolResult("1", "bash", INTERRUPTED, error=True), UserPart("x"))


def test_a_silent_reply_between_a_call_and_its_result_parts_nothing() -> None:
    """It is as if it were not there."""
    call, result = ToolCall("1", "bash", "{}"), ToolResult("1", "bash", "ok")
    reply = Reply("", (call,))
    assert shown([reply, Reply(" ", thinking="hm"), result]) == (reply, result)
