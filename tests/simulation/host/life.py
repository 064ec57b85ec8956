"""The life of one simulated host: people come, its process dies and starts again, and in the end all is at rest.

One seed says everything that happens: what people ask, what models answer, when writes, reads and answers arrive, what
is lost on the way, and at which statement the process dies.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.simulation.host.chance import Chance
from tests.simulation.host.chronicle import Chronicle
from tests.simulation.host.clients import Clients
from tests.simulation.host.disk import DiedError, Hit
from tests.simulation.host.feed import LossyFeed
from tests.simulation.host.loop import LoopClock, VirtualLoop
from tests.simulation.host.minds import BrokeError, Minds
from tests.simulation.host.people import FOLDER, People
from tests.simulation.host.store import Nature, SimulatedStore, Weather
from tests.simulation.host.witness import ALL, AT_ONCE_S, HostWitness, Sight

from coterie.bootstrap.engine import Engine, World, engine
from coterie.bootstrap.files import DATABASE
from coterie.core.errors import StorageError
from coterie.core.inbound import Across
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.operations.waiting import LOOK_S
from coterie.settings import Settings
from coterie.storage.sqlite.check import check
from coterie.storage.sqlite.writer import Answer, Job
from coterie.testing.ids import SeededIds

LIMITS: Final = replace(
    Limits(),
    hops_max=3,
    inbox_max=3,
    prompts_max=3,
    chain_messages_max=8,
    chain_sessions_max=2,
    chain_cost_max=1.0,
    chain_tokens_max=100,
    workers_active_max=2,
    model_requests_max=6,
    wait_max_s=15,
    accepted_per_request_max=2,
    accepted_per_turn_max=3,
    cancel_grace_s=1,
)
"""Small, so that a short life comes to each of them."""
PAUSES_S: Final = (0.0, 0.0, 0.0, 0.005, 0.02, 0.1, 0.5, 2.0)
"""How long nobody comes."""
REST_S: Final = 600.0
"""By then a host at which nobody asks anything is at rest."""
ROUND_S: Final = 4.0
MODEL: Final = Binding("local/mind", "openai-chat", None, "mind", default=True, available_for_subagents=True)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a life is like from its beginning to its end."""

    weather: Weather
    lost: float
    """The share of wake-ups that nobody hears."""
    stops: float
    """How likely it is, each time somebody comes, that the host is stopped before."""
    turns_max: int
    resume: bool
    across: Across

    @property
    def patience_s(self) -> float:
        """How late what is to happen may happen."""
        if self.weather.fills:
            return float("inf")
        return AT_ONCE_S * self.weather.slowness + (LOOK_S if self.lost else 0.0)

    @classmethod
    def of(cls, chance: Chance) -> "Circumstances":
        """Draw them."""
        return cls(
            Weather(
                dies=chance.one_of((0.0, 0.02, 0.03, 0.05)),
                fills=chance.one_of((0.0, 0.0, 0.08)),
                scatters=chance.one_of((0.0, 0.3)),
                splits=chance.one_of((0.0, 0.5)),
                slowness=chance.one_of((1.0, 1.0, 10.0)),
            ),
            chance.one_of((0.0, 0.0, 0.3, 0.8)),
            chance.one_of((0.0, 0.0, 0.03)),
            chance.one_of((1, 2, 3, 8, 8)),
            chance.happens(0.3),
            chance.one_of((Across.ALLOW, Across.ASK, Across.ASK, Across.DENY)),
        )


class HostLife:
    """One host from its first start to its rest."""

    opens: type[SimulatedStore] = SimulatedStore
    """What its ledger is kept in."""

    def __init__(self, folder: Path, seed: int, steps: Sequence[int]) -> None:
        self.chronicle = Chronicle()
        self._folder, self._seed, self._left = folder, seed, deque(steps)
        self._like = Circumstances.of(Chance(f"{seed}"))
        self.witness = HostWitness(self._like.turns_max, self._like.patience_s)
        self._epoch = 0
        self._now_s, self._ahead_ms = 0.0, 0
        self._store: SimulatedStore | None = None
        self._started = False
        """Whether the process of now has come so far that people may come."""
        self._before = Sight({}, frozenset())
        """What the last process has left."""
        self._checks = 0

    @property
    def story(self) -> str:
        """All that has happened."""
        return "\n".join((f"seed {self._seed}: {self._like}", *self.chronicle.lines))

    def lead(self) -> None:
        """Lead it to its end.

        Raises:
            Exception: What was wrong, with the story up to there as its note.
        """
        log = logging.getLogger("coterie")
        log.addHandler(self.chronicle)
        told, log.propagate = log.propagate, False
        try:
            while self._lives():
                pass
            self._check_file()
        except Exception as fault:
            fault.add_note(self.story)
            raise
        finally:
            log.removeHandler(self.chronicle)
            log.propagate = told

    def _check_file(self) -> None:
        _, broken = check(self._folder / DATABASE)
        assert broken == (), str(broken)

    def _lives(self) -> bool:
        """Run one process to its end; returns whether there is another one after it."""
        loop = VirtualLoop(self._now_s)
        loop.set_exception_handler(self.chronicle.complained)
        self.chronicle.loop = loop
        again = True
        try:
            again = loop.run_until_complete(self._process())
        except DiedError:
            self._dies()
        except StorageError as error:
            if self._started:
                raise
            self.chronicle.tell(f"THE HOST DOES NOT START: {error}")
        except RuntimeError:
            # Somebody has stopped the loop.
            if not self.chronicle.faults:
                raise
        finally:
            self.chronicle.loop = None
            self._now_s = loop.time()
            _empty(loop)
        if self.chronicle.faults:
            raise self.chronicle.faults[0]
        if again:
            self._epoch += 1
        return again

    def _dies(self) -> None:
        """Keep the files as they are at this moment, for the next process."""
        assert self._store is not None
        self.chronicle.tell("THE PROCESS DIES")
        self._ends(self._store)
        copies: dict[str, bytes] = {}
        for name in (DATABASE, f"{DATABASE}-wal"):
            if (self._folder / name).exists():
                copies[name] = (self._folder / name).read_bytes()
        self._store.bury()
        for name, found in copies.items():
            (self._folder / name).write_bytes(found)

    def _ends(self, store: SimulatedStore) -> None:
        """A process has come to its end, one way or the other."""
        if self._started:
            self._before = store.look(lambda tx, _: self.witness.sight(tx), None)
            store.look(lambda tx, _: self.witness.check(tx), None)
        self._started = False

    def _chance(self, of: str) -> Chance:
        return Chance(f"{self._seed}.{self._epoch}.{of}")

    async def _process(self) -> bool:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop, self._ahead_ms)
        minds = Minds(self._chance("minds"), self.chronicle, self.witness, clock)
        feed = LossyFeed(self._chance("feed"), self._like.lost)
        weather = replace(self._like.weather)
        world = World(
            clock,
            SeededIds(self._seed * 1000 + self._epoch),
            feed,
            partial(self._open, Nature(self._chance("store"), weather, self._saw, self._ends)),
            lambda: minds,
        )
        self.chronicle.excused = (DiedError, BrokeError, *((StorageError,) if weather.fills else ()))
        self.chronicle.tell(f"THE HOST STARTS, epoch {self._epoch}")
        async with engine(self._settings(), world=world) as host:
            assert self._store is not None
            self._starts(self._store)
            clients = Clients(host.operations, self.chronicle, self.witness)
            clients.full = weather.fills > 0
            await self._live(clients, clock)
            if not self._left:
                feed.lost, minds.calm = 0.0, True
                weather.dies = weather.fills = 0.0
                await self._rest(host, clients)
            self.chronicle.tell("THE HOST STOPS")
        await clients.leave()
        return bool(self._left)

    def _settings(self) -> Settings:
        limits = replace(LIMITS, turns_max=self._like.turns_max)
        return Settings(
            self._folder, across_projects=self._like.across, resume=self._like.resume, limits=limits, models=(MODEL,)
        )

    def _open(self, nature: Nature, *given: Any, **named: Any) -> SimulatedStore:
        self._store = self.opens(*given, **named, nature=nature)
        return self._store

    # What is seen

    def _saw(self, store: SimulatedStore, hit: Hit | None, jobs: Sequence[Job], answers: Sequence[Answer]) -> None:
        """A batch was written."""
        now_s = asyncio.get_running_loop().time()
        changes = store.look(lambda tx, _: self.witness.see(tx, now_s, store.clock.now_ms()), None)
        names = [getattr(job.use_case, "__qualname__", "").split(".")[0] for job in jobs]
        faults = [type(answer.error).__name__ for answer in answers if answer.error is not None]
        self.chronicle.tell(f"commit of {', '.join(names)}: {changes} changes {faults or ''} {hit or ''}")
        self._checks += 1
        if self._checks % 16 == 0 and self._started:
            store.look(lambda tx, _: self.witness.check(tx), None)

    def _starts(self, store: SimulatedStore) -> None:
        """A process is ready."""
        self._started = True
        self.witness.starts()
        store.look(lambda tx, _: self.witness.check(tx), None)
        store.look(lambda tx, _: self.witness.has_kept(tx, self._before, resume=self._like.resume), None)

    # What happens

    async def _live(self, clients: Clients, clock: LoopClock) -> None:
        chance = self._chance("people")
        people = People(chance, self.chronicle, self.witness)
        while len(self.witness.sessions) < 3:
            folder = {"projectPath": FOLDER} if chance.happens(0.3) else {}
            await clients.ask("session.create", title=self.chronicle.fresh("session"), **folder)
        while self._left and not chance.happens(self._like.stops):
            step = self._left.popleft()
            people.chance = chance = Chance(f"{self._seed}.{step}")
            self._look_round(people)
            request = people.act()
            clients.send(request, patience_s=chance.one_of((None, None, None, None, None, 0.003, 0.05)))
            if request.keyed and chance.happens(0.1):
                clients.send(request)
            if chance.happens(0.05):
                clock.ahead_ms += chance.one_of((-60_000, -3000, 3000, 60_000))
                self._ahead_ms = clock.ahead_ms
                self.chronicle.tell(f"the clock steps to {clock.ahead_ms} ms")
            await asyncio.sleep(chance.one_of(PAUSES_S))

    def _look_round(self, people: People) -> None:
        assert self._store is not None
        people.waiting, people.questions = self._store.look(
            lambda tx, _: (
                [one for id_ in self.witness.sessions for one in tx.inputs.page(id_, ALL)],
                [one.id for one in tx.pairs.pending(ALL)],
            ),
            None,
        )

    # The end

    async def _rest(self, host: Engine, clients: Clients) -> None:
        loop = asyncio.get_running_loop()
        self.chronicle.tell("NOBODY COMES ANY MORE")
        end_s = loop.time() + REST_S
        while left := await self._left_at_rest():
            if loop.time() > end_s:
                raise AssertionError(f"it comes to no rest: {left}")
            await self._let_go(clients)
            await asyncio.sleep(ROUND_S)
        assert self._store is not None
        self._store.look(lambda tx, _: self.witness.check(tx), None)
        slots = 0
        while host.supervisor.reserve():
            slots += 1
        assert slots == self._like.turns_max, f"{slots} slots are free at rest"
        assert host.supervisor.workers == 0

    async def _let_go(self, clients: Clients) -> None:
        await clients.ask("session.release")
        for session in list(self.witness.sessions):
            await clients.ask("session.release", sessionId=session)

    async def _left_at_rest(self) -> list[str]:
        """What keeps the host from its rest; it is at rest when all that is written has been told, too."""
        assert self._store is not None
        left = self._store.look(lambda tx, _: self.witness.rests(tx), None)
        if not left:
            await asyncio.sleep(ROUND_S)
            left = self._store.look(lambda tx, _: self.witness.rests(tx), None)
        return left


def _empty(loop: VirtualLoop) -> None:
    """Let go of all that a process has left in memory; nothing of it reaches file or story."""
    for _ in range(20):
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if not left:
            break
        for task in left:
            task.cancel()
        with suppress(BaseException):
            loop.run_until_complete(asyncio.wait(left, timeout=1))
    with suppress(BaseException):
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
