"""What people ask of a host, and what each request must come to whatever happens in between."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Wire: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Request:
    """One request; it may be sent several times."""

    number: int
    operation: str
    params: Wire
    answers: list[Wire] = field(default_factory=list[Wire])
    asked_at: float = 0.0

    @property
    def keyed(self) -> bool:
        """Whether it may be sent again safely."""
        return "idempotencyKey" in self.params


def _of(*names: str) -> Callable[[Wire], object]:
    return lambda wire: [wire.get(name) for name in names]


MADE: Final[Mapping[str, Callable[[Wire], object]]] = {
    "session.create": lambda wire: wire["session"]["id"],
    "session.fork": lambda wire: wire["session"]["id"],
    "session.configure": lambda wire: wire["session"]["id"],
    "session.archive": lambda wire: wire["session"]["id"],
    "session.prompt": _of("inputId"),
    "session.steer": _of("inputId"),
    "session.interrupt": _of("messageIds", "runningTurnIds"),
    "session.delete": _of("messageIds", "runningTurnIds"),
    "session.retry": _of("messageId", "sessionId"),
    "session.release": _of("released"),
    "queue.remove": _of("messageId"),
    "queue.promote": _of("promoted"),
    "queue.move": _of("moved"),
    "collaboration.send": _of("messageId", "sessionId"),
    "collaboration.spawn": _of("messageId", "sessionId"),
    "collaboration.cancel": _of("messageIds", "runningTurnIds"),
    "collaboration.accept": _of("messageId"),
    "permissions.resolve": _of("messages"),
    "permissions.revoke": _of("revoked"),
}
"""What of an answer is the same however often a request is sent; what is not here takes no key."""
