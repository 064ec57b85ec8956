"""What waits for a person's leave, and what has it."""

from typing import Literal

from coterie.operations.views.view import View


class PendingRequest(View):
    """A question that waits for a person."""

    request_id: str
    kind: Literal["across_projects"]
    source_session_id: str
    source_title: str
    target_session_id: str
    target_title: str
    messages: int
    """How many messages wait for the answer."""
    created_at: str


class PendingView(View):
    """Questions that wait for a person, oldest first."""

    requests: list[PendingRequest]


class ResolvedView(View):
    """What an answer concerned."""

    decision: str
    messages: int
    replayed: bool | None = None


class GrantView(View):
    """One session may write to another across projects."""

    grant_id: str
    source_session_id: str
    source_title: str
    target_session_id: str
    target_title: str
    created_at: str
    expires_at: str


class GrantList(View):
    """The grants that hold now, newest first."""

    grants: list[GrantView]


class RevokedView(View):
    """A grant has ended."""

    revoked: Literal[True]
    replayed: bool | None = None
