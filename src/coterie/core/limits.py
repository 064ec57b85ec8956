"""Every bound of a host that a person may set, by its name in `[limits]`.

Pure module. The names are the ones that refusals and the documentation use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, TypeVar

N = TypeVar("N", int, float)


def _limit(default: N, least: N, most: N) -> N:
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
    chain_cost_max: float = _limit(5.0, 0.0, 1_000_000.0)
    """US dollars that one person's input may cost before its further work waits for a person."""
    chain_tokens_max: int = _limit(2_000_000, 1, 1_000_000_000_000)
    """The same in tokens, for models whose price is not known."""
    workers_active_per_plugin_max: int = _limit(16, 1, 10_000)
    """Spawned workers of one plugin that may be active at once."""
    workers_active_max: int = _limit(4, 1, 1_000)
    """Spawned workers of one session that may be active at once."""
    result_chars_max: int = _limit(12_000, 1, 1_000_000)
    """Characters of a result that the ledger keeps; the transcript of the session has the whole."""
    model_requests_max: int = _limit(200, 1, 100_000)
    """Model requests of one turn."""
    delegations_max: int = _limit(10, 1, 100)
    """Delegations of one turn that may run at once."""
    tool_result_chars_max: int = _limit(30_000, 100, 10_000_000)
    """Characters of a tool result that a model is shown."""
    idempotency_key_chars_max: int = _limit(256, 16, 4_096)
    """Characters of an idempotency key."""
    wait_max_s: int = _limit(3_600, 1, 604_800)
    """The longest that one wait may sleep, in seconds."""
    accepted_per_request_max: int = _limit(8, 1, 1_000)
    """Messages that a running turn takes in before one model request."""
    accepted_per_turn_max: int = _limit(128, 1, 100_000)
    """Messages that one turn takes in."""
    cancel_grace_s: int = _limit(5, 0, 600)
    """Seconds that a cancelled turn has to stop by itself."""


RANGES: Final[Mapping[str, tuple[float, float]]] = {
    limit.name: (limit.metadata["least"], limit.metadata["most"]) for limit in fields(Limits)
}
"""The least and the most that each limit may be set to; a whole number where the default is one."""
