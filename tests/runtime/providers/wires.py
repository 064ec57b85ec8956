"""The frames that vendors send, and the shortest whole answer of each wire: eleven tokens in, seven out."""

import json
from typing import Any

from tests.runtime.providers.vendor import GEMINI_USAGE, Answer, gemini


def chat(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "script-1", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


def chat_call(name: str, arguments: str) -> str:
    return chat({"tool_calls": [{"index": 0, "id": "call-1", "function": {"name": name, "arguments": arguments}}]})


CHAT_USAGE = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "script-1",
        "choices": [],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
)
CHAT_END = f"data: {CHAT_USAGE}\n\ndata: [DONE]\n\n"


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> str:
    events = [event("content_block_start", index=index, content_block=start)]
    events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return "".join([*events, event("content_block_stop", index=index)])


MESSAGE: dict[str, Any] = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "script-1",
    "content": [],
    "stop_reason": None,
}
START = event("message_start", message=MESSAGE | {"usage": {"input_tokens": 11, "output_tokens": 1}})


def text_block(index: int, *texts: str) -> str:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in texts))


def stop(reason: str) -> str:
    delta = event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 7})
    return delta + event("message_stop")


def response(status: str, **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }
    known: dict[str, Any] = {"id": "r1", "object": "response", "created_at": 1, "model": "script-1"}
    known |= {"output": [], "tools": []}
    return known | {"status": status, "usage": usage if status != "in_progress" else None} | fields


CREATED = event("response.created", sequence_number=0, response=response("in_progress"))


def said(*texts: str, kind: str = "output_text") -> str:
    """Pieces of a message, or of a refusal."""
    place: dict[str, Any] = {"item_id": "msg-1", "output_index": 0, "content_index": 0}
    place |= {"logprobs": [], "sequence_number": 1}
    return "".join(event(f"response.{kind}.delta", delta=text, **place) for text in texts)


def item(index: int, **fields: Any) -> str:
    """An item that is there at once."""
    place: dict[str, Any] = {"output_index": index, "sequence_number": 2}
    added = event("response.output_item.added", item=fields, **place)
    return added + event("response.output_item.done", item=fields, **place)


def reasoned(index: int, text: str, sealed: str) -> str:
    """A summary of what was thought, and the thought itself as only the vendor can read it."""
    place: dict[str, Any] = {"item_id": "rs-1", "output_index": index, "summary_index": 0, "sequence_number": 2}
    begun: dict[str, Any] = {"type": "reasoning", "id": "rs-1", "summary": []}
    ended = begun | {"summary": [{"type": "summary_text", "text": text}], "encrypted_content": sealed}
    part = {"type": "summary_text", "text": ""}
    return "".join(
        [
            event("response.output_item.added", item=begun, output_index=index, sequence_number=2),
            event("response.reasoning_summary_part.added", part=part, **place),
            event("response.reasoning_summary_text.delta", delta=text, **place),
            event("response.output_item.done", item=ended, output_index=index, sequence_number=2),
        ]
    )


def called(index: int, name: str, arguments: str) -> str:
    return item(index, type="function_call", id="fc-1", call_id="call-1", name=name, arguments=arguments)


def closing(status: str = "completed", **fields: Any) -> str:
    return event(f"response.{status}", sequence_number=9, response=response(status, **fields))


HELLO = {
    "openai-responses": Answer((CREATED, said("Hel", "lo"), closing())),
    "openai-chat": Answer((chat({"role": "assistant", "content": "Hel"}), chat({"content": "lo"}, "stop"), CHAT_END)),
    "anthropic": Answer((START, text_block(0, "Hel", "lo"), stop("end_turn"))),
    "google": Answer((gemini({"text": "Hel"}), gemini({"text": "lo"}, finish="STOP"), GEMINI_USAGE)),
}
