"""What a request to a model carries, whichever of the wires it is written for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, cast

from coterie.core.text import is_blank

WIRES: Final = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": ""}
"""The wires that both hosts and the scripted server speak, each with what follows the server's address."""
_RESULT: Final = "function_call_output"


def messages(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request; what an assistant says in items of its own is one of them."""
    if "messages" in request:
        return cast("list[dict[str, Any]]", request["messages"])
    return list(_joined(request["input"]))


def _joined(items: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for role, group in groupby(items, _role):
        if role != "assistant":
            yield from ({"role": role, "content": one.get("output", one.get("content"))} for one in group)
            continue
        said = list(group)
        texts = [text_of(one["content"]) for one in said if "content" in one]
        calls = [one for one in said if one.get("type") == "function_call"]
        yield {"role": role, "content": "".join(texts), "tool_calls": calls}


def _role(item: Mapping[str, Any]) -> str:
    return "tool" if item.get("type") == _RESULT else str(item.get("role", "assistant"))


def mute(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The assistant messages without visible text and without a call: there is no request that may carry one."""
    return [
        message
        for message in messages(request)
        if message["role"] == "assistant" and not message.get("tool_calls") and not _speaks(message.get("content"))
    ]


def _speaks(content: str | Sequence[Mapping[str, Any]] | None) -> bool:
    if content is None or isinstance(content, str):
        return not is_blank(content or "")
    return any(block["type"] == "tool_use" or not is_blank(block.get("text", "")) for block in content)


def told(request: Mapping[str, Any]) -> str:
    """The system instructions."""
    found = [request.get("system", ""), request.get("instructions", "")]
    found += [one["content"] for one in messages(request) if one["role"] == "system"]
    return "\n".join(text_of(content) for content in found)


def spoken(request: Mapping[str, Any], role: str) -> list[str]:
    """The texts of all messages of a role."""
    return [text_of(message.get("content")) for message in messages(request) if message["role"] == role]


def text_of(content: object) -> str:
    """The text of a message, of which each wire may make blocks."""
    if not isinstance(content, list):
        return cast("str", content or "")
    blocks = cast("list[dict[str, Any]]", content)
    return "\n".join(block["text"] for block in blocks if block["type"] in {"text", "output_text", "input_text"})
