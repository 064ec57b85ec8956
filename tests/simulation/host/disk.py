"""A disk that fills up, and a machine that dies, at a statement or a commit of a ledger's one connection."""

import sqlite3
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, cast

WRITES: Final = ("INSERT", "UPDATE", "DELETE")
"""How statements begin that need room on the disk."""


class Hit(StrEnum):
    """What may befall one batch of writes."""

    DIES_BEFORE = "dies before the batch"
    DIES_AMONG = "dies between two statements"
    DIES_AT_COMMIT = "dies before the commit"
    DIES_AFTER = "dies after the commit"
    FULL = "full in a statement"
    FULL_AND_OVER = "full in a statement, which ends the transaction"
    FULL_AT_COMMIT = "full in the commit"
    UNKNOWN_COMMIT = "a commit that was kept is said to have failed"


DEATHS: Final = (
    *(Hit.DIES_BEFORE, Hit.DIES_AMONG, Hit.DIES_AMONG, Hit.DIES_AMONG),
    *(Hit.DIES_AT_COMMIT, Hit.DIES_AT_COMMIT, Hit.DIES_AFTER, Hit.DIES_AFTER),
)
SHORTAGES: Final = (Hit.FULL, Hit.FULL_AND_OVER, Hit.FULL_AT_COMMIT, Hit.UNKNOWN_COMMIT, Hit.UNKNOWN_COMMIT)


class DiedError(KeyboardInterrupt):
    """The process is no more: nothing that would run after this does. An event loop lets only such errors through."""


def fault(text: str, code: int) -> sqlite3.OperationalError:
    """What SQLite says of a disk."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def full() -> sqlite3.OperationalError:
    """It has no room."""
    return fault("database or disk is full", sqlite3.SQLITE_FULL)


class Disk:
    """What is to befall the batch that is written now."""

    def __init__(self) -> None:
        self.dead = False
        """The machine has died."""
        self._hit: Hit | None = None
        self._left = 0

    def befall(self, hit: Hit | None, after: int = 1) -> None:
        """Let *hit* happen in the next batch; where it is one among statements, at the one of number *after*."""
        self._hit, self._left = hit, after

    def die(self) -> None:
        """End the process here."""
        self.dead = True
        raise DiedError

    def die_at_commit(self, connection: sqlite3.Connection) -> None:
        """End the process when all is written and nothing kept."""
        del connection
        self.die()

    def before(self, connection: sqlite3.Connection, sql: str) -> None:
        """A statement is about to run."""
        if self.dead:
            raise DiedError
        match self._hit:
            case Hit.DIES_AMONG if self._is_time():
                self.die()
            case Hit.DIES_AT_COMMIT if sql == "COMMIT":
                self.die_at_commit(connection)
            case (Hit.FULL | Hit.FULL_AND_OVER) as hit if sql.lstrip()[:6].upper() in WRITES and self._is_time():
                self._hit = None
                if hit is Hit.FULL_AND_OVER:
                    connection.rollback()
                raise full()
            case Hit.FULL_AT_COMMIT if sql == "COMMIT":
                self._hit = None
                raise full()
            case Hit.UNKNOWN_COMMIT if sql == "COMMIT":
                self._hit = None
                connection.execute("COMMIT")
                raise fault("disk I/O error", sqlite3.SQLITE_IOERR)
            case _:
                pass

    def _is_time(self) -> bool:
        self._left -= 1
        return self._left == 0


class FaultyConnection:
    """A connection on such a disk; as much of `sqlite3.Connection` as a writer needs."""

    def __init__(self, connection: sqlite3.Connection, disk: Disk) -> None:
        self.real, self._disk = connection, disk
        # The machine dies only in the story, and its file is copied as it is then.
        connection.execute("PRAGMA synchronous = OFF")

    def execute(self, sql: str, params: dict[str, object] | Iterable[Any] = ()) -> sqlite3.Cursor:
        """Run one statement, if nothing befalls it."""
        self._disk.before(self.real, sql)
        return self.real.execute(sql, cast("Any", params))

    def executemany(self, sql: str, params: Iterable[Any]) -> sqlite3.Cursor:
        """Run one statement for many rows, if nothing befalls it."""
        self._disk.before(self.real, sql)
        return self.real.executemany(sql, params)

    @property
    def in_transaction(self) -> bool:
        """See `sqlite3.Connection`."""
        return self.real.in_transaction

    @property
    def total_changes(self) -> int:
        """See `sqlite3.Connection`."""
        return self.real.total_changes

    def rollback(self) -> None:
        """Undo, unless nobody is there any more who could."""
        if not self._disk.dead:
            self.real.rollback()

    def close(self) -> None:
        """Close, unless nobody is there any more who could."""
        if not self._disk.dead:
            self.real.close()
