"""A lead and two readers, run against the scripts of the documentation with the real SDK."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from coterie.model_server import ModelServer, load_script

EXAMPLES = Path(__file__).parents[2] / "docs/examples/model_server"
FILES = ["src/big.py", "src/small.py"]


class Agent:
    """The smallest agent loop: asks, runs tools, asks again."""

    def __init__(self, client: AsyncOpenAI, model: str, tool: str, *, stream: bool) -> None:
        self._client, self._model, self._stream = client, model, stream
        self._tools: list[ChatCompletionFunctionToolParam] = [{"type": "function", "function": {"name": tool}}]
        self.calls: list[dict[str, object]] = []

    async def run(self, prompt: str) -> str:
        """Return the answer that calls no tool."""
        talk: list[ChatCompletionMessageParam] = [{"role": "user", "content": prompt}]
        while True:
            text, calls = await self._ask(talk)
            if not calls:
                return text
            talk.append(
                {
                    "role": "assistant",
                    "content": text,
                    "tool_calls": [
                        {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
                        for key, (name, arguments) in calls.items()
                    ],
                }
            )
            for key, (_, arguments) in calls.items():
                self.calls.append(json.loads(arguments))
                talk.append({"role": "tool", "tool_call_id": key, "content": await self.perform(self.calls[-1])})

    async def perform(self, arguments: dict[str, object]) -> str:
        """Run the tool."""
        assert arguments == {"pattern": "**/*.py", "sort": "size"}
        return "\n".join(FILES)

    async def _ask(self, talk: list[ChatCompletionMessageParam]) -> tuple[str, dict[str, tuple[str, str]]]:
        if self._stream:
            async with self._client.chat.completions.stream(
                model=self._model, messages=talk, tools=self._tools
            ) as stream:
                message = (await stream.get_final_completion()).choices[0].message
        else:
            reply = await self._client.chat.completions.create(model=self._model, messages=talk, tools=self._tools)
            message = reply.choices[0].message
        calls = [call for call in message.tool_calls or () if call.type == "function"]
        return message.content or "", {call.id: (call.function.name, call.function.arguments) for call in calls}


class Lead(Agent):
    """An agent whose one tool spawns readers and waits for them."""

    def __init__(self, client: AsyncOpenAI, reader: AsyncOpenAI, *, stream: bool) -> None:
        super().__init__(client, "lead", "session_task", stream=stream)
        self._reader, self._answers = reader, dict[str, str]()

    async def perform(self, arguments: dict[str, object]) -> str:
        """Spawn or wait."""
        if arguments["action"] == "spawn":
            reader = Agent(self._reader, str(arguments["model"]), "glob", stream=self._stream)
            message = f"msg_{len(self._answers) + 1}"
            self._answers[message] = await reader.run(str(arguments["task"]))
            return json.dumps({"sessionId": f"ses_{message}", "messageId": message})
        assert arguments == {"action": "wait", "messageIds": ["msg_1", "msg_2"]}
        return json.dumps([{"messageId": message, "result": text} for message, text in self._answers.items()])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_lead_spawns_readers_waits_for_them_and_names_what_they_found(
    stack: AsyncExitStack, *, stream: bool
) -> None:
    """Ids travel from two tool results into the arguments of a later call, and a path from a result into a text."""
    clients: list[AsyncOpenAI] = []
    for name in ("lead.yaml", "reader.yaml"):
        server = await stack.enter_async_context(ModelServer(load_script(EXAMPLES / name)))
        client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        clients.append(await stack.enter_async_context(client))
    lead = Lead(*clients, stream=stream)
    answer = await lead.run('Find the "largest" file.')
    assert answer == "The readers agree on src/big.py."
    assert [call["action"] for call in lead.calls] == ["spawn", "spawn", "wait"]
    assert lead.calls[0]["task"] == 'Find the "largest" file.'
