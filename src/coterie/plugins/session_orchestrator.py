"""The official plugin: `session_task`, with which an agent works together with other sessions.

It is also the example for authors: it composes gateway operations, keeps no truth of its own, and answers faults as
text that the model can act on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from coterie.core.errors import HostError, InvalidArgumentError
from coterie.core.ids import MessageId
from coterie.core.ledger.states import SETTLED
from coterie.core.permission import Risk
from coterie.core.text import head_and_tail, nearest
from coterie.plugins.gateway import Gateway
from coterie.plugins.hooks import hookimpl
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import Invocation, Tool, ToolOutput

RESULTS_CHARS_MAX: Final = 20_000
"""Characters that the results of one wait share."""
_STRING: Final = {"type": "string"}


@dataclass(frozen=True, slots=True)
class _Action:
    operation: str
    takes: Mapping[str, str]
    """The tool's parameters, and what the operation calls them."""
    needs: tuple[str, ...] = ()


_ACTIONS: Final[dict[str, _Action]] = {
    "spawn": _Action(
        "collaboration.spawn",
        {
            "task": "content",
            "title": "title",
            "model": "model",
            "notifyOnCompletion": "notifyOnCompletion",
            "idempotencyKey": "idempotencyKey",
        },
        ("task",),
    ),
    "send": _Action(
        "collaboration.send",
        {
            "sessionId": "sessionId",
            "message": "content",
            "kind": "kind",
            "notifyOnCompletion": "notifyOnCompletion",
            "idempotencyKey": "idempotencyKey",
        },
        ("sessionId", "message"),
    ),
    "status": _Action("collaboration.status", {"sessionId": "sessionId"}, ("sessionId",)),
    "result": _Action(
        "collaboration.result",
        {"sessionId": "sessionId", "messageId": "messageId", "turnId": "turnId"},
        ("sessionId",),
    ),
    "wait": _Action(
        "collaboration.wait", {"messageIds": "messageIds", "mode": "mode", "timeoutMs": "timeoutMs"}, ("messageIds",)
    ),
    "cancel": _Action("collaboration.cancel", {"sessionId": "sessionId", "messageId": "messageId"}, ("sessionId",)),
    "list": _Action("collaboration.list", {"cursor": "cursor", "limit": "limit"}),
}

OPERATIONS: Final = frozenset(action.operation for action in _ACTIONS.values())
"""What the plugin declares to need."""

_SPEC: Final = ToolSpec(
    "session_task",
    "Work together with other durable sessions. Actions: spawn{task, title?, model?} makes a session that works on the "
    "task in this project; send{sessionId, message, kind?} writes to a session that is there; wait{messageIds, mode?} "
    "sleeps until they have settled and returns their results; result{sessionId, messageId?}; status{sessionId}; "
    "cancel{sessionId, messageId?}; list{}. spawn and send answer at once with a messageId: wait for it before you "
    "answer from it.",
    {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": list(_ACTIONS)},
            "task": _STRING,
            "title": _STRING,
            "model": _STRING,
            "sessionId": _STRING,
            "message": _STRING,
            "kind": {"type": "string", "enum": ["message", "task"]},
            "notifyOnCompletion": {"type": "boolean"},
            "messageId": _STRING,
            "messageIds": {"type": "array", "items": _STRING},
            "turnId": _STRING,
            "mode": {"type": "string", "enum": ["all", "any"]},
            "timeoutMs": {"type": "integer", "minimum": 0},
            "idempotencyKey": _STRING,
            "cursor": _STRING,
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        },
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

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """See `Tool`."""
        try:
            action, params = _decoded(arguments)
            answer = await self._gateway.call(invocation, action.operation, params)
        except HostError as error:
            fault = {"code": error.code.value, "message": str(error), **error.detail()}
            return ToolOutput(json.dumps({"error": fault}, ensure_ascii=False), error=True)
        _fit(answer)
        return ToolOutput(json.dumps(answer, ensure_ascii=False), shows=tuple(_shown(action.operation, answer)))


def _decoded(arguments: Mapping[str, object]) -> tuple[_Action, dict[str, object]]:
    """Return the action and the operation's parameters; empty strings count as absent."""
    given = {name: value for name, value in arguments.items() if value not in ("", None) and name != "action"}
    name = arguments.get("action")
    action = _ACTIONS.get(name) if isinstance(name, str) else None
    if action is None:
        near = nearest(str(name), list(_ACTIONS), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidArgumentError(f"action {name!r} is not one of {', '.join(_ACTIONS)}.{hint}")
    missing = [needed for needed in action.needs if needed not in given]
    if missing:
        raise InvalidArgumentError(f"{name} needs {', '.join(missing)}.")
    unknown = [extra for extra in given if extra not in action.takes]
    if unknown:
        raise InvalidArgumentError(f"{name} does not take {', '.join(unknown)}; it takes {', '.join(action.takes)}.")
    return action, {action.takes[key]: value for key, value in given.items()}


def _fit(answer: dict[str, Any]) -> None:
    """Shorten the results of a wait so that all of them fit into what a model is shown; `result` has each whole."""
    rows: list[dict[str, Any]] = [row for row in answer.get("messages", ()) if row.get("result")]
    for row in rows:
        row["result"], shortened = head_and_tail(row["result"], RESULTS_CHARS_MAX // len(rows))
        if shortened:
            row["truncated"] = True


def _shown(operation: str, answer: Mapping[str, Any]) -> list[MessageId]:
    """The messages whose settled outcome the answer shows."""
    rows: list[Any] = []
    if operation == "collaboration.wait":
        rows = answer["messages"]
    elif operation == "collaboration.result" and answer.get("message"):
        rows = [answer["message"]]
    return [MessageId(row["id"]) for row in rows if row["status"] in SETTLED]


@hookimpl
def coterie_tools(gateway: Gateway) -> Sequence[Tool]:
    """Offer `session_task`."""
    return [SessionTask(gateway)]
