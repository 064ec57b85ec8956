"""A session's queue."""

from typing import Literal

from coterie.operations.views.view import View


class QueuedInput(View):
    """Something that waits in a queue."""

    input_id: str
    kind: str
    """`prompt`, `steer`, `task`, `message` or `completion`."""
    message_id: str | None
    source_session_id: str | None
    source_title: str | None
    preview: str
    promoted: bool
    waiting: str | None
    """What it waits for though its session may be free: `budget`, `policy` or `across_projects`."""
    offered_to_turn_id: str | None
    """The running turn that may take it in."""
    created_at: str


class QueueView(View):
    """A session's queue in the order of its parts, and why it does not move."""

    session_id: str
    blocked_by: str | None
    """`held: restart`, `held: archived`, `running`, `waiting` (for a person, each input says why) or `slot`."""
    waiting: int
    inputs: list[QueuedInput]


class RemovedInput(View):
    """An input is out of the queue."""

    removed: Literal[True]
    message_id: str | None
    """The message that was cancelled with it."""
    replayed: bool | None = None


class PromotedInput(View):
    """An input goes first."""

    promoted: Literal[True]
    replayed: bool | None = None


class MovedInput(View):
    """Whether an input has changed places with its neighbour."""

    moved: bool
    replayed: bool | None = None
