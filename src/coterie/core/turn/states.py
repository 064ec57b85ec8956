"""The life of a turn.

Pure module.
"""

from enum import StrEnum
from typing import Final

from coterie.core.machine import StateTable


class TurnState(StrEnum):
    """Where a turn is; whether it is parked is the host's affair, not the ledger's."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class TurnCompleted:
    """The loop came to its end."""


class TurnFailed:
    """The loop gave up, or the turn could not start."""


class TurnCancelled:
    """Somebody who may has cancelled it."""


class HostDied:
    """The host that ran it is gone."""


TURN_TABLE: Final = StateTable[TurnState](
    [TurnState.RUNNING],
    [
        (TurnState.RUNNING, TurnCompleted, TurnState.COMPLETED),
        (TurnState.RUNNING, TurnFailed, TurnState.FAILED),
        (TurnState.RUNNING, TurnCancelled, TurnState.CANCELLED),
        (TurnState.RUNNING, HostDied, TurnState.INTERRUPTED),
    ],
)
