"""Changes, idempotency keys, audit and the checks of `coterie verify` over a driver."""

from typing import Final

from coterie.core.ids import SessionId
from coterie.ports.rows import AuditRow, Change, Violation
from coterie.storage.sql.driver import Driver
from coterie.storage.sql.statements import load

CHECKS: Final = load("verify")


class SqlJournal:
    """Implements `ports.store.Journal`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def changes(self, after: int, session_id: SessionId | None, limit: int) -> tuple[Change, ...]:
        """See the port."""
        if session_id is None:
            rows = self._driver.all("changes_after", after=after, limit=limit)
        else:
            rows = self._driver.all("session_changes_after", after=after, session_id=session_id, limit=limit)
        return tuple(Change(*row) for row in rows)

    def last_change(self, session_id: SessionId | None) -> int:
        """See the port."""
        if session_id is None:
            row = self._driver.one("last_change")
        else:
            row = self._driver.one("last_session_change", session_id=session_id)
        return row[0] if row else 0

    def claim_key(
        self, scope: str, key: str, fingerprint: str, ref: str, *, kept_until: int | None
    ) -> tuple[str, str] | None:
        """See the port."""
        claim = {"fingerprint": fingerprint, "ref": ref, "kept_until": kept_until}
        while self._driver.move("claim_key", scope=scope, key=key, **claim) != 1:
            row = self._driver.one("get_key", scope=scope, key=key)
            # Without one it was forgotten in between.
            if row is not None:
                return row[0], row[1]
        return None

    def key_is_known(self, scope: str, key: str) -> bool:
        """See the port."""
        return self._driver.one("get_key", scope=scope, key=key) is not None

    def old_keys(self, now: int, limit: int) -> int:
        """See the port."""
        return len(self._driver.all("old_keys", now=now, limit=limit))

    def forget_keys(self, now: int, limit: int) -> int:
        """See the port."""
        return self._driver.move("forget_keys", now=now, limit=limit)

    def set_ref(self, scope: str, key: str, ref: str) -> None:
        """See the port."""
        self._driver.write("set_key_ref", scope=scope, key=key, ref=ref)

    def audit(self, row: AuditRow, now: int) -> None:
        """See the port."""
        self._driver.write("add_audit", at=now, actor=row.actor, act=row.act, session_id=row.session_id, ref=row.ref)

    def violations(self) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
        """See the port."""
        found = (Violation(name, str(row[0])) for name in CHECKS for row in self._driver.all(name))
        return tuple(CHECKS), tuple(found)
