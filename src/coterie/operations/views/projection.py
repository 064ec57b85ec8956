"""The bounded summary of a session (ADR 0239, the projection), and the directory."""

from typing import Literal

from coterie.operations.views.sessions import TurnView
from coterie.operations.views.view import View


class SessionReference(View):
    """A session by id and title."""

    session_id: str
    title: str
    available: bool | None = None
    """False if it is deleted."""


class Exchange(View):
    """A recent message, shortened."""

    message_id: str
    direction: Literal["incoming", "outgoing"]
    peer: SessionReference
    kind: str
    status: str
    preview: str
    created_at: str


class CurrentTask(View):
    """The task or message that the session runs, has queued first, or ran last."""

    message_id: str
    sender_session: SessionReference
    kind: str
    text: str
    status: str
    turn_id: str | None
    created_at: str


class Delivery(View):
    """How a task or message to the session ended."""

    message_id: str
    turn_id: str | None
    status: str
    text: str | None
    error: str | None


class DelegationView(View):
    """A delegation that runs: never what it has read or said."""

    id: str
    agent: str
    elapsed_s: float
    requests: int
    """Model requests so far."""
    tool_calls: int
    last_tool: str | None


class StatusView(View):
    """The bounded summary of one session."""

    session_id: str
    title: str
    status: str
    """`running`, `queued`, how the newest turn ended, or `idle`."""
    observed_at: str
    held: str | None
    waiting: int
    model_key: str | None
    provider_name: str | None
    model_name: str | None
    permission_mode: str
    created_by_session: SessionReference | None
    created_sessions: list[SessionReference] | None
    current_task: CurrentTask | None
    result: Delivery | None
    """The outcome of the message that the newest turn ran."""
    last_delivery: Delivery | None
    """The outcome of the newest task or message, whatever ran since."""
    last_turn: TurnView | None
    recent_exchanges: list[Exchange]
    delegations: list[DelegationView] | None = None


class DirectoryEntry(View):
    """A session as other sessions may know it."""

    session_id: str
    title: str
    status: str
    model_key: str | None
    provider_name: str | None
    model_name: str | None
    created_by_session_id: str | None
    updated_at: str


class Directory(View):
    """A page of the directory."""

    sessions: list[DirectoryEntry]
    cursor: str | None
