"""Kills real hosts under load, starts them again, and reports what that has broken."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from tests.guard import Guard
from tests.host.program import BOUND_S, Host, Models, Process, Seat, scripted
from tests.kills import books, comparing, plan
from tests.kills.comparing import Fault
from tests.kills.crew import Crew, crew
from tests.kills.stores import STORES, LedgerStore

CLIENTS: Final = 8
ENTRIES: Final = 200
"""What one client has to ask for, for each kill: more than it can."""
FEW_PLACES: Final = "[limits]\ninbox_max = 4\nprompts_max = 2\n"
"""Full queues let in as much as turns end, so that a kill comes while they do."""
LOOK_S: Final = 0.001
EPOCH: Final = "SELECT MAX(epoch) FROM hosts"
ENDED: Final = "SELECT COUNT(*) FROM turns WHERE state <> 'running'"
OPEN: Final = "SELECT (SELECT COUNT(*) FROM inputs) + (SELECT COUNT(*) FROM turns WHERE state = 'running')"


@dataclass(frozen=True)
class Report:
    """What came of it. All counts of `faults` must be nought."""

    database: str
    seed: int
    kills: int
    accepted: int
    """Messages of which a client was told."""
    prompts: int
    """Prompts of which a client was told."""
    repeated: int
    """Accepted requests that were made again with their key."""
    settled: int
    """Messages that have ended, completions included."""
    completions: int
    interrupted: int
    """Turns that the kills have cut off."""
    lost: int
    doubled: int
    replayed: int
    begun: int
    verify: str
    """`clean`, or what is not."""
    seconds: float
    faults: list[str]

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return not self.faults


@dataclass
class World:
    """Where hosts live and die."""

    seat: Seat
    data: Path
    store: LedgerStore
    models: Models
    faults: list[Fault] = field(default_factory=list[Fault])
    _started: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """For each host that has answered: the model requests before that, and its epoch."""

    @contextmanager
    def starting(self) -> Generator[Process]:
        """Start a host inside of the block, without waiting for its first word."""
        words = ("up", "--data", self.data, "--port", "0", "--no-open", "--json")
        with self.seat.start(*words) as process, Guard(process.popen.pid):
            yield process

    @contextmanager
    def host(self) -> Generator[Host]:
        """Run a host inside of the block."""
        with self.starting() as process:
            host = Host(process, self.data, process.said())
            self._started.append((self.models.asked, self.epoch))
            yield host

    @property
    def epoch(self) -> int:
        """The number of starts that have reached the ledger."""
        return cast("int", self.store.rows(EPOCH)[0][0])

    def watch(self, process: Process, sql: str) -> None:
        """Return when what *sql* reads has changed; the process has a thousandth of a second to be ahead of this."""
        before = self.store.rows(sql)
        for _ in range(int(BOUND_S / LOOK_S)):
            if self.store.rows(sql) != before:
                return
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"it ended with {process.popen.wait(LOOK_S)}: {process.err}")
        raise AssertionError(f"nothing has changed within {BOUND_S} s: {sql}")

    def sound(self, told: dict[str, Any]) -> None:
        """Take in what a check of the ledger has found."""
        self.faults += [Fault(comparing.Kind.UNSOUND, f"verify: {one}") for one in told["failures"]]

    def seen(self) -> list[books.Asked]:
        """What reached the model."""
        found, bounds = list[books.Asked](), [*self._started[1:], (self.models.asked, 0)]
        for (first, epoch), (after, _) in zip(self._started, bounds, strict=True):
            bodies = cast("list[dict[str, Any]]", self.models.server.requests[first:after])
            found += [books.asked(body, epoch) for body in bodies]
        return found


@contextmanager
def world(folder: Path, database: str, settings: str = "") -> Generator[World]:
    """Make an empty home in *folder*, a model that outlives the hosts, and a ledger on a *database*."""
    home, data = folder / "home", folder / "data"
    home.mkdir()
    with scripted(plan.SCRIPT) as models, STORES[database](data) as store:
        models.configure(data, store.settings + settings)
        yield World(Seat(home), data, store, models)


@dataclass
class Life:
    """One world through all its kills."""

    world: World
    seed: int
    leads: list[str] = field(default_factory=list[str])
    workers: list[str] = field(default_factory=list[str])
    probe: str = ""
    """A session in which nobody else asks for anything."""

    def found(self, host: Host) -> None:
        """Make the sessions that all of it happens in."""
        self.probe = host.session("probe")
        self.leads = [host.session(f"lead {number}") for number in range(plan.LEADS)]
        self.workers = [host.session(f"worker {number}") for number in range(plan.WORKERS)]

    def plans(self, kills: int) -> list[list[plan.Entry]]:
        """What the clients ask for."""
        names = [f"{self.seed}-{number}" for number in range(CLIENTS)]
        return [plan.mixed(name, ENTRIES * (kills + 1), self.leads, self.workers) for name in names]

    def survive(self, host: Host, dead: books.Rows, *, probed: bool) -> None:
        """See that the start has run and lost nothing; if *probed*, while it does run what a person asks for."""
        if probed:
            host.ask("session.prompt", sessionId=self.probe, text=f"probe {self.world.epoch}")
            host.idle(self.probe)
        self.world.faults += comparing.restarted(dead, books.read(self.world.store), self.probe)
        self.world.sound(host.ask("ledger.verify"))

    def suffer(self, host: Host, clients: Crew, moment: plan.Moment) -> None:
        """Load the host, and kill it while requests are under way."""
        if moment.release_first:
            host.ask("session.release")
            clients.meet(host)
        else:
            clients.meet(host)
            host.ask("session.release")
        clients.until_accepted(moment.accepted)
        server = self.world.store.server
        if moment.kind is plan.Kind.DATABASE and server is not None:
            server.kill()
            server.start()
            clients.until_accepted(moment.accepted)
        if moment.kind is plan.Kind.SETTLING:
            self.world.watch(host.process, ENDED)
        else:
            time.sleep(moment.pause_s)
        assert host.process.popen.poll() is None, f"it ended by itself: {host.process.err}"
        host.process.kill()
        clients.left()

    def strike(self, moment: plan.Moment) -> None:
        """Kill a host that has just begun its epoch, in the middle of what it makes of the last one."""
        with self.world.starting() as process:
            self.world.watch(process, EPOCH)
            time.sleep(moment.pause_s)
            process.kill()

    def rest(self, host: Host, clients: Crew) -> None:
        """Let the clients have their answers and all work come to its end."""
        clients.meet(host, last=True)
        clients.left()
        for _ in range(10):
            host.ask("session.release")
            host.idle(*self.leads, *self.workers)
            if self.world.store.rows(OPEN) == [(0,)]:
                break


def run(folder: Path, seed: int, kills: int, database: str = "sqlite") -> Report:
    """Kill a host so many times.

    Args:
        folder: Empty; it holds the home, the data and the logs behind this.
        seed: The same seed asks for the same and kills after the same number of accepted requests.
        kills: How often.
        database: A name of `STORES`.
    """
    began = time.perf_counter()
    with ExitStack() as stack:
        here = stack.enter_context(world(folder, database, FEW_PLACES))
        life, clients, dead = Life(here, seed), None, books.read(here.store)
        for moment in plan.moments(seed, kills, database=here.store.server is not None):
            if moment.kind is plan.Kind.RECOVERY:
                life.strike(moment)
                continue
            with here.host() as host:
                if clients is None:
                    life.found(host)
                    clients = stack.enter_context(crew(life.plans(kills)))
                life.survive(host, dead, probed=moment.probed)
                life.suffer(host, clients, moment)
            dead = books.read(here.store)
        assert clients is not None, "there was a kill"
        with here.host() as host:
            life.survive(host, dead, probed=True)
            life.rest(host, clients)
            assert host.process.stop() == 0, host.process.err
        here.sound(json.loads(here.seat.run("verify", "--data", here.data, "--json").out))
        rows = books.read(here.store)
        faults = list(dict.fromkeys(here.faults + comparing.compare(rows, clients.answers, here.seen())))
        return _report(rows, clients, faults, about=(database, seed, kills), seconds=time.perf_counter() - began)


def _report(
    rows: books.Rows, clients: Crew, faults: list[Fault], *, about: tuple[str, int, int], seconds: float
) -> Report:
    database, seed, kills = about
    answers = clients.answers
    counted = Counter(one.kind for one in faults)
    return Report(
        database=database,
        seed=seed,
        kills=kills,
        accepted=_count(answers, "collaboration.send", "messageId"),
        prompts=_count(answers, "session.prompt", "inputId"),
        repeated=sum(one.repeats for one in answers),
        settled=sum(one.state in comparing.SETTLED for one in rows.messages),
        completions=sum(one.reply_to is not None for one in rows.messages),
        interrupted=sum(one.state == "interrupted" for one in rows.turns),
        lost=counted[comparing.Kind.LOST],
        doubled=counted[comparing.Kind.DOUBLED],
        replayed=counted[comparing.Kind.REPLAYED],
        begun=counted[comparing.Kind.BEGUN],
        verify="clean" if not counted[comparing.Kind.UNSOUND] else f"{counted[comparing.Kind.UNSOUND]} faults",
        seconds=round(seconds, 1),
        faults=[f"{one.kind}: {one.text}" for one in faults],
    )


def _count(answers: list[books.Answer], method: str, field: str) -> int:
    return len({one for ids in comparing.told(answers, method, field).values() for one in ids})
