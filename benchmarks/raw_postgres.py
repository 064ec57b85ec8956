"""What does PostgreSQL itself need for the same: a round trip of four commits, and single rows on many connections?"""

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Final

import psycopg
from tests.postgres import PostgresServer, default_binaries

from benchmarks.bench import Bench
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, since_ms, values
from benchmarks.raw import COLUMNS, PAYLOAD, Raw

CONNECTIONS: Final = (1, 8, 32)
_TABLE: Final = (
    f"CREATE TABLE messages (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {COLUMNS}, reply_to BIGINT)"
)


class RawPostgres(Raw):
    """The baseline on PostgreSQL, which flushes each commit unless it is told otherwise."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def make_table(self) -> None:
        """Make the one table."""
        self._connection.execute(_TABLE)

    def settings(self) -> str:
        """What decides whether a commit is flushed."""
        names = ("fsync", "synchronous_commit")
        found = [self._connection.execute(f"SHOW {name}").fetchone() for name in names]
        return ", ".join(f"{name} {row[0] if row else ''}" for name, row in zip(names, found, strict=True))

    def insert(self) -> int:
        """See `Raw`."""
        row = self._connection.execute(
            "INSERT INTO messages (source, target, state, payload) VALUES ('a', 'b', 'queued', %s) RETURNING id",
            (PAYLOAD,),
        ).fetchone()
        assert row is not None, "a row was inserted"
        return row[0]

    def round_trip(self) -> None:
        """See `Raw`."""
        number = self.insert()
        run = self._connection.execute
        run("UPDATE messages SET state = 'running' WHERE id = %s", (number,))
        run("UPDATE messages SET state = 'completed', result = %s WHERE id = %s", (PAYLOAD, number))
        run(
            "INSERT INTO messages (source, target, state, payload, reply_to) VALUES ('b', 'a', 'queued', %s, %s)",
            (PAYLOAD, number),
        )

    def close(self) -> None:
        """See `Raw`."""
        self._connection.close()


@contextmanager
def raw_postgres(server: PostgresServer) -> Generator[RawPostgres]:
    """A fresh baseline on a server that runs."""
    raw = RawPostgres(server.fresh("raw"))
    try:
        raw.make_table()
        yield raw
    finally:
        raw.close()


def _inserting(connections: list[Raw], threads: ThreadPoolExecutor, count: int) -> Block:
    """A block of one lap: every connection inserts *count* rows, one after the other."""

    def one(connection: Raw) -> None:
        for _ in range(count):
            connection.insert()

    async def block() -> list[Lap]:
        start = time.perf_counter_ns()
        list(threads.map(one, connections))
        return [{"rate": len(connections) * count / since_ms(start) * 1000}]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure on a server of its own, whose files are in the system's folder for temporary ones."""
    if default_binaries() is None:
        return [Figure("raw PostgreSQL", None, "", note="skipped: this machine has no PostgreSQL for tests")]
    with ExitStack() as stack:
        server = stack.enter_context(PostgresServer(tends=True))
        raw, url = stack.enter_context(raw_postgres(server)), server.url_of("raw")
        many = [RawPostgres(url) for _ in range(max(CONNECTIONS))]
        for one in many:
            stack.callback(one.close)
        threads = stack.enter_context(ThreadPoolExecutor(max(CONNECTIONS)))
        blocks = {"4 commits": raw.round_trips(bench.size(100, 3))} | {
            f"{count}": _inserting([*many[:count]], threads, bench.size(max(10, 320 // count), 2))
            for count in CONNECTIONS
        }
        found = await alternate(blocks, bench.size(15, 1))
        settings, times = raw.settings(), values(found["4 commits"], "answered")
    what = f"raw PostgreSQL ({settings})"
    return [
        Figure(f"{what}, 4 commits on one connection: p50", percentile(times, 0.5), "ms"),
        Figure(f"{what}, 4 commits on one connection: p99", percentile(times, 0.99), "ms"),
        *(
            Figure(f"{what}, single-row commits, {count} connection(s): rate", median(values(laps, "rate")), "/s")
            for count, laps in ((count, found[f"{count}"]) for count in CONNECTIONS)
        ),
    ]
