"""What of a transcript a model is shown.

Pure module. No request carries an assistant message without text and without a tool call, and no tool call without a
result.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from coterie.core.turn.frame import frame, report_frame
from coterie.core.turn.items import Item, PersonText, Reply, Report, SessionText, ToolResult
from coterie.core.turn.silence import is_silent


@dataclass(frozen=True, slots=True)
class UserPart:
    """What the model takes for the user's side: a person's text, or what others wrote in its frame."""

    text: str


Shown: TypeAlias = UserPart | Reply | ToolResult

INTERRUPTED = "This call was interrupted; whether it had an effect is not known."


def shown(items: Iterable[Item]) -> tuple[Shown, ...]:
    """Return *items* as a model may see them: silent replies dropped, calls without result answered as interrupted."""
    found: list[Shown] = []
    open_calls: dict[str, str] = {}

    def close() -> None:
        found.extend(ToolResult(call, name, INTERRUPTED, error=True) for call, name in open_calls.items())
        open_calls.clear()

    for item in items:
        match item:
            case ToolResult():
                if open_calls.pop(item.call_id, None) is not None:
                    found.append(item)
                continue
            case Reply() if is_silent(item):
                continue
            case Reply():
                close()
                found.append(item)
                open_calls.update({call.id: call.name for call in item.calls})
            case PersonText(text):
                close()
                found.append(UserPart(text))
            case SessionText():
                close()
                found.append(UserPart(frame(item)))
            case Report():  # pragma: no branch - the last of all
                close()
                found.append(UserPart(report_frame(item)))
    close()
    return tuple(found)
