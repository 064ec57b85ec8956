"""Hosts, sessions and chains over a driver."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from coterie.core.chain import Chain
from coterie.core.ids import ChainId, HostId, SessionId
from coterie.core.inbound import Inbound
from coterie.core.permission import StoredMode
from coterie.core.session.session import Held, Session, status_of
from coterie.core.session.worktree import worktree_of
from coterie.core.text import nearest
from coterie.core.thinking import Thinking
from coterie.ports.rows import Reference, Used
from coterie.storage.sql.driver import Driver, Row
from coterie.storage.sql.statements import COLUMNS

WIDTH: Final = len(COLUMNS["sessions"].split()) + 1
"""How many values of a row are a session's, its creator last; what else a statement reads follows them."""

_NEAR_POOL = 1000
"""How many of the newest names are compared: a bound on the cost of a typing error."""


def session_of(row: Row) -> Session:
    """The session that a row of `{sessions}` and its creator holds."""
    id_, title, path, model, mode, held, streak, ready, revision, created_at, updated_at = row[:11]
    return Session(
        SessionId(id_),
        title,
        path,
        model,
        permission_mode=StoredMode(mode),
        held=Held(held) if held else None,
        streak=streak,
        ready=ready,
        revision=revision,
        created_at=created_at,
        updated_at=updated_at,
        inbound=Inbound(row[11]),
        current_turn=bool(row[12]),
        thinking=Thinking(row[13]) if row[13] else None,
        worktree=worktree_of(row[14]) if row[14] else None,
        created_by=row[WIDTH - 1],
    )


class SqlHosts:
    """Implements `ports.store.Hosts`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def begin_epoch(self, host_id: HostId, now: int) -> tuple[HostId, int]:
        """See the port."""
        known = self._driver.one("this_host")
        row = self._driver.one("begin_epoch", id=known[0] if known else host_id, now=now)
        assert row is not None
        return HostId(row[0]), row[1]


class SqlSessions:
    """Implements `ports.store.Sessions`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def lock(self, ids: Sequence[SessionId]) -> dict[SessionId, Session]:
        """See the port."""
        ordered = sorted(set(ids))
        if not ordered:
            return {}
        self._driver.lock_sessions(ordered)
        rows = self._driver.all("get_sessions", ids=ordered)
        return {session.id: session for session in map(session_of, rows)}

    def get(self, session_id: SessionId) -> Session | None:
        """See the port."""
        row = self._driver.one("get_sessions", ids=[session_id])
        return session_of(row) if row else None

    def known(self, session_id: SessionId) -> Session | None:
        """See the port."""
        row = self._driver.one("known_session", id=session_id)
        return replace(session_of(row), deleted=bool(row[WIDTH])) if row else None

    def add(self, session: Session, plugin: str | None = None) -> None:
        """See the port."""
        self._driver.write(
            "add_session",
            id=session.id,
            title=session.title,
            project_path=session.project_path,
            model=session.model,
            permission_mode=session.permission_mode.value,
            held=session.held.value if session.held else None,
            streak=session.streak,
            created_at=session.created_at,
            updated_at=session.updated_at,
            inbound=session.inbound.value,
            current_turn=int(session.current_turn),
            thinking=session.thinking.value if session.thinking else None,
            worktree=session.worktree.text() if session.worktree else None,
        )
        if session.created_by is not None:
            self._driver.write(
                "add_link",
                session_id=session.id,
                created_by=session.created_by,
                plugin=plugin,
                now=session.created_at,
            )

    def configure(self, session: Session) -> None:
        """See the port."""
        self._driver.write(
            "configure_session",
            id=session.id,
            title=session.title,
            model=session.model,
            permission_mode=session.permission_mode.value,
            inbound=session.inbound.value,
            current_turn=int(session.current_turn),
            thinking=session.thinking.value if session.thinking else None,
        )

    def free(self, session_id: SessionId) -> None:
        """See the port."""
        self._driver.write("free_session", id=session_id)

    def hold(self, session_id: SessionId, held: Held) -> None:
        """See the port."""
        self._driver.write("hold_session", id=session_id, held=held.value)

    def archive(self, session_id: SessionId) -> None:
        """See the port."""
        self._driver.write("archive_session", id=session_id)

    def bury(self, session_id: SessionId, now: int) -> None:
        """See the port."""
        self._driver.write("bury_session", id=session_id, now=now)

    def set_streak(self, session_id: SessionId, streak: int) -> None:
        """See the port."""
        self._driver.write("set_streak", id=session_id, streak=streak)

    def hold_waiting(self, held: Held, now: int) -> int:
        """See the port."""
        self._driver.write("tell_waiting", now=now)
        return self._driver.move("hold_waiting", held=held.value)


class SqlDirectory:
    """Implements `ports.reading.Directory`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def held(self) -> tuple[SessionId, ...]:
        """See the port."""
        return tuple(SessionId(row[0]) for row in self._driver.all("held_sessions"))

    def ready(self, other_than: SessionId | None) -> SessionId | None:
        """See the port."""
        row = self._driver.one("oldest_ready", other=other_than or "")
        return SessionId(row[0]) if row else None

    def page(self, before: tuple[int, int] | None, limit: int) -> tuple[tuple[Session, int, str], ...]:
        """See the port."""
        updated_at, number = before or (1 << 62, 1 << 62)
        rows = self._driver.all("page_sessions", updated_at=updated_at, number=number, limit=limit)
        return tuple(map(_listed, rows))

    def near(self, text: str, limit: int) -> tuple[str, ...]:
        """See the port."""
        names = {
            name: id_ for id_, title in self._driver.all("newest_names", limit=_NEAR_POOL) for name in (id_, title)
        }
        return tuple(
            name if names[name] == name else f"{names[name]} ({name})" for name in nearest(text, list(names), limit)
        )

    def references(self, ids: Sequence[SessionId]) -> dict[SessionId, Reference]:
        """See the port."""
        rows = self._driver.all("session_references", ids=sorted(set(ids))) if ids else ()
        return {SessionId(row[0]): _reference(row) for row in rows}

    def created_by(self, session_id: SessionId, limit: int) -> tuple[Reference, ...]:
        """See the port."""
        return tuple(map(_reference, self._driver.all("created_sessions", id=session_id, limit=limit)))

    def used(self, session_id: SessionId) -> Used:
        """See the port."""
        row = self._driver.one("used_by_session", session_id=session_id)
        assert row is not None
        return Used(*row)

    def workers_active(self, session_id: SessionId) -> int:
        """See the port."""
        row = self._driver.one("workers_active", id=session_id)
        return row[0] if row else 0

    def plugin_workers_active(self, plugin: str) -> int:
        """See the port."""
        self._driver.lock("lock_plugin", plugin=plugin)
        row = self._driver.one("plugin_workers_active", plugin=plugin)
        return row[0] if row else 0

    def buried(self) -> SessionId | None:
        """See the port."""
        row = self._driver.one("buried_session")
        return SessionId(row[0]) if row else None


def _listed(row: Row) -> tuple[Session, int, str]:
    number, running, waiting, newest = row[WIDTH:]
    return session_of(row), number, status_of(running=bool(running), waiting=bool(waiting), newest=newest)


def _reference(row: Row) -> Reference:
    return Reference(SessionId(row[0]), row[1], bool(row[2]))


class SqlChains:
    """Implements `ports.store.Chains`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def add(self, chain: Chain) -> None:
        """See the port."""
        self._driver.write(
            "add_chain", id=chain.id, messages=chain.messages, sessions=chain.sessions, created_at=chain.created_at
        )

    def get(self, chain_id: ChainId) -> Chain | None:
        """See the port."""
        row = self._driver.one("get_chain", id=chain_id)
        return Chain(*row) if row else None

    def lock(self, ids: Sequence[ChainId]) -> tuple[Chain, ...]:
        """See the port."""
        ordered = sorted(set(ids))
        self._driver.lock("lock_chains", ids=ordered)
        found = {row[0]: Chain(*row) for row in self._driver.all("get_chains", ids=ordered)}
        return tuple(found[id_] for id_ in ids if id_ in found)

    def charge(self, chain_id: ChainId, *, messages: int = 0, sessions: int = 0) -> None:
        """See the port."""
        self._driver.write("charge_chain", id=chain_id, messages=messages, sessions=sessions)

    def spend(self, chain_id: ChainId, *, cost: int, tokens: int) -> Chain:
        """See the port."""
        row = self._driver.one("spend_chain", id=chain_id, cost=cost, tokens=tokens)
        assert row is not None, "a turn has a chain"
        return Chain(*row)

    def grant(self, chain_id: ChainId, times: int) -> None:
        """See the port."""
        self._driver.write("grant_chain", id=chain_id, times=times)
