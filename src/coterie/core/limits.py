"""Every bound of a host that a person may set, by its name in `[limits]`.

Pure module. The names are the ones that refusals and the documentation use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final


def _limit(default: int, least: int, most: int) -> int:
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True, slots=True)
class Limits:
    """What a host bounds, with the defaults."""

    hops_max: int = _limit(8, 0, 1_000)
    """Wake-ups in a row that one person's input may cause."""
    turns_max: int = _limit(8, 1, 1_000)
    """Turns that run at once on this host; a turn that waits does not count."""
    inbox_max: int = _limit(8, 1, 10_000)
    """Queued messages that one session accepts from others."""
    prompts_max: int = _limit(8, 1, 10_000)
    """Queued inputs that one session accepts from people."""
    content_chars_max: int = _limit(65_536, 1, 16_777_216)
    """Characters of one message or prompt."""
    chain_messages_max: int = _limit(128, 1, 1_000_000)
    """Messages that one person's input may cause."""
    chain_sessions_max: int = _limit(64, 1, 1_000_000)
    """Sessions that one person's input may cause."""
    workers_active_max: int = _limit(4, 1, 1_000)
    """Spawned workers of one session that may be active at once."""
    result_chars_max: int = _limit(12_000, 1, 1_000_000)
    """Characters of a result that the ledger keeps; the transcript of the session has the whole."""
    model_requests_max: int = _limit(200, 1, 100_000)
    """Model requests of one turn."""
    tool_result_chars_max: int = _limit(30_000, 100, 10_000_000)
    """Characters of a tool result that a model is shown."""
    idempotency_key_chars_max: int = _limit(256, 16, 4_096)
    """Characters of an idempotency key."""
    wait_max_s: int = _limit(3_600, 1, 604_800)
    """The longest that one wait may sleep, in seconds."""
    cancel_grace_s: int = _limit(5, 0, 600)
    """Seconds that a cancelled turn has to stop by itself."""


RANGES: Final[Mapping[str, tuple[int, int]]] = {
    limit.name: (limit.metadata["least"], limit.metadata["most"]) for limit in fields(Limits)
}
"""The least and the most that each limit may be set to."""
