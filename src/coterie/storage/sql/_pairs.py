"""Questions and grants across projects over a driver."""

from coterie.core.ids import GrantId, RequestId, SessionId
from coterie.ports.rows import Input, PairGrant, PairRequest
from coterie.storage.sql._queue import inputs_of
from coterie.storage.sql.driver import Driver


class SqlPairs:
    """Implements `ports.store.Pairs`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def ask(self, request: PairRequest) -> None:
        """See the port."""
        self._driver.write(
            "ask_pair",
            id=request.id,
            source=request.source_session_id,
            target=request.target_session_id,
            now=request.created_at,
        )

    def pending(self, limit: int) -> tuple[PairRequest, ...]:
        """See the port."""
        return tuple(PairRequest(*row) for row in self._driver.all("pending_pairs", limit=limit))

    def request(self, request_id: RequestId) -> PairRequest | None:
        """See the port."""
        row = self._driver.one("get_pair_request", id=request_id)
        return PairRequest(*row) if row else None

    def close(self, source: SessionId, target: SessionId) -> None:
        """See the port."""
        self._driver.write("close_pair", source=source, target=target)

    def waiting(self, source: SessionId, target: SessionId) -> tuple[Input, ...]:
        """See the port."""
        return inputs_of(self._driver.all("waiting_for_pair", source=source, target=target))

    def add_grant(self, grant: PairGrant) -> None:
        """See the port."""
        self._driver.write(
            "add_grant",
            id=grant.id,
            source=grant.source_session_id,
            target=grant.target_session_id,
            now=grant.created_at,
            expires_at=grant.expires_at,
        )

    def has_grant(self, source: SessionId, target: SessionId, now: int) -> bool:
        """See the port."""
        return self._driver.one("find_grant", source=source, target=target, now=now) is not None

    def grants(self, now: int, limit: int) -> tuple[PairGrant, ...]:
        """See the port."""
        return tuple(PairGrant(*row) for row in self._driver.all("live_grants", now=now, limit=limit))

    def revoke(self, grant_id: GrantId) -> bool:
        """See the port."""
        return self._driver.move("revoke_grant", id=grant_id) == 1

    def forget(self, session_id: SessionId) -> None:
        """See the port."""
        self._driver.write("forget_requests", id=session_id)
        self._driver.write("forget_grants", id=session_id)
