"""Runs the shared statements on one connection, and keeps the order of the locks.

All sessions of a transaction are locked ascending by id, before anything that decides is read. A lock that comes out
of that order is taken only if nobody has it; else, and where something was read too early, the use case begins again
with every session that it turned out to need (`SessionsGrew`). So two transactions never wait for each other in a ring.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import psycopg

from coterie.core.errors import HostUnavailableError
from coterie.storage.postgres.database import STATEMENTS, Connection, spelled
from coterie.storage.sql.driver import Row
from coterie.storage.sql.statements import spread
from coterie.storage.sql.transaction import CHECKS, SqlNouns

_KEYS: Final = frozenset({"claim_key", "get_key"})
"""The key of a request comes before all locks, in the first try and in every other one."""


class SessionsGrew(Exception):
    """The use case needs these sessions and chains too, locked before it reads anything."""

    def __init__(self, ids: frozenset[str], chains: frozenset[str]) -> None:
        super().__init__(ids, chains)
        self.ids, self.chains = ids, chains


class PostgresDriver:
    """Implements `storage.sql.driver.Driver`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.nouns = SqlNouns(self)
        self.statements = 0
        """How many ran in this transaction, locks included: what the budgets count."""
        self.wrote = False
        """Whether this transaction has changed a row."""
        self.skipped = False
        """Whether it has left a session alone because somebody else had it."""
        self._locked: set[str] = set()
        self._chains: set[str] = set()
        self._first: list[str] = []
        self._first_chains: list[str] = []

    def begin(self, first: frozenset[str] = frozenset(), chains: frozenset[str] = frozenset()) -> None:
        """Forget the last transaction's locks; these sessions and chains are locked before anything is read."""
        self.statements, self.wrote, self.skipped = 0, False, False
        self._locked, self._first = set(), sorted(first)
        self._chains, self._first_chains = set(), sorted(chains)

    def _run(self, name: str, params: dict[str, object]) -> psycopg.Cursor[Row]:
        if (self._first or self._first_chains) and name not in _KEYS:
            self._lock_first()
        if name in CHECKS:
            # What reads everything is quicker from end to end.
            self.connection.execute("SET LOCAL enable_seqscan = on")
        self.statements += 1
        sql, given = STATEMENTS[name], cast("Any", params)
        if "..." in sql:
            sql, given = spread(sql, params)
        cursor = self.connection.execute(cast("Any", spelled(sql)), given)
        if cursor.rowcount > 0 and not (cursor.statusmessage or "").startswith("SELECT"):
            self.wrote = True
        return cursor

    def _lock_first(self) -> None:
        first, self._first = self._first, []
        chains, self._first_chains = self._first_chains, []
        if first:
            self._wait_for(first)
        if chains:
            self._lock_chains(chains)

    def one(self, name: str, **params: object) -> Row | None:
        """See `Driver`."""
        return self._run(name, params).fetchone()

    def all(self, name: str, **params: object) -> Sequence[Row]:
        """See `Driver`."""
        return self._run(name, params).fetchall()

    def write(self, name: str, **params: object) -> None:
        """See `Driver`."""
        self._run(name, params)

    def write_rows(self, name: str, rows: Sequence[Row]) -> None:
        """See `Driver`; all in one statement, which names them `(:rows...)`."""
        self._run(name, {"rows": list(rows)})

    def move(self, name: str, **params: object) -> int:
        """See `Driver`."""
        return self._run(name, params).rowcount

    def lock(self, name: str, **params: object) -> None:
        """See `Driver`."""
        if name == "lock_chains":
            self._lock_chains(cast("list[str]", params["ids"]))
        elif self._run(name, params).fetchone() is None and name == "lock_host":
            raise HostUnavailableError("Another start of this host has taken over; this one begins nothing more.")

    def _lock_chains(self, ids: list[str]) -> None:
        """Lock chains, ascending over the whole transaction: one that comes out of order only if nobody has it."""
        missing = [id_ for id_ in ids if id_ not in self._chains]
        if not missing:
            return
        if self._chains and missing[0] < max(self._chains):
            found = {row[0] for row in self._run("try_chains", {"ids": missing})}
            if not found.issuperset(missing):
                raise SessionsGrew(frozenset(self._locked), frozenset({*self._chains, *missing}))
        else:
            self._run("lock_chains", {"ids": missing})
        self._chains.update(missing)

    def lock_sessions(self, ids: Sequence[str]) -> None:
        """See `Driver`; only the first lock of a transaction waits."""
        if self._locked or self._first:
            self.touch(ids)
        else:
            self._wait_for(ids)

    def lock_of_turn(self, turn_id: str, shown: Sequence[str], *, parties: bool) -> None:
        """See `Driver`."""
        named: dict[str, object] = {"id": turn_id, "shown": list(shown) or [""], "parties": parties}
        if self._first or self._locked:
            self.lock_sessions(sorted(row[0] for row in self._run("of_turn", named)))
        else:
            self._take("lock_of_turn", **named)

    def take_session(self, id_: str) -> bool:
        """See `Driver`."""
        if id_ not in self._locked:
            self._take("try_sessions", ids=[id_])
        self.skipped = self.skipped or id_ not in self._locked
        return id_ in self._locked

    def take_ready(self, other_than: str) -> str | None:
        """See `Driver`."""
        row = self._run("take_ready", {"other": other_than}).fetchone()
        if row is None:
            self.skipped = True
            return None
        self._locked.add(row[0])
        return row[0]

    def involve(self, ids: Sequence[str]) -> None:
        """See `Driver`."""
        self._begin_again_without(ids)

    def touch(self, ids: Sequence[str]) -> None:
        """Lock these out of order: without waiting, or by beginning again."""
        missing = [id_ for id_ in ids if id_ not in self._locked]
        if missing:
            self._take("try_sessions", ids=missing)
            self._begin_again_without(ids)

    def _begin_again_without(self, ids: Sequence[str]) -> None:
        if not self._locked.issuperset(ids):
            raise SessionsGrew(frozenset({*self._locked, *ids}), frozenset(self._chains))

    def _wait_for(self, ids: Sequence[str]) -> None:
        self._take("lock_sessions", ids=list(ids))
        # An id that names nothing needs no lock.
        self._locked.update(ids)

    def _take(self, name: str, **params: object) -> None:
        self._locked.update(row[0] for row in self._run(name, params))
