"""A durable conversation.

Pure module.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from coterie.core.ids import SessionId
from coterie.core.inbound import Inbound
from coterie.core.permission import StoredMode
from coterie.core.session.worktree import Worktree
from coterie.core.text import cut
from coterie.core.thinking import Thinking

TITLE_CHARS_MAX: Final = 80


class Held(StrEnum):
    """Why a session's queue does not move."""

    RESTART = "restart"
    ARCHIVED = "archived"
    """A person has put the session away; it takes no new messages."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session as the ledger has it; its id is its only address."""

    id: SessionId
    title: str
    project_path: str | None
    model: str | None
    """Key of its binding, chosen when it was created; None if there was none then: the default at the time of use."""
    permission_mode: StoredMode
    held: Held | None
    streak: int
    """Human turns in a row."""
    ready: int | None
    """Sequence number of the input that waits for a slot, if one may start now."""
    revision: int
    created_at: int
    updated_at: int
    inbound: Inbound = Inbound.ACCEPT
    current_turn: bool = False
    """Whether a running turn may take in messages that are sent for it."""
    thinking: Thinking | None = None
    """How much its model thinks; None leaves it to the vendor."""
    created_by: SessionId | None = None
    """The session that spawned it; that makes it a worker."""
    deleted: bool = False
    """Nothing of it can be used any more; the row stays for who refers to it."""
    worktree: Worktree | None = None
    """Its own copy of the project, if it has one."""

    @property
    def folder(self) -> str | None:
        """Where it works."""
        return self.worktree.folder if self.worktree else self.project_path


def title_from(text: str) -> str:
    """A title made of the first line of *text*."""
    lines = text.strip().splitlines()
    return cut(lines[0].strip() if lines else "Untitled", TITLE_CHARS_MAX)[0]


def status_of(*, running: bool, waiting: bool, newest: str | None) -> str:
    """What a session does: `running`, `queued`, else the state of its newest turn, else `idle`."""
    if running:
        return "running"
    return "queued" if waiting else newest or "idle"
