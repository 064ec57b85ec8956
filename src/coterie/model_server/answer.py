"""A reply with its slots filled, before a wire format encodes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from coterie.model_server.request import Request
from coterie.model_server.script import CallPlan, Ending, Finish, Speech
from coterie.model_server.template import fill_shape


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as it goes out."""

    id: str
    tool: str
    arguments: str
    """JSON text, unless the script wants it broken."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer with every slot filled: what the wire formats encode."""

    id: str
    request: Request
    speech: Speech
    """How it is paced, and how it ends."""
    thinking: str
    chunks: tuple[str, ...]
    calls: tuple[Call, ...]
    finish: Finish
    input_tokens: int
    output_tokens: int

    @property
    def finished(self) -> bool:
        """Whether a finish reason is sent."""
        return self.speech.ending is Ending.FINISHED

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.chunks)


def answer(speech: Speech, request: Request, values: Mapping[str, str], nonce: str) -> Answer:
    """Return what *speech* says to *request*.

    Args:
        speech: The reply.
        request: What is asked.
        values: What the rule took from the request.
        nonce: Text that no other answer has; ids are made of it.
    """
    chunks = tuple(text for text in (chunk.fill(values) for chunk in speech.chunks) if text)
    if speech.chunk_chars is not None:
        chunks = _split("".join(chunks), speech.chunk_chars)
    calls = tuple(
        Call(f"call_{nonce}_{at}", plan.tool.fill(values), _arguments(plan, values))
        for at, plan in enumerate(speech.calls, 1)
    )
    thinking = "" if speech.thinking is None else speech.thinking.fill(values)
    said = sum(map(len, chunks)) + len(thinking) + sum(len(call.tool) + len(call.arguments) for call in calls)
    usage = speech.usage
    return Answer(
        id=nonce,
        request=request,
        speech=speech,
        thinking=thinking,
        chunks=chunks,
        calls=calls,
        finish=speech.finish or (Finish.TOOL_CALLS if calls else Finish.STOP),
        input_tokens=_tokens(request.chars) if usage.input_tokens is None else usage.input_tokens,
        output_tokens=_tokens(said) if usage.output_tokens is None else usage.output_tokens,
    )


def to_json(value: object) -> str:
    """Return *value* as compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _arguments(plan: CallPlan, values: Mapping[str, str]) -> str:
    if plan.arguments_text is not None:
        return plan.arguments_text.fill(values)
    return to_json(fill_shape(plan.arguments, values))


def _split(text: str, chars: int) -> tuple[str, ...]:
    return tuple(text[at : at + chars] for at in range(0, len(text), chars))


def _tokens(chars: int) -> int:
    return -(-chars // 4)
