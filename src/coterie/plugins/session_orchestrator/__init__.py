"""The official plugin: `session_task`, with which an agent works together with other sessions.

It is also the example for authors: it composes gateway operations, keeps no truth of its own, and answers faults as
text that the model can act on. `arguments` has what a model may write, `actions` what is done then, each as a table;
here both become a tool, and the tool is offered to the host.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from coterie.core.errors import HostError, InvalidArgumentError
from coterie.core.permission import Risk
from coterie.plugins.gateway import Gateway
from coterie.plugins.hooks import hookimpl
from coterie.plugins.session_orchestrator.actions import ACTIONS, Call, fault
from coterie.plugins.session_orchestrator.arguments import PARAMETERS, echo, meant
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, Invocation, Tool, ToolOutput

OPERATIONS: Final = frozenset(
    {
        "collaboration.accept",
        "collaboration.cancel",
        "collaboration.list",
        "collaboration.message",
        "collaboration.result",
        "collaboration.send",
        "collaboration.spawn",
        "collaboration.status",
        "collaboration.wait",
        "models.list",
    }
)
"""What the plugin declares to need; the host lets it ask for nothing else."""

_SPEC: Final = ToolSpec(
    "session_task",
    "Work together with other durable sessions. Actions: "
    + "; ".join(f"{name}{{{action.signature}}} {action.says}" for name, action in ACTIONS.items())
    + ". spawn, send and supervise answer at once with a messageId: wait for it before you answer from it.",
    {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": list(ACTIONS)}, **PARAMETERS},
        "required": ["action"],
        "additionalProperties": False,
    },
)


class SessionTask:
    """The tool `session_task`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def spec(self) -> ToolSpec:
        """See `Tool`."""
        return _SPEC

    def risk(self, arguments: Mapping[str, object]) -> Risk:
        """Low for every action: ceiling and chain bound what the other session may do."""
        del arguments
        return Risk.LOW

    async def about(self, invocation: Invocation, arguments: Mapping[str, object]) -> About:
        """The action and whom it concerns, so that a rule can refuse `session_task(spawn*)`."""
        del invocation
        return About(" ".join(str(arguments[name]) for name in ("action", "sessionId") if arguments.get(name)))

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """See `Tool`."""
        try:
            name = _named(arguments.get("action"))
            given = ACTIONS[name].form.read(name, arguments)
            answer = await ACTIONS[name].perform(Call(self._gateway, invocation, given))
        except HostError as error:
            return ToolOutput(json.dumps({"error": fault(error)}, ensure_ascii=False), error=True)
        return ToolOutput(json.dumps(answer.body, ensure_ascii=False), shows=answer.tells)


def _named(given: object) -> str:
    if isinstance(given, str) and given in ACTIONS:
        return given
    known = f"action {echo(repr(given))} is not one of {', '.join(ACTIONS)}."
    raise InvalidArgumentError(known + meant(str(given), tuple(ACTIONS)))


@hookimpl
def coterie_tools(gateway: Gateway) -> Sequence[Tool]:
    """Offer `session_task`."""
    return [SessionTask(gateway)]
