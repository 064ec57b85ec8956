"""The list that a model keeps of its work: how it reads, and where in a transcript the newest one is.

Pure module. The list is what the newest call of `todo` has answered: no table has it. What a context leaves out may
hold that answer, so contexts show the list again (`core.turn.context`, `core.turn.fitting`).
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, TypeGuard

from coterie.core.turn.items import Checkpoint, ToolResult

TODO: Final = "todo"
"""The name of the tool."""
_EMPTY: Final = "The list is empty."


class Progress(StrEnum):
    """How far a piece of work is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"


_MARKS: Final = {Progress.PENDING: "[ ]", Progress.IN_PROGRESS: "[>]", Progress.DONE: "[x]"}


def listing(entries: Iterable[tuple[Progress, str]]) -> str:
    """The list as its model, and who watches, read it: one line for each entry."""
    return "\n".join(f"{_MARKS[progress]} {text}" for progress, text in entries) or _EMPTY


def is_list(item: object) -> TypeGuard[ToolResult]:
    """Whether *item* is a list that counts: a call that was refused has changed nothing."""
    return isinstance(item, ToolResult) and item.name == TODO and not item.error


def newest_list(items: Sequence[object], checkpoint: Checkpoint | None) -> str | None:
    """The list as it is at the end of *items*; None where there is none, or nothing in it.

    Args:
        items: Entries of a transcript, or what is shown of them.
        checkpoint: What stands for all before them.
    """
    for item in reversed(items):
        if is_list(item):
            return None if item.text == _EMPTY else item.text
    return checkpoint.todo if checkpoint else None
