"""Models that say whatever chance says: words, calls, nothing, or that they are not well."""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from tests.simulation.host.chance import Chance
from tests.simulation.host.chronicle import Chronicle
from tests.simulation.host.witness import HostWitness

from coterie.core.codes import Code
from coterie.core.turn.items import Reply, ToolCall, ToolResult, Usage
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.ports.clock import Clock
from coterie.ports.model_provider import ModelRequest

SESSIONS_MAX: Final = 7
TAKES_S: Final = (0.0, 0.01, 0.1, 0.1, 0.5, 2.0)
SLOW_S: Final = 20.0
USAGES: Final = (Usage(), Usage(3, 3), Usage(30, 30), Usage(5, 5, 0), Usage(5, 5, 300_000))
"""Nothing known, tokens without a price, and prices."""
MANNERS: Final = {"says": 10, "calls": 14, "is silent": 2, "is busy": 2, "breaks off": 1, "fails": 1, "is slow": 3}
ACTIONS: Final = {
    "send": 10,
    "spawn": 4,
    "wait": 8,
    "result": 3,
    "status": 2,
    "cancel": 3,
    "supervise": 1,
    "accept": 1,
    "list": 1,
    "nonsense": 1,
}
_MESSAGE_ID: Final = re.compile(r"msg_[0-9a-f-]+")


class BrokeError(Exception):
    """A provider that does not keep to its port."""


class Minds:
    """Implements `ports.model_provider.ModelProvider`."""

    def __init__(self, chance: Chance, chronicle: Chronicle, witness: HostWitness, clock: Clock) -> None:
        self._chance, self._chronicle, self._witness, self._clock = chance, chronicle, witness, clock
        self.calm = False
        """Whether all of them just answer."""

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """See the port."""
        manner = "says" if self.calm else self._chance.weighted(list(MANNERS), list(MANNERS.values()))
        self._chronicle.tell(f"a model {manner}")
        await asyncio.sleep(SLOW_S if manner == "is slow" else self._chance.one_of(TAKES_S))
        match manner:
            case "is busy":
                after_s = self._chance.one_of((None, 0.2, 90.0))
                return ModelFailed(Code.PROVIDER_ERROR, "busy", transient=True, retry_after_s=after_s)
            case "breaks off":
                on_text("half a")
                return ModelFailed(Code.PROVIDER_ERROR, "the stream broke", transient=True, partial="half a")
            case "fails":
                if self._chance.happens(0.3):
                    raise BrokeError
                return ModelFailed(Code.PROVIDER_ERROR, "no", transient=False)
            case "is silent":
                reply = Reply(" ", usage=self._usage())
            case "calls":
                calls = self._calls(request)
                reply = Reply(self._chance.one_of(("", "let me see")), calls, usage=self._usage())
            case _:
                text = self._chronicle.fresh("reply")
                on_text(text[:3])
                await asyncio.sleep(0)
                on_text(text[3:])
                reply = Reply(text, usage=self._usage())
        return Replied(reply)

    async def close(self) -> None:
        """See the port."""

    def _usage(self) -> Usage:
        return self._chance.one_of(USAGES)

    def _calls(self, request: ModelRequest) -> tuple[ToolCall, ...]:
        asked = [self._arguments(request) for _ in range(self._chance.one_of((1, 1, 2)))]
        if "idempotencyKey" in asked[0] and self._chance.happens(0.5):
            asked.append(asked[0])
        calls: list[ToolCall] = []
        for arguments in asked:
            self._chronicle.tell_of("  calls", arguments)
            calls.append(ToolCall(self._chronicle.fresh("call"), "session_task", json.dumps(arguments)))
        return tuple(calls)

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        action = self._chance.weighted(list(ACTIONS), list(ACTIONS.values()))
        sent = self._sent(request)
        if sent and self._chance.happens(0.4):
            action = "wait"
        if action == "spawn" and len(self._witness.sessions) >= SESSIONS_MAX:
            action = "send"
        session = self._chance.one_of(self._witness.sessions)
        message = self._chance.rather(self._witness.accepted, sent) if self._witness.accepted else "msg_none"
        match action:
            case "send":
                return self._send(session)
            case "spawn":
                return {"action": action, "task": self._chronicle.fresh("task"), **self._key()}
            case "supervise":
                others = self._chance.one_of(self._witness.sessions)
                return {"action": action, "sessionIds": [session, others], "message": self._chronicle.fresh("order")}
            case "wait":
                which: dict[str, Any] = {"messageIds": [message]}
                if self._chance.happens(0.3):
                    which = {"sessionIds": [session]}
                timeout = self._chance.one_of((None, 0, 700, 9000))
                mode = self._chance.one_of(("all", "any"))
                return {"action": action, **which, "mode": mode, "timeoutMs": timeout}
            case "status" | "result" | "cancel" | "accept":
                target = self._witness.target_of(message) or session
                named = {"messageId": message} if action != "status" and self._chance.happens(0.6) else {}
                return {"action": action, "sessionId": target, **named}
            case _:
                return {"action": action}

    def _send(self, session: str) -> dict[str, Any]:
        at = self._clock.now_ms() / 1000 + self._chance.one_of((0.05, 2, 60))
        extra: dict[str, Any] = {}
        if self._chance.happens(0.2):
            extra["expiresAt"] = datetime.fromtimestamp(at, UTC).isoformat()
        if self._chance.happens(0.3):
            extra["deliver"] = "current_turn"
        if self._chance.happens(0.3):
            extra["notifyOnCompletion"] = self._chance.happens(0.5)
        kind = self._chance.one_of(("task", "task", "message"))
        said = {"sessionId": session, "message": self._chronicle.fresh("letter"), "kind": kind}
        return {"action": "send", **said, **extra, **self._key()}

    def _key(self) -> dict[str, str]:
        return {"idempotencyKey": self._chronicle.fresh("key")} if self._chance.happens(0.5) else {}

    def _sent(self, request: ModelRequest) -> list[str]:
        """The messages that the last calls have sent."""
        last = request.context[-1] if request.context else None
        told = _MESSAGE_ID.findall(last.text) if isinstance(last, ToolResult) else []
        for id_ in told:
            assert self._witness.target_of(id_), f"a turn was told of {id_}, which nobody has seen"
        return told
