"""The parts of a transaction that hold what a person is asked, and what they have granted."""

from typing import Protocol

from coterie.core.ids import GrantId, RequestId, SessionId, TurnId
from coterie.ports.rows import CallAnswer, CallGrant, CallRequest, Input, PairGrant, PairRequest


class Pairs(Protocol):
    """Who may write to whom across projects."""

    def ask(self, request: PairRequest) -> None:
        """Write the question, if it is not open already."""
        ...

    def pending(self, limit: int) -> tuple[PairRequest, ...]:
        """Open questions, oldest first."""
        ...

    def request(self, request_id: RequestId) -> PairRequest | None:
        """One open question."""
        ...

    def close(self, source: SessionId, target: SessionId) -> None:
        """End the question of a pair for which nothing waits any more."""
        ...

    def waiting(self, source: SessionId, target: SessionId) -> tuple[Input, ...]:
        """Inputs that wait for the pair."""
        ...

    def add_grant(self, grant: PairGrant) -> None:
        """Write a grant."""
        ...

    def has_grant(self, source: SessionId, target: SessionId, now: int) -> bool:
        """Whether the pair is granted now."""
        ...

    def grants(self, now: int, limit: int) -> tuple[PairGrant, ...]:
        """Live grants, newest first."""
        ...

    def revoke(self, grant_id: GrantId) -> bool:
        """End a grant; False if there is none."""
        ...

    def forget(self, session_id: SessionId) -> None:
        """End the grants of a session that is deleted, and its questions for which nothing waits any more."""
        ...


class Approvals(Protocol):
    """Tool calls that a person is asked about, and what sessions may do without asking again."""

    def ask(self, request: CallRequest) -> None:
        """Write the question, if that call has none."""
        ...

    def of_call(self, turn_id: TurnId, call_id: str) -> CallRequest | None:
        """The question about one call."""
        ...

    def request(self, request_id: RequestId) -> CallRequest | None:
        """One question, open or not."""
        ...

    def answer(self, request_id: RequestId, answer: CallAnswer, note: str, now: int) -> bool:
        """Answer it; False if somebody has."""
        ...

    def pending(self, limit: int) -> tuple[CallRequest, ...]:
        """Open questions of running turns, oldest first."""
        ...

    def add_grant(self, grant: CallGrant) -> None:
        """Write a grant, if there is none like it."""
        ...

    def has_grant(self, session_id: SessionId, tool: str, subject: str) -> bool:
        """Whether the session may do exactly that."""
        ...

    def grants(self, limit: int) -> tuple[CallGrant, ...]:
        """Grants, newest first."""
        ...

    def revoke(self, grant_id: GrantId) -> bool:
        """End a grant; False if there is none."""
        ...

    def forget(self, session_id: SessionId) -> None:
        """End the grants of a session that is deleted, and keep none of the texts that its questions showed."""
        ...
