"""The server as the `anthropic` SDK sees it."""

from collections.abc import Awaitable, Callable

import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import MessageParam

from coterie.model_server import ModelServer

Start = Callable[[str], Awaitable[ModelServer]]


Connect = Callable[[ModelServer], Awaitable[AsyncAnthropic]]

TALK = """
rules:
- when: {user: 'read (?P<path>\\S+)', last: user, offers: read}
  reply: {thinking: hm, text: [I, " read"], calls: [{tool: read, arguments: {path: "${user.path}"}}]}
- when: {tool: read, tool_result: 'size (?P<size>\\d+)', system: brief}
  reply: {text: "${tool.size} bytes"}
- when: {user: broken}
  reply: {calls: [{tool: read, arguments_text: '{"a'}]}
- when: {user: silence}
  reply: {silence: true}
- when: {user: long}
  reply: {text: a, finish: length}
"""


def user(text: str) -> list[MessageParam]:
    """Return a conversation that is one user message."""
    return [{"role": "user", "content": text}]


async def read_file(client: AsyncAnthropic) -> list[anthropic.types.Message]:
    """Ask for a file, whole and streamed."""
    tools: list[anthropic.types.ToolParam] = [{"name": "read", "input_schema": {"type": "object"}}]
    asked = user("read a.py")
    whole = await client.messages.create(model="c", max_tokens=9, messages=asked, tools=tools)
    async with client.messages.stream(model="c", max_tokens=9, messages=asked, tools=tools) as stream:
        return [whole, await stream.get_final_message()]


@pytest.mark.parametrize("suffix", ["", "/v1"])
async def test_whole_and_streamed_answers_are_alike(start: Start, suffix: str) -> None:
    """Thinking, text and calls are blocks in this order; a base URL with `/v1` serves as well as one without."""
    server = await start(TALK)
    async with AsyncAnthropic(base_url=server.url + suffix, api_key="any") as client:
        for message in await read_file(client):
            thinking, text, call = message.content
            assert thinking.type == "thinking"
            assert thinking.thinking == "hm"
            assert text.type == "text"
            assert text.text == "I read"
            assert call.type == "tool_use"
            assert (call.name, call.input) == ("read", {"path": "a.py"})
            assert message.stop_reason == "tool_use"
            assert message.usage.output_tokens > 0


async def test_a_tool_result_inside_of_a_user_message_is_a_tool_result(start: Start, anthropic_to: Connect) -> None:
    """Anthropic sends results in the user's name, but no user said them."""
    client = await anthropic_to(await start(TALK))
    called: list[MessageParam] = [
        *user("read a.py"),
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I read"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}},
            ],
        },
    ]
    for content in ("size 12", [{"type": "text", "text": "size 12"}]):
        talk: list[MessageParam] = [
            *called,
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}]},  # pyright: ignore[reportAssignmentType] - the union of both contents is not narrowed
        ]
        reply = await client.messages.create(
            model="c", max_tokens=9, messages=talk, system=[{"type": "text", "text": "be brief"}]
        )
        assert reply.content[0].type == "text"
        assert reply.content[0].text == "12 bytes"
    empty: list[MessageParam] = [*called, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}]
    with pytest.raises(anthropic.BadRequestError, match="No rule of the script holds"):
        await client.messages.create(model="c", max_tokens=9, messages=empty, system="be brief")


async def test_broken_arguments_silence_and_length_have_their_own_words(start: Start, anthropic_to: Connect) -> None:
    """What can go wrong in an answer goes wrong in the vendor's way."""
    client = await anthropic_to(await start(TALK))
    broken = await client.messages.create(model="c", max_tokens=9, messages=user("broken"))
    silence = await client.messages.create(model="c", max_tokens=9, messages=user("silence"))
    long = await client.messages.create(model="c", max_tokens=9, messages=user("long"))
    assert broken.content[0].type == "tool_use"
    assert broken.content[0].input == {"INVALID_JSON": '{"a'}
    assert (silence.content, silence.stop_reason) == ([], "end_turn")
    assert long.stop_reason == "max_tokens"


async def test_tokens_are_counted_by_the_same_estimate(start: Start, anthropic_to: Connect) -> None:
    """A client that counts before it asks finds what the answer will say."""
    client = await anthropic_to(await start(TALK))
    counted = await client.messages.count_tokens(model="c", messages=user("long"))
    reply = await client.messages.create(model="c", max_tokens=9, messages=user("long"))
    assert counted.input_tokens == reply.usage.input_tokens == 1


async def test_the_wrong_key_is_refused_in_the_vendors_shape(start: Start, anthropic_to: Connect) -> None:
    """The SDKs tell a refused key from other faults by its shape."""
    server = await start("{api_key: secret, rules: [{reply: {text: in}}]}")
    client = await anthropic_to(server)
    with pytest.raises(anthropic.AuthenticationError) as caught:
        await client.messages.create(model="c", max_tokens=9, messages=user("x"))
    reply = await client.with_options(api_key="secret").messages.create(model="c", max_tokens=9, messages=user("x"))
    assert caught.value.type == "authentication_error"
    assert reply.stop_reason == "end_turn"
    assert len(server.requests) == 1
