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


HELLO = {
    "openai-chat": Answer((chat({"role": "assistant", "content": "Hel"}), chat({"content": "lo"}, "stop"), CHAT_END)),
    "anthropic": Answer((START, text_block(0, "Hel", "lo"), stop("end_turn"))),
    "google": Answer((gemini({"text": "Hel"}), gemini({"text": "lo"}, finish="STOP"), GEMINI_USAGE)),
}
