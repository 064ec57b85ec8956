"""Questions about tool calls and what was granted, over a driver."""

import hashlib
from typing import Final

import msgspec

from coterie.core.ids import GrantId, RequestId, SessionId, TurnId
from coterie.core.permission import Risk
from coterie.ports.rows import CallAnswer, CallGrant, CallRequest
from coterie.storage.sql._queue import MODES
from coterie.storage.sql.driver import Driver, Row

_ENCODER: Final = msgspec.json.Encoder()
_CHOICES: Final = msgspec.json.Decoder(tuple[str, ...])


def _request(row: Row) -> CallRequest:
    values = list(row)
    values[5], values[8], values[11] = Risk(row[5]), MODES[row[8]], CallAnswer(row[11]) if row[11] else None
    values[13] = _CHOICES.decode(row[13]) if row[13] is not None else None
    return CallRequest(*values)


def _hash(subject: str) -> str:
    """What stands for a subject in an index: a command line may be longer than an index takes."""
    return hashlib.sha256(subject.encode()).hexdigest()


class SqlApprovals:
    """Implements `ports.store.Approvals`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def ask(self, request: CallRequest) -> None:
        """See the port."""
        self._driver.write(
            "ask_call",
            id=request.id,
            session_id=request.session_id,
            turn_id=request.turn_id,
            call_id=request.call_id,
            tool=request.tool,
            risk=request.risk.value,
            subject=request.subject,
            shown=request.shown,
            mode=request.mode.value,
            clamped_by=request.clamped_by,
            choices=None if request.choices is None else _ENCODER.encode(request.choices).decode(),
            now=request.created_at,
        )

    def of_call(self, turn_id: TurnId, call_id: str) -> CallRequest | None:
        """See the port."""
        row = self._driver.one("request_of_call", turn_id=turn_id, call_id=call_id)
        return _request(row) if row else None

    def request(self, request_id: RequestId) -> CallRequest | None:
        """See the port."""
        row = self._driver.one("get_call_request", id=request_id)
        return _request(row) if row else None

    def answer(self, request_id: RequestId, answer: CallAnswer, note: str, now: int) -> bool:
        """See the port."""
        return self._driver.move("answer_call", id=request_id, answer=answer.value, note=note, now=now) == 1

    def pending(self, limit: int) -> tuple[CallRequest, ...]:
        """See the port."""
        return tuple(_request(row) for row in self._driver.all("pending_calls", limit=limit))

    def add_grant(self, grant: CallGrant) -> None:
        """See the port."""
        self._driver.write(
            "add_call_grant",
            id=grant.id,
            session_id=grant.session_id,
            tool=grant.tool,
            subject_hash=_hash(grant.subject),
            subject=grant.subject,
            now=grant.created_at,
        )

    def has_grant(self, session_id: SessionId, tool: str, subject: str) -> bool:
        """See the port."""
        found = self._driver.one("find_call_grant", session_id=session_id, tool=tool, subject_hash=_hash(subject))
        return found is not None

    def grants(self, limit: int) -> tuple[CallGrant, ...]:
        """See the port."""
        return tuple(CallGrant(*row) for row in self._driver.all("call_grants", limit=limit))

    def revoke(self, grant_id: GrantId) -> bool:
        """See the port."""
        return self._driver.move("revoke_call_grant", id=grant_id) == 1

    def forget(self, session_id: SessionId) -> None:
        """See the port."""
        self._driver.write("forget_call_grants", id=session_id)
        self._driver.write("forget_call_texts", id=session_id)
