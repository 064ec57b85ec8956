"""OpenAI chat completions, as `POST /v1/chat/completions` speaks them."""

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel, Field

from coterie.model_server.answer import Answer
from coterie.model_server.request import Request, Said, Speaker
from coterie.model_server.wire_format import Frame, JsonObject, Place, WireFormat, pieces, sse

CREATED: Final = 1_700_000_000
"""When every answer says it was made; a fixed time keeps recordings comparable."""

_SPEAKERS: Final = {"user": Speaker.USER, "assistant": Speaker.ASSISTANT, "tool": Speaker.TOOL}
_ERROR_TYPES: Final = {
    401: ("authentication_error", "invalid_api_key"),
    404: ("invalid_request_error", "not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}


class _Part(BaseModel):
    type: str = ""
    text: str = ""


class _Function(BaseModel):
    name: str
    arguments: str = ""


class _Call(BaseModel):
    id: str = ""
    function: _Function


class _Message(BaseModel):
    role: str
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""


class _Tool(BaseModel):
    function: _Function | None = None


class _StreamOptions(BaseModel):
    include_usage: bool = False


class _Body(BaseModel):
    model: str
    messages: list[_Message]
    tools: list[_Tool] | None = None
    stream: bool | None = False
    stream_options: _StreamOptions | None = Field(default_factory=_StreamOptions)


def _decode(body: bytes) -> Request:
    asked = _Body.model_validate_json(body)
    tool_of = {call.id: call.function.name for message in asked.messages for call in message.tool_calls or ()}
    return Request(
        model=asked.model,
        said=tuple(_said(message, tool_of) for message in asked.messages),
        tools=tuple(tool.function.name for tool in asked.tools or () if tool.function is not None),
        stream=bool(asked.stream),
        usage_in_stream=asked.stream_options is not None and asked.stream_options.include_usage,
    )


def _said(message: _Message, tool_of: dict[str, str]) -> Said:
    content = message.content or ""
    text = content if isinstance(content, str) else "\n".join(part.text for part in content if part.text)
    calls = [f"{call.function.name} {call.function.arguments}" for call in message.tool_calls or ()]
    # "developer" is what newer models call the system.
    speaker = _SPEAKERS.get(message.role, Speaker.SYSTEM)
    return Said(speaker, "\n".join([text, *calls] if text else calls), tool_of.get(message.tool_call_id, ""))


def _frames(answer: Answer) -> Iterator[Frame]:
    def chunk(place: Place, delta: JsonObject, finish: str | None = None) -> Frame:
        return sse(place, _chunk(answer, [{"index": 0, "delta": delta, "finish_reason": finish}]))

    yield chunk(Place.FRAMEWORK, {"role": "assistant", "content": ""})
    if answer.thinking:
        yield chunk(Place.CHUNK, {"reasoning_content": answer.thinking})
    for text in answer.chunks:
        yield chunk(Place.CHUNK, {"content": text})
    for index, call in enumerate(answer.calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.tool, "arguments": ""}}
        yield chunk(Place.FRAMEWORK, {"tool_calls": [head]})
        for piece in pieces(call.arguments):
            yield chunk(Place.CHUNK, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk(Place.CLOSING, {}, answer.finish.value)
    if answer.request.usage_in_stream:
        yield sse(Place.CLOSING, _chunk(answer, []) | {"usage": _usage(answer)})
    yield Frame(Place.CLOSING, b"data: [DONE]\n\n")


def _whole(answer: Answer) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in answer.calls
        ]
    finish = answer.finish.value if answer.finished else None
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": CREATED,
        "model": answer.request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": _usage(answer),
    }


def fault(status: int, message: str) -> JsonObject:
    """Return an error in OpenAI's shape."""
    kind, code = _ERROR_TYPES.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))  # noqa: PLR2004 - HTTP's own border
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _chunk(answer: Answer, choices: list[JsonObject]) -> JsonObject:
    head = {"id": f"chatcmpl-{answer.id}", "object": "chat.completion.chunk", "created": CREATED}
    return {**head, "model": answer.request.model, "choices": choices}


def _usage(answer: Answer) -> JsonObject:
    total = answer.input_tokens + answer.output_tokens
    return {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens, "total_tokens": total}


OPENAI_CHAT: Final = WireFormat(_decode, _frames, _whole, fault)
