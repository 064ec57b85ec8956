"""Performs the effects of the agent loop: asks models and runs tools.

What comes back is a value in every case; a fault of a tool is a result that the model can read.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from coterie.core.ids import MessageId
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.core.permission import Decision, Mode, decide, least, resolve
from coterie.core.session.session import Session
from coterie.core.text import head_and_tail, mend, nearest
from coterie.core.turn.context import shown
from coterie.core.turn.instructions import instructions
from coterie.core.turn.items import Item, ToolCall, ToolResult
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.core.turn.turn import Turn
from coterie.operations.invocations import Invocations
from coterie.ports.clock import Clock
from coterie.ports.feed import Delta, Feed
from coterie.ports.model_provider import ModelProvider, ModelRequest
from coterie.ports.store import Store
from coterie.ports.tool import Tool, ToolOutput

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """What turns are run with."""

    store: Store
    feed: Feed
    clock: Clock
    invocations: Invocations
    models: Sequence[Binding]
    provider: ModelProvider
    tools: Mapping[str, Tool]
    limits: Limits
    permission_default: Mode
    model_hint: str
    """What to tell a person who has configured no model."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A running turn as it is now."""

    turn: Turn
    session: Session

    def mode(self, default: Mode) -> Mode:
        """What a tool call may do: lowering the session acts at once, raising it does not reach a running turn."""
        return least([self.turn.permission, resolve(self.session.permission_mode, default)])


@dataclass(frozen=True, slots=True)
class CallDone:
    """One tool call with its result."""

    result: ToolResult
    shows: tuple[MessageId, ...] = ()


async def ask(
    parts: RuntimeParts, scene: Scene, binding: Binding, items: Sequence[Item], *, instruction: str | None
) -> Replied | ModelFailed:
    """Send one request; its text is shown live as it arrives."""
    turn = scene.turn

    def show(text: str) -> None:
        parts.feed.publish(Delta(turn.session_id, turn.id, text))

    request = ModelRequest(
        binding,
        instructions(scene.session, scene.mode(parts.permission_default), instruction),
        shown(items),
        tuple(tool.spec for tool in parts.tools.values()),
    )
    return await parts.provider.ask(request, show)


async def call_tool(parts: RuntimeParts, scene: Scene, call: ToolCall) -> CallDone:
    """Run one call, if the turn's permission lets it run without a person."""
    tool = parts.tools.get(call.name)
    if tool is None:
        near = ", ".join(nearest(call.name, list(parts.tools), 3)) or ", ".join(parts.tools)
        return _refused(call, f"There is no tool {call.name!r}. Available: {near}.")
    arguments = _object(call.arguments)
    if arguments is None:
        return _refused(call, "The arguments are not one JSON object; call the tool again with valid JSON.")
    mode = scene.mode(parts.permission_default)
    try:
        risk = tool.risk(arguments)
    except Exception as error:  # noqa: BLE001 - a tool that cannot tell its risk is not run
        return _refused(call, f"The tool cannot tell its risk: {type(error).__name__}: {error}")
    if decide(mode, risk) is Decision.ASK:
        return _refused(
            call,
            f"Denied: {call.name} has risk {risk.value!r}, which needs a person's approval in mode {mode.value!r}, and "
            "no person can be asked in this turn. Go on without it, or say in your answer what you would have done.",
        )
    turn = scene.turn
    with parts.invocations.live(turn.session_id, turn.id, call.id, scene.session.project_path) as invocation:
        try:
            output = await tool.run(invocation, arguments)
        except Exception as error:  # noqa: BLE001 - whatever a tool does, the turn goes on and its model is told
            _LOG.exception("tool %s failed in turn %s", call.name, turn.id)
            output = ToolOutput(f"The tool failed: {type(error).__name__}: {error}", error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The tool cancelled something of its own and let it out: that ends its call, not the turn.
            output = ToolOutput("The tool was cancelled from within.", error=True)
    text, cut = head_and_tail(mend(output.text), parts.limits.tool_result_chars_max)
    # What was cut out was not shown, so its notice still has something to tell.
    return CallDone(ToolResult(call.id, call.name, text, output.error), () if cut else output.shows)


def _refused(call: ToolCall, text: str) -> CallDone:
    return CallDone(ToolResult(call.id, call.name, text, error=True))


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
