"""Replies that go wrong on purpose, and what a client sees of them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from coterie.core.errors import PortInUseError, PublicBindRefusedError
from coterie.model_server import ModelServer, load_script, parse_script

Start = Callable[[str], Awaitable[ModelServer]]


FAULTS = Path(__file__).parents[2] / "docs/examples/model_server/faults.yaml"
BOUND_S = 20


def user(text: str) -> list[ChatCompletionMessageParam]:
    """Return a conversation that is one user message."""
    return [{"role": "user", "content": text}]


@pytest.fixture
async def server(stack: AsyncExitStack) -> ModelServer:
    """A server with the faults of the documentation."""
    return await stack.enter_async_context(ModelServer(load_script(FAULTS)))


@pytest.fixture
async def client(stack: AsyncExitStack, server: ModelServer) -> AsyncOpenAI:
    """A client with the right key that asks once."""
    client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="let-me-in", max_retries=0)
    return await stack.enter_async_context(client)


async def test_a_rule_with_a_bound_steps_aside_when_it_is_used_up(server: ModelServer, client: AsyncOpenAI) -> None:
    """Fail first, succeed then: the commonest test of a retry."""
    with pytest.raises(openai.RateLimitError, match=r"Slow down\.") as caught:
        await client.chat.completions.create(model="m", messages=user("busy"))
    reply = await client.chat.completions.create(model="m", messages=user("busy"))
    assert caught.value.response.headers["retry-after"] == "0"
    assert caught.value.code == "rate_limit_exceeded"
    assert reply.choices[0].message.content == "All is well."
    assert len(server.requests) == 2


async def test_an_error_body_is_sent_as_it_is_written(client: AsyncOpenAI) -> None:
    """Gateways answer with pages that are no JSON."""
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="m", messages=user("gateway"))
    assert caught.value.response.text == "<html>Bad gateway</html>"
    assert caught.value.status_code == 502


async def test_an_error_body_may_be_json_of_ones_own(start: Start) -> None:
    """A vendor that is not ours has shapes of its own."""
    server = await start("[{reply: {error: {status: 418, body: {tea: '${user}'}, retry_after: 'Wed', delay_ms: 1}}}]")
    async with httpx2.AsyncClient() as http:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        reply = await http.post(f"{server.url}/v1/chat/completions", json=body)
    assert (reply.status_code, reply.json(), reply.headers["retry-after"]) == (418, {"tea": "x"}, "Wed")


async def test_a_cut_stream_breaks_after_the_chunks_before_it(client: AsyncOpenAI) -> None:
    """The client gets what was sent, and then an error rather than an end."""
    stream = await client.chat.completions.create(model="m", messages=user("cut"), stream=True)
    texts: list[str] = []

    async def collect() -> None:
        async for chunk in stream:
            texts.append(chunk.choices[0].delta.content or "")  # noqa: PERF401 - what came before the fault is wanted

    with pytest.raises(openai.APIConnectionError):
        await collect()
    assert texts == ["", "one", "two"]


async def test_a_cut_answer_that_is_no_stream_breaks_too(client: AsyncOpenAI) -> None:
    """Half of a body with a length is no answer."""
    with pytest.raises(openai.APIConnectionError):
        await client.chat.completions.create(model="m", messages=user("cut"))


async def test_an_unfinished_stream_ends_well_but_for_its_reason(server: ModelServer, client: AsyncOpenAI) -> None:
    """HTTP is fine here, so only the missing finish reason tells."""
    stream = await client.chat.completions.create(model="m", messages=user("unfinished"), stream=True)
    choices = [chunk.choices[0] async for chunk in stream]
    whole = await client.chat.completions.create(model="m", messages=user("unfinished"))
    async with (
        AsyncAnthropic(base_url=server.url, api_key="let-me-in") as other,
        other.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "unfinished"}]
        ) as messages,
    ):
        message = await messages.get_final_message()
    assert "".join(choice.delta.content or "" for choice in choices) == "onetwothree"
    assert [choice.finish_reason for choice in [*choices, *whole.choices] if choice.finish_reason] == []
    assert message.stop_reason is None


async def test_anthropic_sees_the_cut_as_well(server: ModelServer) -> None:
    """A cut is one of the transport, whatever the format."""
    async with AsyncAnthropic(base_url=server.url, api_key="let-me-in", max_retries=0) as other:
        with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
            async with other.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "cut"}]
            ) as stream:
                await stream.get_final_message()


async def test_a_hanging_request_ends_when_its_client_leaves(server: ModelServer, client: AsyncOpenAI) -> None:
    """Otherwise each cancelled turn would hold a connection until the end of the test."""
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        asking = group.create_task(client.chat.completions.create(model="m", messages=user("hang")))
        await server.until(lambda server: server.answering == 1)
        asking.cancel()
        await server.until(lambda server: server.answering == 0)


async def test_a_dropped_request_is_answered_with_nothing(server: ModelServer, client: AsyncOpenAI) -> None:
    """A proxy that restarts does this: the request has arrived, and nobody knows what became of it."""
    with pytest.raises(openai.APIConnectionError):
        await client.chat.completions.create(model="m", messages=user("drop"))
    assert (len(server.requests), server.answering) == (1, 0)


async def test_a_server_that_is_away_refuses_and_comes_back(server: ModelServer, client: AsyncOpenAI) -> None:
    """As a local model that somebody stops and starts again; the connection of before is gone too."""
    await client.chat.completions.create(model="m", messages=user("x"))
    async with server.away():
        with pytest.raises(openai.APIConnectionError) as caught:
            await client.chat.completions.create(model="m", messages=user("x"))
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
    reply = await client.chat.completions.create(model="m", messages=user("x"))
    assert reply.choices[0].message.content == "All is well."
    assert len(server.requests) == 2


async def test_a_closing_server_lets_go_of_hanging_requests(stack: AsyncExitStack) -> None:
    """A test that ends must not wait for a model that never answers."""
    async with asyncio.timeout(BOUND_S):
        async with ModelServer(load_script(FAULTS)) as server:
            client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="let-me-in", max_retries=0)
            await stack.enter_async_context(client)
            asking = asyncio.ensure_future(client.chat.completions.create(model="m", messages=user("hang")))
            await server.until(lambda server: server.answering == 1)
        with pytest.raises(openai.APIConnectionError):
            await asking


async def test_a_client_that_leaves_during_a_delay_ends_the_stream(start: Start) -> None:
    """A delay longer than any test is over as soon as nobody waits."""
    server = await start("[{reply: {text: [a, b], delay_ms: 600000}}]")
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    async with asyncio.timeout(BOUND_S), httpx2.AsyncClient() as http:
        async with http.stream("POST", f"{server.url}/v1/chat/completions", json=body) as reply:
            assert reply.status_code == 200
        await server.until(lambda server: server.answering == 0)


async def test_silence_broken_arguments_and_length_reach_the_client(client: AsyncOpenAI) -> None:
    """These are answers, and the host has to judge them."""
    replies = [
        (await client.chat.completions.create(model="m", messages=user(text))).choices[0]
        for text in ("silence", "broken", "length")
    ]
    calls = replies[1].message.tool_calls or []
    assert replies[0].message.content == ""
    assert [call.function.arguments for call in calls if call.type == "function"] == ['{"pattern": ']
    assert replies[2].finish_reason == "length"


async def test_the_wrong_key_is_refused(client: AsyncOpenAI) -> None:
    """OpenAI's SDK maps it by status, its users by code."""
    with pytest.raises(openai.AuthenticationError) as caught:
        await client.with_options(api_key="wrong").chat.completions.create(model="m", messages=user("x"))
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org"])
def test_the_server_listens_on_loopback_only(host: str) -> None:
    """A script answers anybody who can reach it."""
    with pytest.raises(PublicBindRefusedError, match=host):
        ModelServer(parse_script("[{reply: {text: x}}]"), host)


async def test_a_port_that_is_taken_is_told(start: Start) -> None:
    """The port is in the text, since nothing else helps."""
    server = await start("[{reply: {text: x}}]")
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(PortInUseError, match=str(port)):
        async with ModelServer(server.script, "localhost", port):
            pass
