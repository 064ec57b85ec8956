"""Many processes that write to one session at once: each key makes a row or is told that the session is busy."""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.kills import books, comparing, plan
from tests.kills.crew import crew
from tests.kills.driver import world


@dataclass(frozen=True)
class Crowd:
    """What came of it."""

    database: str
    senders: int
    requests: int
    """First ones of a key."""
    rows: int
    """Messages that the ledger has."""
    busy: int
    """Requests that were refused, with AGENT_BUSY."""
    repeated: int
    """Accepted requests that were made again with their key."""
    verify: str
    seconds: float
    """From the first request to the last answer."""
    faults: list[str]

    @property
    def ok(self) -> bool:
        """Whether the figures add up and nothing is broken."""
        return not self.faults and self.rows + self.busy == self.requests


def write(folder: Path, senders: int, each: int, database: str = "sqlite") -> Crowd:
    """Let *senders* processes send *each* messages with keys to one session, and repeat some.

    Args:
        folder: Empty; it holds the home, the data and the logs behind this.
        senders: Processes, each with a session that it speaks for.
        each: Messages of one.
        database: A name of `STORES`.
    """
    with ExitStack() as stack:
        here = stack.enter_context(world(folder, database))
        with here.host() as host:
            target, *sources = (host.session(f"session {number}") for number in range(senders + 1))
            plans = [plan.alike(number, each, source, target) for number, source in enumerate(sources)]
            clients = stack.enter_context(crew(plans))
            # The first turn waits for the vendors' SDKs; the queue should move while all of them write.
            host.ask("session.prompt", sessionId=sources[0], text="plain first")
            host.idle(sources[0])
            began = time.perf_counter()
            clients.meet(host)
            clients.left()
            seconds = time.perf_counter() - began
            host.idle(target)
            here.sound(host.ask("ledger.verify"))
            assert host.process.stop() == 0, host.process.err
        rows, answers = books.read(here.store), clients.answers
        faults = here.faults + comparing.compare(rows, answers, here.seen())
        first = [one for one in answers if not one.repeats]
        refused = Counter(one.refused for one in first)
        return Crowd(
            database=database,
            senders=senders,
            requests=len(first),
            rows=sum(one.target == target for one in rows.messages),
            busy=refused["AGENT_BUSY"],
            repeated=len(answers) - len(first),
            verify="clean" if not here.faults else f"{len(here.faults)} faults",
            seconds=round(seconds, 1),
            faults=[f"{one.kind}: {one.text}" for one in faults],
        )
