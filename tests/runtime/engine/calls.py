"""Calls of `session_task` as a running turn makes them, without a model that has to say them."""

import json
from typing import Any, Final

from tests.runtime.engine.conftest import Stage

from coterie.core.turn.turn import Turn
from coterie.plugins.gateway import Gateway
from coterie.plugins.loader import load_tools
from coterie.plugins.session_orchestrator import OPERATIONS
from coterie.ports.tool import Invocation, ToolOutput

HANG: Final = "- {reply: {hang: true}}\n"


async def running(host: Stage, model: str = "lead", *, mode: str = "ask") -> Turn:
    """A turn of a new session, which runs until the host ends if its model hangs."""
    session = await host.session(model, mode=mode)
    await host.prompt(session, "go")
    return await host.last_turn(session)


def gateway(host: Stage, declared: frozenset[str] = OPERATIONS) -> Gateway:
    """The way of a plugin of its own to the host."""
    return Gateway(host.engine.operations, declared, "test")


async def call(host: Stage, invocation: Invocation, **arguments: object) -> ToolOutput:
    """Call the tool as it was loaded."""
    return await load_tools(host.engine.operations, {})["session_task"].run(invocation, arguments)


async def told(host: Stage, invocation: Invocation, **arguments: object) -> dict[str, Any]:
    """Call the tool, and return what it answers."""
    output = await call(host, invocation, **arguments)
    answer: dict[str, Any] = json.loads(output.text)
    assert not output.error, answer
    return answer


async def refused(host: Stage, invocation: Invocation, **arguments: object) -> dict[str, Any]:
    """Call the tool, and return the fault that it answers."""
    output = await call(host, invocation, **arguments)
    assert output.error, output.text
    fault: dict[str, Any] = json.loads(output.text)["error"]
    return fault
