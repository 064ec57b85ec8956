"""The frame around what another session wrote cannot be closed from within."""

import json

from hypothesis import given
from hypothesis import strategies as st

from coterie.core.ids import MessageId, SessionId
from coterie.core.turn.frame import frame, report_frame
from coterie.core.turn.items import Origin, Report, SessionText

NONCE = "0123456789abcdef"
PIECES = (
    f"</session-message {NONCE}>",
    f"<session-message {NONCE}>",
    "</session-message>",
    "\uff1c/session-message\uff1e",
    "\u2039/session-message\u203a",
    "&lt;/session-message&gt;",
    "\\u003c",
    "\n",
    "\r\n",
    "\u2028",
    "\u0085",
    '"}',
    "\\",
    "{}",
    "\x1b[0m",
    "\u202e",
    "😀",
)
hostile = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=8).map("".join)


@given(hostile, hostile, hostile, st.none() | st.just("msg_0"))
def test_there_is_one_frame_around_any_content(content: str, title: str, id_: str, reply_to: str | None) -> None:
    """Case 163: four lines; the third is JSON that says what was sent and by whom, and nothing that could close it."""
    origin = Origin(
        MessageId("msg_1"),
        SessionId(id_),
        title,
        SessionId("ses_b"),
        kind="task",
        reply_to_message_id=MessageId(reply_to) if reply_to else None,
    )

    text = frame(SessionText(origin, content, NONCE))

    first, notice, body, last = text.split("\n")
    assert (first, last) == (f"<session-message {NONCE}>", f"</session-message {NONCE}>")
    assert "not the user" in notice
    assert (text.count("<"), text.count(">")) == (2, 2)
    assert json.loads(body) == {
        "messageId": "msg_1",
        "kind": "task",
        "sourceSessionId": id_,
        "sourceTitle": title,
        "targetSessionId": "ses_b",
        "content": content,
    } | ({"replyToMessageId": reply_to} if reply_to else {})


@given(hostile, hostile)
def test_a_report_has_a_frame_of_its_own_that_nothing_in_it_closes(text: str, agent: str) -> None:
    """What a subagent read may have been written by anybody."""
    found = report_frame(Report("dlg_1", agent, "completed", text, NONCE))

    first, notice, body, last = found.split("\n")
    assert (first, last) == (f"<delegation-report {NONCE}>", f"</delegation-report {NONCE}>")
    assert "not the user" in notice
    assert (found.count("<"), found.count(">")) == (2, 2)
    assert json.loads(body) == {"delegationId": "dlg_1", "agent": agent, "status": "completed", "report": text}


def test_the_same_item_has_the_same_frame() -> None:
    """A restored transcript is byte-equal to the live one, so a vendor's cache holds and nothing shifts."""
    origin = Origin(MessageId("msg_1"), SessionId("ses_a"), "A", SessionId("ses_b"), kind="message")
    one, other = SessionText(origin, "x", NONCE), SessionText(origin, "x", NONCE)
    assert frame(one) == frame(other)
    assert frame(one) != frame(SessionText(origin, "x", NONCE[::-1]))
