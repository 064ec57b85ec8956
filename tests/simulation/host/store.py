"""The ledger of a simulated host: the real writer on a real file, without threads, at times that chance says.

Writes gather while others are on their way, reads see some moment between question and answer, and answers may overtake
each other, as they may over any wire.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from tests.simulation.host.chance import Chance
from tests.simulation.host.disk import DEATHS, SHORTAGES, Disk, FaultyConnection, Hit

from coterie.core.errors import HostUnavailableError
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed
from coterie.ports.ids import IdSource
from coterie.ports.rows import HostFacts
from coterie.ports.store import C, Query, R, UseCase
from coterie.storage.sql.transaction import SqlNouns, SqlTx
from coterie.storage.sqlite.database import SqliteDriver, connect, write_fault
from coterie.storage.sqlite.writer import Answer, Job, SqliteWriter

DELAYS_S: Final = (0.0, 0.0, 0.0, 0.0, 0.001, 0.004, 0.02)
"""How long a write, a read or an answer may be on its way."""
AMONG_MAX: Final = 40
WRITES_MAX: Final = 12
"""A batch is hit at one of its first statements, or where the disk is full at one of its first writes."""


@dataclass(slots=True)
class Weather:
    """What shares of its batches a store loses or delays."""

    dies: float = 0.0
    """With these the process dies."""
    fills: float = 0.0
    """For these the disk has no room."""
    scatters: float = 0.0
    """The answers of these come one by one, in any order."""
    splits: float = 0.0
    """These are written before all that waits is gathered."""
    slowness: float = 1.0
    """How many times longer than usual all is on its way."""


@dataclass(frozen=True, slots=True)
class Nature:
    """What acts on a store from outside, and who looks on."""

    chance: Chance
    weather: Weather
    seen: Callable[["SimulatedStore", Hit | None, Sequence[Job], Sequence[Answer]], None]
    """Called after each batch, before anything of it is answered."""
    closes: Callable[["SimulatedStore"], None]
    """Called when all is written and the file is still open."""


@dataclass(frozen=True, slots=True)
class _Asked:
    job: Job
    future: asyncio.Future[Any]
    brief: bool


class SimulatedStore:
    """Implements `bootstrap.engine.HostStore` on a loop with virtual time."""

    stands_on: type[Disk] = Disk

    def __init__(
        self, path: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed, nature: "Nature"
    ) -> None:
        self.disk, self.clock = self.stands_on(), clock
        self._path, self._feed = path, feed
        self._chance, self._weather, self._nature = nature.chance, nature.weather, nature
        self._writer = SqliteWriter(path, host, clock, ids)
        self._reader = SqliteDriver(connect(path, read_only=True))
        self._nouns = SqlNouns(self._reader)
        self._loop = asyncio.get_running_loop()
        self._asked: list[_Asked] = []
        self._due = False
        """A batch is to be written soon."""
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None
        """Done when the last batch of a store that closes is written."""

    def become(self, host: HostFacts) -> None:
        """See `HostStore`."""
        self._writer.host = host

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        self._refuse()
        future: asyncio.Future[R] = self._loop.create_future()
        self._asked.append(_Asked(Job(use_case, command), future, brief))
        self._gather()
        return await future

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port; what is brief may be told at once."""
        self._refuse()
        if brief and self._chance.happens(0.5):
            return self.look(query, command)
        await asyncio.sleep(self._delay_s())
        self._refuse()
        found = self.look(query, command)
        await asyncio.sleep(self._delay_s())
        return found

    def look(self, query: Query[C, R], command: C) -> R:
        """What a reader would be told now; also of one who has died."""
        connection = self._reader.connection
        try:
            connection.execute("BEGIN")
            return query(SqlTx(self._nouns, self._writer.host, self._writer.written_at), command)
        except sqlite3.Error as error:
            raise write_fault(self._path, error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    async def close(self) -> None:
        """See `HostStore`."""
        self._closed = True
        if self._asked:
            self._emptied = self._loop.create_future()
            await self._emptied
        if not self.disk.dead:
            self._nature.closes(self)
            self._writer.close()
            self._reader.connection.close()

    def bury(self) -> None:
        """Close what a process that has died held; the system does that, and nothing is written."""
        found: object = self._writer.driver.connection
        if isinstance(found, FaultyConnection):
            found.real.close()
        else:
            self._writer.close()
        self._reader.connection.close()

    def _refuse(self) -> None:
        if self.disk.dead:
            # Whoever asks is no more either.
            raise asyncio.CancelledError
        if self._closed:
            raise HostUnavailableError("The host is stopping.")

    def _gather(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_later(self._delay_s(), self._write)

    def _write(self) -> None:
        self._due = False
        if self.disk.dead or not self._asked:
            return
        count = len(self._asked)
        if self._chance.happens(self._weather.splits):
            count = self._chance.up_to(count)
        batch, self._asked = self._asked[:count], self._asked[count:]
        here = all(one.brief for one in batch) and self._chance.happens(0.5)
        answers = self._written([one.job for one in batch], here=here)
        if here:
            self._tell_all(batch, answers, _topics(answers))
        else:
            self._send(batch, answers)
        if self._asked:
            self._gather()
        elif self._emptied is not None:
            self._emptied.set_result(None)

    def _written(self, jobs: Sequence[Job], *, here: bool) -> list[Answer]:
        hit = self._hit()
        if hit is Hit.DIES_BEFORE:
            self.disk.die()
        self._stand_on_disk()
        self.disk.befall(hit, self._chance.up_to(AMONG_MAX if hit in DEATHS else WRITES_MAX))
        answers = (self._writer.try_write(jobs) if here else None) or self._writer.write(jobs)
        if self.disk.dead:
            # The writer outlives whatever a use case raises, but not this.
            self.disk.die()
        self.disk.befall(None)
        self._nature.seen(self, hit, jobs, answers)
        if hit is Hit.DIES_AFTER:
            self.disk.die()
        return answers

    def _send(self, batch: Sequence[_Asked], answers: Sequence[Answer]) -> None:
        topics = _topics(answers)
        if not self._chance.happens(self._weather.scatters):
            self._loop.call_later(self._delay_s(), self._tell_all, batch, answers, topics)
            return
        for one, answer in zip(batch, answers, strict=True):
            self._loop.call_later(self._delay_s(), self._tell, one, answer)
        self._loop.call_later(self._delay_s(), self._wake, topics)

    def _stand_on_disk(self) -> None:
        """Let the disk come before the writer's connection; after a lost one it comes before the batch after next."""
        driver = self._writer.driver
        if not isinstance(driver.connection, FaultyConnection):
            driver.connection = cast("sqlite3.Connection", FaultyConnection(driver.connection, self.disk))

    def _hit(self) -> Hit | None:
        if self._chance.happens(self._weather.dies):
            return self._chance.one_of(DEATHS)
        return self._chance.one_of(SHORTAGES) if self._chance.happens(self._weather.fills) else None

    def _delay_s(self) -> float:
        return self._chance.one_of(DELAYS_S) * self._weather.slowness

    def _tell_all(self, batch: Sequence[_Asked], answers: Sequence[Answer], topics: Sequence[str]) -> None:
        for one, answer in zip(batch, answers, strict=True):
            self._tell(one, answer)
        self._wake(topics)

    def _tell(self, one: _Asked, answer: Answer) -> None:
        if self.disk.dead or one.future.done():
            return
        if answer.error is not None:
            one.future.set_exception(answer.error)
        else:
            one.future.set_result(answer.result)

    def _wake(self, topics: Sequence[str]) -> None:
        if not self.disk.dead:
            self._feed.wake(topics)


def _topics(answers: Sequence[Answer]) -> list[str]:
    return sorted({topic for answer in answers for topic in answer.topics})
