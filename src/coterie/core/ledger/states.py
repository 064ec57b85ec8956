"""The life of a message.

Pure module. Nothing leaves a terminal state (I5), and `queued` is left by exactly one move (I2).
"""

from enum import StrEnum
from typing import Final

from coterie.core.machine import StateTable


class MessageState(StrEnum):
    """Where a message is."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class MessageBound:
    """A turn was created for the message, or a running turn took it in."""


class InputRemoved:
    """The waiting message was taken out of the queue."""


class MessageExpired:
    """The time in which the waiting message was worth starting has passed."""


class MessageCompleted:
    """The turn of the message completed."""


class MessageFailed:
    """The turn of the message failed."""


class MessageCancelled:
    """The turn of the message was cancelled."""


class MessageInterrupted:
    """The host of the turn died."""


MESSAGE_TABLE: Final = StateTable[MessageState](
    [MessageState.QUEUED, MessageState.RUNNING],
    [
        (MessageState.QUEUED, MessageBound, MessageState.RUNNING),
        (MessageState.QUEUED, InputRemoved, MessageState.CANCELLED),
        (MessageState.QUEUED, MessageExpired, MessageState.CANCELLED),
        (MessageState.RUNNING, MessageCompleted, MessageState.COMPLETED),
        (MessageState.RUNNING, MessageFailed, MessageState.FAILED),
        (MessageState.RUNNING, MessageCancelled, MessageState.CANCELLED),
        (MessageState.RUNNING, MessageInterrupted, MessageState.INTERRUPTED),
    ],
)

SETTLED: Final = MESSAGE_TABLE.terminal
