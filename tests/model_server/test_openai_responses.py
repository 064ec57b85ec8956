"""The server as the responses API of the `openai` SDK sees it."""

from collections.abc import Awaitable, Callable

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import FunctionToolParam, ResponseInputParam

from coterie.model_server import ModelServer

Start = Callable[[str], Awaitable[ModelServer]]
Connect = Callable[[ModelServer], Awaitable[AsyncOpenAI]]

TALK = """
- when: {last: user, offers: read, system: terse}
  reply: {thinking: hm, text: [I, " read"], calls: [{tool: read, arguments: {path: "${user}"}}]}
- when: {last: tool, tool: read, requests_since_user: 1}
  reply: {text: "${tool}", finish: length}
- when: {user: unfinished}
  reply: {text: a, no_finish: true}
"""
READ: FunctionToolParam = {"type": "function", "name": "read", "parameters": {}, "strict": False}


async def test_whole_and_streamed_answers_are_alike(start: Start, openai_to: Connect) -> None:
    """Reasoning, text and calls are items in this order."""
    client = await openai_to(await start(TALK))
    whole = await client.responses.create(model="m", input="a.py", instructions="Be terse.", tools=[READ])
    async with client.responses.stream(model="m", input="a.py", instructions="Be terse.", tools=[READ]) as stream:
        streamed = await stream.get_final_response()
    for response in (whole, streamed):
        assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
        assert response.output_text == "I read"
        assert response.status == "completed"
        call = response.output[2]
        assert call.type == "function_call"
        assert (call.name, call.arguments) == ("read", '{"path":"a.py"}')


async def test_text_and_calls_of_one_answer_are_one_request(start: Start, openai_to: Connect) -> None:
    """They are separate items on the wire, yet the model was asked once."""
    client = await openai_to(await start(TALK))
    for output in ("size 12", [{"type": "input_text", "text": "size 12"}]):
        talk: ResponseInputParam = [
            {"role": "user", "content": [{"type": "input_text", "text": "a.py"}]},
            {"role": "assistant", "content": "I read"},
            {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": output},  # pyright: ignore[reportAssignmentType] - the union of both outputs is not narrowed
        ]
        response = await client.responses.create(model="m", input=talk)
        assert response.output_text == "size 12"
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"


async def test_an_unfinished_answer_has_no_closing_event(start: Start, openai_to: Connect) -> None:
    """The closing event is this API's finish reason."""
    client = await openai_to(await start(TALK))
    events = [event.type async for event in await client.responses.create(model="m", input="unfinished", stream=True)]
    whole = await client.responses.create(model="m", input="unfinished")
    assert events[0] == "response.created"
    assert events[-1] == "response.output_item.done"
    assert whole.status == "in_progress"
    with pytest.raises(openai.BadRequestError, match="No rule"):
        await client.responses.create(model="m", input=[])
