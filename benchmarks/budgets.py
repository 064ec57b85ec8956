"""The budgets. A bound is a count, a time, or a ratio to a baseline of the same run; it may only become stricter."""

from dataclasses import dataclass
from typing import Final

RAW_ROUND_TRIP: Final = "raw SQLite round trip, 4 commits on one connection"
RAW_ON_POSTGRES: Final = "raw PostgreSQL round trip, 4 commits on one connection"
RAW_RATE: Final = "raw SQLite round trips/s, 4 commits on one connection"
RAW_INSERTS: Final = "raw SQLite single-row commits/s"
YOUNG_LEDGER: Final = "the same on a ledger of the same sessions that has a few hundred messages"


@dataclass(frozen=True, slots=True)
class Budget:
    """One bound."""

    name: str
    what: str
    bound: float
    unit: str
    relative_to: str | None = None
    """The baseline that the figure is a multiple of; None is absolute."""
    at_least: bool = False
    """More is better."""

    def is_met(self, value: float) -> bool:
        """Whether *value* keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        """As a table shows it."""
        return f"{'≥' if self.at_least else '≤'} {self.bound:g} {self.unit}"


def _ratio(name: str, what: str, bound: float, relative_to: str, *, at_least: bool = False) -> Budget:
    return Budget(name, what, bound, "x", relative_to, at_least)


def _count(name: str, what: str, bound: int, unit: str) -> Budget:
    return Budget(name, what, bound, unit)


COMMITS_FUSED: Final = _count("commits-fused", "commits until the wait answers", 2, "commits")
COMMITS_FUSED_READ: Final = _count("commits-fused-read", "commits with the item that absorbs", 3, "commits")
COMMITS_QUEUED: Final = _count("commits-queued", "commits with a busy target and the item that absorbs", 4, "commits")

STATEMENTS_SEND: Final = _count("statements-send", "statements of a send", 16, "statements")
STATEMENTS_SETTLE: Final = _count("statements-settle", "statements of a settle", 16, "statements")
STATEMENTS_APPEND: Final = _count("statements-append", "statements of an append that absorbs", 10, "statements")

FUSED: Final = _ratio("fused", "round trip until the wait answers, p50", 2, RAW_ROUND_TRIP)
FUSED_ON_POSTGRES: Final = _ratio("fused-postgres", "PostgreSQL: a round trip, p50", 3, RAW_ON_POSTGRES)
FUSED_READ: Final = _ratio("fused-read", "round trip with the item that absorbs, p50", 3, RAW_ROUND_TRIP)
QUEUED: Final = _ratio("queued", "round trip with a busy target, p50", 3.5, RAW_ROUND_TRIP)
HTTP: Final = _ratio("http", "round trip over HTTP, p50", 4, RAW_ROUND_TRIP)

PAIRS: Final = _ratio("pairs", "round trips/s of 32 pairs", 1.2, RAW_RATE, at_least=True)
HTTP_PAIRS: Final = _ratio("http-pairs", "round trips/s of 32 pairs over HTTP", 0.6, RAW_RATE, at_least=True)

SENDS_ALONE: Final = _ratio("sends-1", "sends/s of one sender", 0.3, RAW_INSERTS, at_least=True)
SENDS_MANY: Final = _ratio("sends-32", "sends/s of 32 senders", 0.8, RAW_INSERTS, at_least=True)

GROWTH_SEND: Final = _ratio("growth-send", "a send beside many old messages, p50", 1.2, YOUNG_LEDGER)
GROWTH_CLAIM: Final = _ratio("growth-claim", "a claim beside many old messages, p50", 1.2, YOUNG_LEDGER)
GROWTH_SETTLE: Final = _ratio("growth-settle", "a settle beside many old messages, p50", 1.2, YOUNG_LEDGER)
GROWTH_STATUS: Final = _ratio("growth-status", "a status beside many old messages, p50", 1.2, YOUNG_LEDGER)

GROWTH_LIST: Final = _ratio("growth-list", "a list of sessions beside many old messages, p50", 1.2, YOUNG_LEDGER)
SCANS: Final = _count("scans", "statements that read a whole table", 0, "scans")

HELP: Final = Budget("help", "`coterie --help`", 0.3, "s")
SERVING: Final = Budget("serving", "process start to serving", 1.5, "s")
FULL_START: Final = Budget("full-start", "process start with 100,000 queued inputs to the first turn", 1, "s")

DELIVERY: Final = Budget("delivery", "send answered to worker has the turn, p50", 1, "ms")
DELIVERY_TO_OTHERS: Final = Budget("delivery-others", "PostgreSQL: a send to its claim on another host, p50", 5, "ms")
DELIVERY_LATE: Final = Budget("delivery-late", "send answered to worker has the turn, p99", 5, "ms")

PAGE: Final = Budget("page", "the first page of 10,000 sessions", 50, "ms")
# What is left of zero is what the caches of a process differ by, over all sessions.
MEMORY_IDLE: Final = Budget("memory-idle", "memory of a session that nobody uses: nothing", 16, "bytes")
MEMORY_LOADED: Final = Budget("memory-loaded", "memory of an idle session that is in use", 8192, "bytes")

ALL: Final = tuple(value for value in list(globals().values()) if isinstance(value, Budget))
"""Every budget."""
