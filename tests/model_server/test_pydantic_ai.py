"""The server as `pydantic_ai.direct` sees it, which is how the host asks models."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Literal

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from coterie.model_server import ModelServer

Start = Callable[[str], Awaitable[ModelServer]]


Vendor = Literal["chat", "responses", "anthropic"]
SCRIPT = """
- when: {user: cut}
  reply: {text: [a, b, c], cut_after: 2}
- when: {user: unfinished}
  reply: {text: [a], no_finish: true}
- when: {user: busy}
  reply: {error: {status: 429, retry_after: 7}}
- when: {last: user, offers: read, system: terse}
  reply: {thinking: hm, text: [I, " read"], calls: [{tool: read, arguments: {path: "${user}"}}]}
- when: {last: tool, tool: read, tool_result: 'size (?P<size>\\d+)'}
  reply: {text: "${tool.size} bytes"}
"""
READ = ToolDefinition(
    name="read", parameters_json_schema={"type": "object", "properties": {"path": {"type": "string"}}}
)


async def model_of(vendor: Vendor, server: ModelServer, stack: AsyncExitStack) -> Model:
    """Return the model that asks *server* in the format of *vendor*."""
    if vendor != "anthropic":
        client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        await stack.enter_async_context(client)
        kind = OpenAIChatModel if vendor == "chat" else OpenAIResponsesModel
        return kind("gpt", provider=OpenAIProvider(openai_client=client))
    other = AsyncAnthropic(base_url=server.url, api_key="any", max_retries=0)
    await stack.enter_async_context(other)
    return AnthropicModel("claude", provider=AnthropicProvider(anthropic_client=other))


async def ask(model: Model, messages: list[ModelMessage]) -> ModelResponse:
    """Ask once, in a stream."""
    parameters = ModelRequestParameters(function_tools=[READ])
    async with model_request_stream(model, messages, model_request_parameters=parameters) as stream:
        async for _ in stream:
            pass
        return stream.get()


def prompt(text: str) -> list[ModelMessage]:
    """Return a conversation that is one user message."""
    return [ModelRequest(parts=[UserPromptPart(text)], instructions="Be terse.")]


@pytest.mark.parametrize("vendor", ["chat", "responses", "anthropic"])
async def test_a_tool_call_and_its_result_make_a_round(vendor: Vendor, start: Start, stack: AsyncExitStack) -> None:
    """The finish reason is the only proof of a complete answer, so it must be there."""
    model = await model_of(vendor, await start(SCRIPT), stack)
    messages = prompt("a.py")
    called = await ask(model, messages)
    calls = [part for part in called.parts if isinstance(part, ToolCallPart)]
    result = ToolReturnPart(tool_name="read", content="size 12", tool_call_id=calls[0].tool_call_id)
    messages += [called, ModelRequest(parts=[result], instructions="Be terse.")]
    answer = await ask(model, messages)
    assert [part.content for part in called.parts if isinstance(part, ThinkingPart)] == ["hm"]
    assert [part.content for part in called.parts if isinstance(part, TextPart)] == ["I read"]
    assert calls[0].args_as_dict() == {"path": "a.py"}
    # The responses API only says that an answer is complete.
    assert called.finish_reason == ("stop" if vendor == "responses" else "tool_call")
    assert answer.finish_reason == "stop"
    assert answer.text == "12 bytes"
    assert answer.usage.output_tokens == 2
    assert "finish_reason" in (answer.provider_details or {})


@pytest.mark.parametrize("vendor", ["chat", "responses", "anthropic"])
async def test_faults_are_told_apart(vendor: Vendor, start: Start, stack: AsyncExitStack) -> None:
    """A cut raises, a missing finish reason shows in the details only, and an error has its status."""
    model = await model_of(vendor, await start(SCRIPT), stack)
    with pytest.raises(ModelAPIError) as cut:
        await ask(model, prompt("cut"))
    unfinished = await ask(model, prompt("unfinished"))
    with pytest.raises(ModelHTTPError) as busy:
        await ask(model, prompt("busy"))
    assert not isinstance(cut.value, ModelHTTPError)
    assert unfinished.text == "a"
    assert "finish_reason" not in (unfinished.provider_details or {})
    assert busy.value.status_code == 429
