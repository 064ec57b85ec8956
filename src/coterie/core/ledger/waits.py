"""Who waits for whom: a wait that could never end is refused.

Pure module: the waits of those who sleep are given. A session that is asleep goes on when each of its waits has ended,
so blocked are the sessions that none outside of them could wake. That is more than a line that leads back: one that
waits for any of several is blocked only if all of them are.
"""

from collections import deque
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from coterie.core.codes import Code
from coterie.core.ids import SessionId
from coterie.core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Wait:
    """One sleep of a session's running turn; parallel tool calls of it may sleep side by side."""

    session_id: SessionId
    """Who sleeps."""
    targets: tuple[SessionId, ...]
    """The sessions of what has not settled yet; none when the sleep is over."""
    needs_all: bool = True
    """Whether all of the targets have to end, or one is enough."""


def admit_wait(asleep: Collection[Wait], wait: Wait) -> Refusal | None:
    """Why *wait* may not begin: those that it is for could not go on before the session that waits.

    Since each wait is asked about before it begins, and anew before its targets become more, those who sleep are never
    blocked without the newcomer: whatever blocks leads back to it.

    Args:
        asleep: The waits that have begun and not ended.
        wait: The one that would begin.
    """
    blocked = _blocked(asleep, wait.session_id)
    stuck = [one for one in (wait, *asleep) if _is_stuck(one, blocked)]
    path = _way_back(stuck, wait.session_id)
    if path is None:
        return None
    text = (
        f"This wait would close a cycle: {' → '.join(path)}. "
        "End your turn instead: when what you wait for has settled, its completion starts a new one."
    )
    return Refusal(Code.WAIT_CYCLE, text, path=path)


def _is_stuck(wait: Wait, blocked: AbstractSet[SessionId]) -> bool:
    held = [target in blocked for target in wait.targets]
    return any(held) and (wait.needs_all or all(held))


def _blocked(asleep: Collection[Wait], waiter: SessionId) -> AbstractSet[SessionId]:
    """Who cannot go on before *waiter* does: of all who sleep, take away whoever can, until nobody is left who can."""
    blocked: AbstractSet[SessionId] = {waiter, *(one.session_id for one in asleep)}
    while (left := {waiter, *(one.session_id for one in asleep if _is_stuck(one, blocked))}) != blocked:
        blocked = left
    return blocked


def _way_back(stuck: Collection[Wait], waiter: SessionId) -> tuple[SessionId, ...] | None:
    """The shortest line from the waiter back to itself; None if others block each other."""
    lines: deque[tuple[SessionId, ...]] = deque([(waiter,)])
    reached: set[SessionId] = set()
    while lines:
        line = lines.popleft()
        for target in (target for one in stuck if one.session_id == line[-1] for target in one.targets):
            if target == waiter:
                return (*line, target)
            if target not in reached:
                reached.add(target)
                lines.append((*line, target))
    return None
