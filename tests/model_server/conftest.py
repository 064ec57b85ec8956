"""Servers and clients for the tests of the model server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from coterie.model_server import ModelServer, parse_script

Start = Callable[[str], Awaitable[ModelServer]]
"""Starts a server that answers as the YAML text says."""


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """Closes what the test opened."""
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
def start(stack: AsyncExitStack) -> Start:
    """Start servers."""

    async def start(script: str) -> ModelServer:
        return await stack.enter_async_context(ModelServer(parse_script(script)))

    return start


@pytest.fixture
def openai_to(stack: AsyncExitStack) -> Callable[[ModelServer], Awaitable[AsyncOpenAI]]:
    """Make OpenAI clients that ask once."""

    async def connect(server: ModelServer) -> AsyncOpenAI:
        client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        return await stack.enter_async_context(client)

    return connect


@pytest.fixture
def anthropic_to(stack: AsyncExitStack) -> Callable[[ModelServer], Awaitable[AsyncAnthropic]]:
    """Make Anthropic clients that ask once."""

    async def connect(server: ModelServer) -> AsyncAnthropic:
        client = AsyncAnthropic(base_url=server.url, api_key="any", max_retries=0)
        return await stack.enter_async_context(client)

    return connect
