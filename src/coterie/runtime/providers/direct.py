"""Models over HTTP and server-sent events, through one request of the chosen library and nothing else of it.

Importing this module loads the SDKs of the vendors, which takes a second: `bootstrap` does it in a thread.
"""

import asyncio
import importlib
from collections.abc import Callable
from typing import Final

import httpx2
from pydantic import ValidationError
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings, ThinkingLevel
from pydantic_ai.tools import ToolDefinition

from coterie.core.model_ref import Binding
from coterie.core.text import mend
from coterie.core.thinking import Thinking
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.ports.model_provider import ModelRequest, ToolSpec
from coterie.runtime.providers import _faults, _history
from coterie.runtime.providers._line import Line

_LINES: Final = {
    "openai-chat": "_openai",
    "openai-responses": "_openai_responses",
    "anthropic": "_anthropic",
    "google": "_google",
}
"""The module that speaks each api."""
_THINKING: Final[dict[Thinking, ThinkingLevel]] = {
    Thinking.OFF: False,
    Thinking.LOW: "low",
    Thinking.MEDIUM: "medium",
    Thinking.HIGH: "high",
}
"""The library's word for each level, from which it makes each wire's own parameter."""


class DirectProvider:
    """Speaks OpenAI's two protocols, Anthropic's and Gemini's, with one client for each binding until it is closed.

    Args:
        connect_timeout_s: How long a connection may take.
        idle_timeout_s: How long a vendor may send nothing while it answers.
    """

    def __init__(self, *, connect_timeout_s: float = 15.0, idle_timeout_s: float = 300.0) -> None:
        self._timeout = httpx2.Timeout(idle_timeout_s, connect=connect_timeout_s)
        self._lines: dict[tuple[str, str | None], Line] = {}
        self._opening = asyncio.Lock()

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """Send one request, once, and return what came of it; faults of the vendor are values.

        A cancelled call closes its connection before it ends.
        """
        binding = request.binding
        unfit = _faults.unfit_key(binding)
        if unfit is not None:
            return unfit
        line, shown = await self._line(binding), _ShownText(on_text, split_by_blank_line=binding.api == "anthropic")
        stream = model_request_stream(
            line.model,
            _history.messages(request),
            model_settings=_settings(request),
            model_request_parameters=ModelRequestParameters(function_tools=[_tool(spec) for spec in request.tools]),
        )
        try:
            async with stream as events:
                async for event in events:
                    shown.take(event)
                response = events.get()
        except (ModelAPIError, UnexpectedModelBehavior, ValidationError, httpx2.HTTPError) as error:
            return _faults.fault(error, binding, shown.text)
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
            # The SDKs trust the shape of what a vendor sends; a frame of another shape breaks them in these ways.
            return _faults.interrupted(binding, shown.text, f"it sent what cannot be read ({type(error).__name__})")
        return _settled(response, binding, shown)

    async def close(self) -> None:
        """Close the connections."""
        while self._lines:
            _, line = self._lines.popitem()
            await line.close()

    async def _line(self, binding: Binding) -> Line:
        key = (binding.identity, binding.api_key)
        if key not in self._lines:
            async with self._opening:
                if key not in self._lines:
                    # In a thread: a client reads the certificates of this machine, and an SDK may have to be loaded.
                    self._lines[key] = await asyncio.to_thread(_open, binding, self._timeout)
        return self._lines[key]


def _open(binding: Binding, timeout: httpx2.Timeout) -> Line:
    # Each vendor's SDK takes long to load, and some are extras: a host loads those that it speaks to.
    line: Line = importlib.import_module(f"coterie.runtime.providers.{_LINES[binding.api]}").open_line(binding, timeout)
    return line


class _ShownText:
    """The visible text of an answer, passed on as it arrives.

    Anthropic sends paragraphs around reasoning as blocks of their own; the other wires send one text with its white
    space.
    """

    def __init__(self, on_text: Callable[[str], None], *, split_by_blank_line: bool) -> None:
        self._on_text, self._split = on_text, split_by_blank_line
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def take(self, event: ModelResponseStreamEvent) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                self.add(f"\n\n{text}" if self._split and self._pieces else text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self.add(text)
            case _:
                pass

    def add(self, text: str) -> None:
        if text:
            self._pieces.append(mend(text))
            self._on_text(self._pieces[-1])


def _settings(request: ModelRequest) -> ModelSettings:
    # The loop retries, by its own rules; the SDKs would ask twice more in silence.
    settings = ModelSettings(max_retries=0)
    if request.thinking is not None:
        settings["thinking"] = _THINKING[request.thinking]
    return settings


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name, description=spec.description, parameters_json_schema=dict(spec.parameters), strict=False
    )


def _settled(response: ModelResponse, binding: Binding, shown: _ShownText) -> Replied | ModelFailed:
    """Return the reply, if the vendor said that it is one.

    The library's own `finish_reason` does not tell: it is filled in when the vendor sent none.
    """
    details = response.provider_details or {}
    refusal, blocked = details.get("refusal"), details.get("block_reason")
    reason = str(details.get("finish_reason") or blocked)
    refused = refusal is not None and response.state != "incomplete"
    if "finish_reason" not in details and not refused and blocked is None:
        return _faults.interrupted(binding, shown.text)
    if response.finish_reason == "error":
        return _faults.interrupted(binding, shown.text, f"the provider ended it with {reason}")
    if isinstance(refusal, str):
        shown.add(refusal)
    reply = _history.reply(response, shown.text, binding)
    if response.finish_reason == "content_filter" and not reply.text and not reply.calls:
        return _faults.withheld(binding, reason)
    return Replied(reply)
