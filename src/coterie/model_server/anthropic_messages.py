"""Anthropic messages, as `POST /v1/messages` speaks them."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from pydantic import BaseModel, JsonValue

from coterie.model_server.answer import Answer, Call, to_json
from coterie.model_server.request import Request, Said, Speaker
from coterie.model_server.script import Finish
from coterie.model_server.wire_format import Frame, JsonObject, Place, WireFormat, pieces, sse

_STOP: Final = {
    Finish.STOP: "end_turn",
    Finish.LENGTH: "max_tokens",
    Finish.TOOL_CALLS: "tool_use",
    Finish.CONTENT_FILTER: "refusal",
}
_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_SIGNATURE: Final = "c2NyaXB0ZWQ="


class _Block(BaseModel):
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    input: JsonValue = None
    tool_use_id: str = ""
    content: JsonValue = None
    """Of a tool result: a text, or text blocks; other blocks have their own shapes."""


class _Message(BaseModel):
    role: str
    content: str | list[_Block]


class _Tool(BaseModel):
    name: str = ""


class _Body(BaseModel):
    model: str
    messages: list[_Message]
    system: str | list[_Block] | None = None
    tools: list[_Tool] | None = None
    stream: bool | None = False


def _decode(body: bytes) -> Request:
    asked = _Body.model_validate_json(body)
    blocks = [block for message in asked.messages for block in _blocks(message.content)]
    tool_of = {block.id: block.name for block in blocks if block.type == "tool_use"}
    system = _text(_blocks(asked.system))
    said = [Said(Speaker.SYSTEM, system)] if system else []
    for message in asked.messages:
        said += _said(message, tool_of)
    tools = tuple(tool.name for tool in asked.tools or ())
    return Request(model=asked.model, said=tuple(said), tools=tools, stream=bool(asked.stream))


def _said(message: _Message, tool_of: dict[str, str]) -> Iterator[Said]:
    blocks = _blocks(message.content)
    if message.role == "assistant":
        calls = [f"{block.name} {to_json(block.input)}" for block in blocks if block.type == "tool_use"]
        text = _text(blocks)
        yield Said(Speaker.ASSISTANT, "\n".join([text, *calls] if text else calls))
        return
    speaker = Speaker.USER if message.role == "user" else Speaker.SYSTEM
    for is_result, group in groupby(blocks, key=lambda block: block.type == "tool_result"):
        if is_result:
            yield from (Said(Speaker.TOOL, _result_text(block), tool_of.get(block.tool_use_id, "")) for block in group)
        else:
            yield Said(speaker, _text(list(group)))


def _blocks(content: str | list[_Block] | None) -> list[_Block]:
    return [_Block(type="text", text=content)] if isinstance(content, str) else content or []


def _text(blocks: list[_Block]) -> str:
    return "\n".join(block.text for block in blocks if block.type == "text" and block.text)


def _result_text(block: _Block) -> str:
    match block.content:
        case str() as text:
            return text
        case list() as parts:
            return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)
        case _:
            return ""


def _frames(answer: Answer) -> Iterator[Frame]:
    yield _event("message_start", {"message": _message(answer, [], None, 0)})
    yield _event("ping", {})
    index = 0
    if answer.thinking:
        yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
        yield _delta(index, {"type": "thinking_delta", "thinking": answer.thinking})
        yield _delta(index, {"type": "signature_delta", "signature": _SIGNATURE}, Place.FRAMEWORK)
        yield _event("content_block_stop", {"index": index})
        index += 1
    if answer.chunks:
        yield _start(index, {"type": "text", "text": ""})
        for text in answer.chunks:
            yield _delta(index, {"type": "text_delta", "text": text})
        yield _event("content_block_stop", {"index": index})
        index += 1
    for at, call in enumerate(answer.calls, index):
        yield _start(at, {"type": "tool_use", "id": _id(call), "name": call.tool, "input": {}})
        for piece in pieces(call.arguments):
            yield _delta(at, {"type": "input_json_delta", "partial_json": piece})
        yield _event("content_block_stop", {"index": at})
    stop: JsonObject = {"stop_reason": _STOP[answer.finish], "stop_sequence": None}
    yield _event("message_delta", {"delta": stop, "usage": {"output_tokens": answer.output_tokens}}, Place.CLOSING)
    yield _event("message_stop", {}, Place.CLOSING)


def _whole(answer: Answer) -> JsonObject:
    content: list[JsonObject] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": _SIGNATURE})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": _id(call), "name": call.tool, "input": _input(call)} for call in answer.calls
    ]
    stop = _STOP[answer.finish] if answer.finished else None
    return _message(answer, content, stop, answer.output_tokens)


def _fault(status: int, message: str) -> JsonObject:
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004 - HTTP's own border
    return {"type": "error", "error": {"type": kind, "message": message}}


def _event(name: str, body: JsonObject, place: Place = Place.FRAMEWORK) -> Frame:
    return sse(place, {"type": name, **body}, name)


def _start(index: int, block: JsonObject) -> Frame:
    return _event("content_block_start", {"index": index, "content_block": block})


def _delta(index: int, delta: JsonObject, place: Place = Place.CHUNK) -> Frame:
    return _event("content_block_delta", {"index": index, "delta": delta}, place)


def _message(answer: Answer, content: list[JsonObject], stop: str | None, output_tokens: int) -> JsonObject:
    usage = {"input_tokens": answer.input_tokens, "output_tokens": output_tokens}
    head = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "model": answer.request.model}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _id(call: Call) -> str:
    return call.id.replace("call_", "toolu_", 1)


def _input(call: Call) -> object:
    # Without a stream the arguments must be JSON, so broken ones are shown the way that pydantic-ai sends them back.
    try:
        return json.loads(call.arguments)
    except ValueError:
        return {"INVALID_JSON": call.arguments}


ANTHROPIC_MESSAGES: Final = WireFormat(_decode, _frames, _whole, _fault)
