"""What waits for a person's leave, and what has it."""

from typing import Literal

from coterie.operations.views.view import View


class PendingRequest(View):
    """A question that waits for a person.

    Whether one session may write to another, whether a tool call may run, or what an agent wants to know.
    """

    request_id: str
    kind: Literal["across_projects", "tool", "question"]
    session_id: str
    """The session that asks."""
    session_title: str
    target_session_id: str | None = None
    """Whom it wants to write to."""
    target_title: str | None = None
    messages: int | None = None
    """How many messages wait for the answer."""
    turn_id: str | None = None
    tool: str | None = None
    risk: str | None = None
    subject: str | None = None
    """What the call is about, as rules and grants name it: a path, a command line."""
    shown: str | None = None
    """What the call would do: a difference, a command."""
    mode: str | None = None
    """What the turn may do without asking."""
    ceiling_session_id: str | None = None
    """Whose message keeps the turn below what its session may do; such a call can only be approved once."""
    ceiling_title: str | None = None
    question: str | None = None
    """What the agent wants to know."""
    choices: list[str] | None = None
    """Answers that it proposes; any other words are an answer too."""
    created_at: str


class PendingView(View):
    """Questions that wait for a person: those of tool calls before pairs, each oldest first."""

    requests: list[PendingRequest]


class ResolvedView(View):
    """What an answer concerned."""

    decision: str
    messages: int | None = None
    """Messages that waited for it."""
    tool: str | None = None
    """The tool whose call was answered."""
    replayed: bool | None = None


class AnsweredView(View):
    """A question has its answer."""

    answered: Literal[True]
    replayed: bool | None = None


class GrantView(View):
    """One session may write to another across projects for a time, or call a tool on one subject without asking."""

    grant_id: str
    kind: Literal["across_projects", "tool"]
    session_id: str
    session_title: str
    target_session_id: str | None = None
    target_title: str | None = None
    tool: str | None = None
    subject: str | None = None
    created_at: str
    expires_at: str | None = None
    """Absent where it holds until it is revoked."""


class GrantList(View):
    """The grants that hold now, newest first."""

    grants: list[GrantView]


class RevokedView(View):
    """A grant has ended."""

    revoked: Literal[True]
    replayed: bool | None = None
