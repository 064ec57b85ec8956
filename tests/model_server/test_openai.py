"""The server as the `openai` SDK sees it."""

import json
from collections.abc import Awaitable, Callable

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from coterie.model_server import ModelServer

Start = Callable[[str], Awaitable[ModelServer]]


Connect = Callable[[ModelServer], Awaitable[AsyncOpenAI]]

TALK = """
rules:
- when: {user: 'read (?P<path>\\S+)', last: user}
  reply:
    thinking: hm
    text: [I, " read"]
    calls:
    - {tool: read, arguments: {path: "${user.path}", deep: {at: [1, "x${user.path}"]}}}
    - {tool: stop}
- reply: {text: "hello ${model}", chunk_chars: 3, usage: {input_tokens: 3, output_tokens: 9}}
"""


def user(text: str) -> list[ChatCompletionMessageParam]:
    """Return a conversation that is one user message."""
    return [{"role": "user", "content": text}]


async def test_a_whole_answer_has_text_calls_thinking_finish_and_usage(start: Start, openai_to: Connect) -> None:
    """Clients that do not stream get the same answer as those that do."""
    client = await openai_to(await start(TALK))
    reply = await client.chat.completions.create(model="m", messages=user('read a"b.py'))
    choice = reply.choices[0]
    calls = [call.function for call in choice.message.tool_calls or () if call.type == "function"]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I read"
    assert (choice.message.model_extra or {})["reasoning_content"] == "hm"
    assert [call.name for call in calls] == ["read", "stop"]
    assert json.loads(calls[0].arguments) == {"path": 'a"b.py', "deep": {"at": [1, 'xa"b.py']}}
    assert calls[1].arguments == "{}"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


async def test_a_stream_has_the_same_in_pieces(start: Start, openai_to: Connect) -> None:
    """Chunks come as the script cuts them, arguments in pieces, the finish reason last."""
    client = await openai_to(await start(TALK))
    stream = await client.chat.completions.create(model="m", messages=user("read a.py"), stream=True)
    choices = [chunk.choices[0] async for chunk in stream]
    texts = [choice.delta.content for choice in choices if choice.delta.content]
    pieces = [call for choice in choices for call in choice.delta.tool_calls or ()]
    first = "".join(call.function.arguments or "" for call in pieces if call.index == 0 and call.function)
    assert texts == ["I", " read"]
    assert json.loads(first) == {"path": "a.py", "deep": {"at": [1, "xa.py"]}}
    assert len({call.id for call in pieces if call.id}) == 2
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["tool_calls"]


async def test_usage_comes_in_a_stream_only_when_it_is_asked_for(start: Start, openai_to: Connect) -> None:
    """A client that counts on usage it did not ask for would work here and fail at the vendor."""
    client = await openai_to(await start(TALK))
    asked = await client.chat.completions.create(
        model="m", messages=user("hi"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in asked]
    silent = await client.chat.completions.create(model="m", messages=user("hi"), stream=True)
    assert [chunk.choices[0].delta.content for chunk in chunks[1:4]] == ["hel", "lo ", "m"]
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (3, 9)
    assert [chunk.usage async for chunk in silent if chunk.usage] == []


async def test_conditions_read_the_whole_conversation(start: Start, openai_to: Connect) -> None:
    """Each condition is shown with the one request that it lets through."""
    server = await start("""
    - when: {system: 'be (?P<how>\\w+)', user_turn: 2, requests_since_user: "<1"}
      reply: {text: "${system.how} ${user}"}
    - when: {results_since_user: ">1", requests_since_user: "<=1", last: tool}
      capture:
        first: {from: assistant, pattern: 'read (\\{.*\\})'}
        odd: {from: user, pattern: never, default: none}
        all: {pattern: 'o\\w', nth: -1, since_user: true}
      reply: {text: "${tool} ${json:first} ${odd} ${all}"}
    - when: {offers: [re*, write], model_regex: '^(?P<maker>\\w+)-', user_turn: ">0"}
      unless: {last: tool}
      reply: {text: "from ${model.maker}"}
    """)
    client = await openai_to(server)
    tools: list[ChatCompletionFunctionToolParam] = [
        {"type": "function", "function": {"name": name}} for name in ("read", "write")
    ]

    async def ask(messages: list[ChatCompletionMessageParam], *, offered: bool = False) -> str | None:
        reply = await client.chat.completions.create(
            model="acme-1", messages=messages, tools=tools if offered else openai.omit
        )
        return reply.choices[0].message.content

    talk: list[ChatCompletionMessageParam] = [
        {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
        *user("a"),
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
    ]
    done: list[ChatCompletionMessageParam] = [
        *user("a"),
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"a": "ob"}'}},
                {"id": "2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "tool", "tool_call_id": "2", "content": "os"},
    ]
    assert await ask(talk) == "brief c\nd"
    assert await ask(done) == 'os {"a": "ob"} none os'
    assert await ask(user("x"), offered=True) == "from acme"
    with pytest.raises(openai.BadRequestError, match="No rule of the script holds for this request: model 'acme-1'"):
        await ask(user("x"))
    assert len(server.requests) == 4
    assert server.requests[2]["tools"] == tools


async def test_a_result_of_an_earlier_turn_is_not_the_last_result(start: Start, openai_to: Connect) -> None:
    """Otherwise a second question would be answered with what the first one found."""
    client = await openai_to(await start("[{when: {tool: '*'}, reply: {text: old}}, {reply: {text: new}}]"))
    talk: list[ChatCompletionMessageParam] = [*user("a"), {"role": "tool", "tool_call_id": "1", "content": "ok"}]
    replies = [
        await client.chat.completions.create(model="m", messages=messages)
        for messages in (talk, [*talk, *user("b")], user("c"))
    ]
    assert [reply.choices[0].message.content for reply in replies] == ["old", "new", "new"]


async def test_models_are_listed_and_found_by_name(start: Start, openai_to: Connect) -> None:
    """Discovery of models is a thing that hosts do at their start."""
    client = await openai_to(await start("{models: [a, b], rules: [{reply: {text: x}}]}"))
    assert [model.id for model in (await client.models.list()).data] == ["a", "b"]
    assert (await client.models.retrieve("b")).id == "b"
    with pytest.raises(openai.NotFoundError, match="There is no model 'c'"):
        await client.models.retrieve("c")


async def test_a_slot_that_wants_json_and_finds_none_is_told(start: Start, openai_to: Connect) -> None:
    """The author sees what was found, at the request that shows it."""
    client = await openai_to(await start("[{name: r, reply: {text: '${json:user}'}}]"))
    with pytest.raises(openai.InternalServerError, match=r"Rule 'r': \$\{json:user\} found 'no', which is not JSON"):
        await client.chat.completions.create(model="m", messages=user("no"))
    reply = await client.chat.completions.create(model="m", messages=user('"a\\u0041"'))
    assert reply.choices[0].message.content == "aA"
