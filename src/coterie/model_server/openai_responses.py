"""OpenAI responses, as `POST /v1/responses` speaks them.

Nothing is stored, so each request carries its whole conversation.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Final, TypeAlias

from pydantic import BaseModel, JsonValue

from coterie.model_server.answer import Answer
from coterie.model_server.openai_chat import CREATED, fault
from coterie.model_server.request import Request, Said, Speaker
from coterie.model_server.script import Finish
from coterie.model_server.wire_format import Frame, JsonObject, Place, WireFormat, pieces, sse

_Event: TypeAlias = tuple[str, Place, JsonObject]
"""Name, place and body of an event."""

_INCOMPLETE: Final = {Finish.LENGTH: "max_output_tokens", Finish.CONTENT_FILTER: "content_filter"}


class _Item(BaseModel):
    type: str = "message"
    role: str = ""
    content: JsonValue = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: JsonValue = None

    @property
    def speaker(self) -> Speaker:
        """Who says it; calls and reasoning are an assistant's."""
        if self.type == "function_call_output":
            return Speaker.TOOL
        if self.type != "message":
            return Speaker.ASSISTANT
        return {"user": Speaker.USER, "assistant": Speaker.ASSISTANT}.get(self.role, Speaker.SYSTEM)

    @property
    def text(self) -> str:
        """What it says."""
        if self.type == "function_call":
            return f"{self.name} {self.arguments}"
        return _text(self.output if self.type == "function_call_output" else self.content)


class _Tool(BaseModel):
    name: str = ""


class _Body(BaseModel):
    model: str
    input: str | list[_Item]
    instructions: str | None = None
    tools: list[_Tool] | None = None
    stream: bool | None = False


def _decode(body: bytes) -> Request:
    asked = _Body.model_validate_json(body)
    items = [_Item(role="user", content=asked.input)] if isinstance(asked.input, str) else asked.input
    tool_of = {item.call_id: item.name for item in items if item.type == "function_call"}
    said = [Said(Speaker.SYSTEM, asked.instructions)] if asked.instructions else []
    for speaker, group in groupby(items, key=lambda item: item.speaker):
        if speaker is Speaker.ASSISTANT:
            # Text and calls of one answer are items of their own here.
            said.append(Said(speaker, "\n".join(item.text for item in group if item.text)))
        else:
            said += [Said(speaker, item.text, tool_of.get(item.call_id, "")) for item in group]
    tools = tuple(tool.name for tool in asked.tools or () if tool.name)
    return Request(model=asked.model, said=tuple(said), tools=tools, stream=bool(asked.stream))


def _text(content: JsonValue) -> str:
    match content:
        case str():
            return content
        case list():
            return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
        case _:
            return ""


def _frames(answer: Answer) -> Iterator[Frame]:
    for number, (name, place, body) in enumerate(_events(answer)):
        event = f"response.{name}"
        yield sse(place, {"type": event, "sequence_number": number, **body}, event)


def _events(answer: Answer) -> Iterator[_Event]:
    yield "created", Place.FRAMEWORK, {"response": _response(answer, [], "in_progress")}
    items = _items(answer)
    for index, item in enumerate(items):
        begun = {**item, **_EMPTY[str(item["type"])]}
        yield "output_item.added", Place.FRAMEWORK, {"output_index": index, "item": begun}
        at: JsonObject = {"output_index": index, "item_id": item["id"]}
        for name, place, body in _item_events(answer, item):
            yield name, place, {**at, **body}
        yield "output_item.done", Place.FRAMEWORK, {"output_index": index, "item": item}
    status = _status(answer)
    yield status, Place.CLOSING, {"response": _response(answer, items, status)}


def _item_events(answer: Answer, item: JsonObject) -> Iterator[_Event]:
    """Yield what comes between the announcement and the end of *item*."""
    match item["type"]:
        case "reasoning":
            at: JsonObject = {"summary_index": 0}
            part: JsonObject = {"type": "summary_text", "text": answer.thinking}
            yield "reasoning_summary_part.added", Place.FRAMEWORK, {**at, "part": {**part, "text": ""}}
            yield "reasoning_summary_text.delta", Place.CHUNK, {**at, "delta": answer.thinking}
            yield "reasoning_summary_text.done", Place.FRAMEWORK, {**at, "text": answer.thinking}
            yield "reasoning_summary_part.done", Place.FRAMEWORK, {**at, "part": part}
        case "message":
            at = {"content_index": 0}
            yield "content_part.added", Place.FRAMEWORK, {**at, "part": _part("")}
            for text in answer.chunks:
                yield "output_text.delta", Place.CHUNK, {**at, "delta": text, "logprobs": []}
            yield "output_text.done", Place.FRAMEWORK, {**at, "text": answer.text, "logprobs": []}
            yield "content_part.done", Place.FRAMEWORK, {**at, "part": _part(answer.text)}
        case _:
            arguments = str(item["arguments"])
            for piece in pieces(arguments):
                yield "function_call_arguments.delta", Place.CHUNK, {"delta": piece}
            done: JsonObject = {"name": item["name"], "arguments": arguments}
            yield "function_call_arguments.done", Place.FRAMEWORK, done


_EMPTY: Final[dict[str, JsonObject]] = {
    "reasoning": {"summary": []},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
}
"""What an item lacks when it is announced."""


def _whole(answer: Answer) -> JsonObject:
    return _response(answer, _items(answer), _status(answer) if answer.finished else "in_progress")


def _status(answer: Answer) -> str:
    return "incomplete" if answer.finish in _INCOMPLETE else "completed"


def _items(answer: Answer) -> list[JsonObject]:
    items: list[JsonObject] = []
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        items.append({"id": f"rs_{answer.id}", "type": "reasoning", "summary": summary})
    if answer.text:
        message: JsonObject = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
        items.append({**message, "status": "completed", "content": [_part(answer.text)]})
    for at, call in enumerate(answer.calls, 1):
        head: JsonObject = {"id": f"fc_{answer.id}_{at}", "type": "function_call", "status": "completed"}
        items.append({**head, "call_id": call.id, "name": call.tool, "arguments": call.arguments})
    return items


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response(answer: Answer, items: list[JsonObject], status: str) -> JsonObject:
    usage: JsonObject = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    reason = {"reason": _INCOMPLETE[answer.finish]} if status == "incomplete" else None
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": CREATED,
        "model": answer.request.model,
        "status": status,
        "error": None,
        "incomplete_details": reason,
        "instructions": None,
        "metadata": {},
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if status == "in_progress" else usage,
    }


OPENAI_RESPONSES: Final = WireFormat(_decode, _frames, _whole, fault)
