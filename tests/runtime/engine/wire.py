"""What a request to a model carries, whichever of the wires it is written for."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from coterie.core.text import is_blank

WIRES: Final = {"openai-chat": "/v1", "anthropic": ""}
"""The wires that both hosts and the scripted server speak, each with what follows the server's address."""


def mute(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The assistant messages without visible text and without a call: there is no request that may carry one."""
    return [
        message
        for message in request["messages"]
        if message["role"] == "assistant" and not message.get("tool_calls") and not _speaks(message.get("content"))
    ]


def _speaks(content: str | Sequence[Mapping[str, Any]] | None) -> bool:
    if content is None or isinstance(content, str):
        return not is_blank(content or "")
    return any(block["type"] == "tool_use" or not is_blank(block.get("text", "")) for block in content)


def told(request: Mapping[str, Any]) -> str:
    """The system instructions."""
    found = [request.get("system", ""), *(one["content"] for one in request["messages"] if one["role"] == "system")]
    return "\n".join(text_of(content) for content in found)


def spoken(request: Mapping[str, Any], role: str) -> list[str]:
    """The texts of all messages of a role."""
    return [text_of(message.get("content")) for message in request["messages"] if message["role"] == role]


def text_of(content: object) -> str:
    """The text of a message, of which either wire may make blocks."""
    if not isinstance(content, list):
        return cast("str", content or "")
    blocks = cast("list[dict[str, Any]]", content)
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")
