"""The page on the scripted model server shows what another session's words look like, and a rule that finds them."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from openai import AsyncOpenAI

from coterie.core.ids import MessageId, SessionId
from coterie.core.turn.frame import frame
from coterie.core.turn.items import Origin, SessionText
from coterie.model_server import ModelServer, load_script

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = (DOCS / "model-server.md").read_text("utf-8")
(SHOWN,) = re.findall(r"```text\n(<session-message .*?)```", PAGE, re.DOTALL)


def framed(kind: str, content: str) -> str:
    """What the host sends to a model for a message of another session."""
    origin = Origin(MessageId("msg_1"), SessionId("ses_1"), "lead", SessionId("ses_2"), kind)
    return frame(SessionText(origin, content, "1f0c"))


def test_the_page_shows_the_frame_as_it_is_sent() -> None:
    """A rule is written by what the page shows."""
    head, notice, body, foot = framed("task", "List the risks.").splitlines()
    shown_head, shown_notice, shown_body, shown_foot = SHOWN.replace("1f0c…", "1f0c").splitlines()
    assert (shown_head, shown_foot) == (head, foot)
    assert notice.startswith(shown_notice.removesuffix("…"))
    shown = json.loads(shown_body)
    assert list(shown) == list(json.loads(body))
    assert (shown["kind"], shown["content"]) == ("task", "List the risks.")


def test_the_page_tells_how_the_content_is_escaped() -> None:
    """A pattern that looks for the plain character would never hold."""
    body = framed("message", '<a> says "b"\n').splitlines()[2]
    assert '"content": "\\u003ca\\u003e says \\"b\\"\\n"' in body
    assert [text for text in ('`\\"`', "`\\n`", "`\\u003c`", "`\\u003e`") if text not in PAGE] == []


@pytest.mark.parametrize(
    ("kind", "content", "found"),
    [("message", "how far are you?", True), ("task", "how far are you?", False), ("message", "say how far", False)],
)
async def test_the_rule_for_a_session_message_holds_for_what_it_says(kind: str, content: str, *, found: bool) -> None:
    """By kind and by the beginning of the content, in the very text that the host would send."""
    async with (
        ModelServer(load_script(DOCS / "examples/model_server/reader.yaml")) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client,
    ):
        reply = await client.chat.completions.create(
            model="reader-1",
            messages=[{"role": "user", "content": framed(kind, content)}],
            tools=[{"type": "function", "function": {"name": "glob"}}],
        )
    assert (reply.choices[0].message.content == "I have not begun.") is found
