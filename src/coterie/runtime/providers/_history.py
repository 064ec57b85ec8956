"""A context as the messages of the chosen library, and its answer as a reply.

What a provider alone can read (signatures, ids, its own reasoning) travels as JSON in `Reply.state`, and goes back only
to the binding that made it. Everybody else gets text and tool calls.
"""

import json
from dataclasses import replace
from typing import Final, cast

from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage
from pydantic_core import PydanticSerializationError

from coterie.core.model_price import own_cost
from coterie.core.model_ref import Binding
from coterie.core.text import is_blank, mend
from coterie.core.turn.context import UserPart
from coterie.core.turn.items import Reply, ToolCall, ToolResult, Usage
from coterie.ports import model_provider
from coterie.runtime.providers.price_table import listed_cost

_TAGGED: Final = "content"
"""The id that the library gives to reasoning that stood in tags inside the text: no field of the provider's."""


def messages(request: model_provider.ModelRequest) -> list[ModelMessage]:
    """Return the context of *request* as alternating requests and responses, the last one with the instructions."""
    found: list[ModelMessage] = []
    side: list[ModelRequestPart] = []
    for item in request.context:
        match item:
            case UserPart(text):
                side.append(UserPromptPart(text))
            case ToolResult():
                outcome = "failed" if item.error else "success"
                side.append(ToolReturnPart(item.name, _answer(item, request), item.call_id, outcome=outcome))
            case _:
                if side:
                    found.append(ModelRequest(side))
                    side = []
                found.append(_response(item, request.binding))
    return [*found, ModelRequest(side, instructions=request.instructions or None)]


def _answer(result: ToolResult, request: model_provider.ModelRequest) -> str | list[str | BinaryContent]:
    """What a tool answered; the library brings an image to where the vendor takes one."""
    image = result.image
    if image is None:
        return result.text
    return [result.text, BinaryContent(request.images[image.ref], media_type=image.media_type)]


def reply(response: ModelResponse, text: str, binding: Binding) -> Reply:
    """Return *response* as a reply that shows *text*."""
    thoughts = (part.content for part in response.parts if isinstance(part, ThinkingPart))
    return Reply(
        text,
        calls=tuple(_call(part) for part in response.parts if isinstance(part, ToolCallPart)),
        thinking=mend("\n\n".join(thought for thought in thoughts if thought)),
        binding=binding.identity,
        state=_state(response),
        usage=_usage(response, binding),
    )


def _call(part: ToolCallPart) -> ToolCall:
    arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)
    return ToolCall(mend(part.tool_call_id), mend(part.tool_name), mend(arguments) or "{}")


def _usage(response: ModelResponse, binding: Binding) -> Usage:
    """No request costs no tokens, so zero means that the provider did not count."""
    read, written = response.usage.input_tokens or None, response.usage.output_tokens or None
    if binding.has_prices:
        return Usage(read, written, own_cost(binding, read, written))
    return Usage(read, written, listed_cost(binding, response))


def _state(response: ModelResponse) -> str | None:
    if not any(_is_opaque(part) for part in response.parts):
        return None
    kept = replace(response, usage=RequestUsage())
    try:
        return ModelMessagesTypeAdapter.dump_json([kept]).decode()
    except PydanticSerializationError:
        # A lone surrogate is no text; without its state the answer still goes back as text and tool calls.
        return None


def _is_opaque(part: ModelResponsePart) -> bool:
    match part:
        case ThinkingPart(id=identifier, signature=signature):
            return identifier != _TAGGED or signature is not None
        case TextPart() | ToolCallPart():
            return part.id is not None or part.provider_details is not None
        case _:
            return True


def _response(item: Reply, binding: Binding) -> ModelResponse:
    kept = _kept(item.state) if item.state is not None and item.binding == binding.identity else None
    if kept is not None:
        return replace(kept, parts=[_sendable(part) for part in kept.parts if _is_opaque(part) or _says(part)])
    # Blank text beside a call is refused by some vendors, and says nothing to any.
    text = [] if is_blank(item.text) else [TextPart(item.text)]
    calls = [ToolCallPart(call.name, _arguments(call.arguments), call.id) for call in item.calls]
    return ModelResponse([*text, *calls])


def _kept(state: str) -> ModelResponse | None:
    """Return what *state* holds, or None when another version of the library wrote it in another form."""
    try:
        (kept,) = ModelMessagesTypeAdapter.validate_json(state)
    except (ValidationError, ValueError):
        return None
    return kept if isinstance(kept, ModelResponse) else None


def _says(part: ModelResponsePart) -> bool:
    """Whether *part* is something that the next request has to hold."""
    return not isinstance(part, ThinkingPart) and not (isinstance(part, TextPart) and is_blank(part.content))


def _sendable(part: ModelResponsePart) -> ModelResponsePart:
    if isinstance(part, ToolCallPart) and isinstance(part.args, str):
        return replace(part, args=_arguments(part.args))
    return part


def _arguments(text: str) -> dict[str, object]:
    """Return arguments that every provider accepts: an object, with what was broken inside it."""
    try:
        found: object = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {"invalid": text}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {"invalid": text}
