"""What does a ledger full of old messages cost?

The old messages are copies of one real round trip, row by row, so they are what the product would have written. Half of
them are between the two sessions that are measured, the others between many pairs more.
"""

import asyncio
import os
import re
import secrets
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks import budgets
from benchmarks.measure import Bench, Block, Figure, Lap, alternate, percentile, ratio, since_ms, values
from benchmarks.product import Pair, Product, product
from coterie.app import describe
from coterie.core.ids import RANDOM_BITS, Prefix, SessionId, make_id

OTHER_PAIRS: Final = 100
_MESSAGES_PER_COPY: Final = 2
_YEAR_2023_MS: Final = 1_700_000_000_000
_ID: Final = re.compile(r"(ses|turn|msg|inp|chn)_[0-9a-f]{32}")
_TABLES: Final = ("chains", "turns", "messages", "items", "changes")
_COUNTED: Final = {"items": "number", "changes": "revision"}
"""Columns that count within a session; every other `number` is the table's own."""
_EMPTY: Final = "empty ledger"
_OLD: Final = "old ledger"

Value: TypeAlias = str | int | None
Sessions: TypeAlias = tuple[SessionId, SessionId]


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the round trip that is copied."""

    values: tuple[Value, ...]
    """Texts have `%(id)s` where an id stands."""
    with_ids: tuple[int, ...]
    """Which columns have such texts."""
    counted: int | None
    """Which column counts within the session."""

    def copy(self, ids: dict[str, str], ahead: int) -> list[Value]:
        """The row of another round trip, *ahead* of this one."""
        made = list(self.values)
        for column in self.with_ids:
            text = made[column]
            assert isinstance(text, str), "only texts hold ids"
            made[column] = text % ids
        if self.counted is not None:
            number = made[self.counted]
            assert isinstance(number, int), "the column counts"
            made[self.counted] = number + ahead
        return made


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows that one round trip has left in a table."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[_Row, ...]

    @property
    def insert(self) -> str:
        """The statement for one row."""
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"

    def most(self) -> dict[str, int]:
        """How far the round trip has counted in each session."""
        found = defaultdict[str, int](int)
        column = self.columns.index("session_id") if self.name in _COUNTED else None
        for row in self.rows:
            if column is not None and row.counted is not None:
                session_id = str(row.values[column])[2:-2]
                found[session_id] = max(found[session_id], int(str(row.values[row.counted])))
        return found


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    counts = _COUNTED.get(name)
    known = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    columns = tuple(column for column in known if column != "number" or counts == "number")
    # What the opening of a session has written is there already in every session.
    condition = "WHERE revision > 1" if name == "changes" else ""
    order = "number" if "number" in known else "created_at"
    rows: list[_Row] = []
    for values_ in connection.execute(f"SELECT {', '.join(columns)} FROM {name} {condition} ORDER BY {order}"):
        texts = tuple(
            _ID.sub(r"%(\g<0>)s", value.replace("%", "%%")) if isinstance(value, str) else value for value in values_
        )
        with_ids = tuple(column for column, text in enumerate(texts) if isinstance(text, str) and "%" in text)
        rows.append(_Row(texts, with_ids, columns.index(counts) if counts else None))
    return _Table(name, columns, tuple(rows))


@dataclass(slots=True)
class _Copier:
    """Copies the round trip of *first*, which is all that the ledger has."""

    connection: sqlite3.Connection
    first: Sessions
    made: int = 0

    def fill(self, others: list[Sessions], copies: int) -> None:
        """Write *copies* round trips: every second one between the first two sessions, the rest between *others*."""
        tables = [_table(self.connection, name) for name in _TABLES]
        lengths = {table.name: table.most() for table in tables}
        done: dict[Sessions, int] = {self.first: 1} | dict.fromkeys(others, 0)
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("BEGIN")
        pairs = [self.first if number % 2 == 0 else others[number % len(others)] for number in range(copies)]
        places: list[tuple[Sessions, int, dict[str, str]]] = []
        fresh = sorted({id_ for table in tables for row in table.rows for id_ in _ids_of(row)} - set(self.first))
        for pair in pairs:
            names = dict(zip(self.first, pair, strict=True))
            places.append((pair, done[pair], names | {id_: self._id(id_) for id_ in fresh}))
            done[pair] += 1
        for table in tables:
            self.connection.executemany(table.insert, self._rows(table, places, lengths[table.name]))
        for pair, count in done.items():
            for mine, model in zip(pair, self.first, strict=True):
                revision = 1 + count * max(0, lengths["changes"][model] - 1)
                self.connection.execute("UPDATE sessions SET revision = ? WHERE id = ?", (revision, mine))
        self.connection.execute("COMMIT")

    def _rows(
        self, table: _Table, places: list[tuple[Sessions, int, dict[str, str]]], lengths: dict[str, int]
    ) -> Iterator[list[Value]]:
        skipped = 1 if table.name == "changes" else 0
        column = table.columns.index("session_id") if table.name in _COUNTED else None
        steps = [0 if column is None else lengths[str(row.values[column])[2:-2]] - skipped for row in table.rows]
        for _, number, ids in places:
            for row, step in zip(table.rows, steps, strict=True):
                yield row.copy(ids, number * step)

    def _id(self, model: str) -> str:
        self.made += 1
        prefix: Prefix = model.partition("_")[0]  # pyright: ignore[reportAssignmentType]  # the pattern has only these
        return make_id(prefix, _YEAR_2023_MS + self.made, secrets.randbits(RANDOM_BITS))


def _ids_of(row: _Row) -> Iterator[str]:
    for column in row.with_ids:
        yield from re.findall(r"%\((\w+)\)s", str(row.values[column]))


async def _grow(folder: Path, old_messages: int) -> Sessions:
    """Make a ledger with one round trip, and copy that."""
    async with product(folder) as host:
        pair = await host.pair()
        await pair.lap()
        await host.settle(pair.turn, slot=False)
        opened = await asyncio.gather(*(host.session("A") for _ in range(2 * OTHER_PAIRS)))
        others = list(zip(opened[::2], opened[1::2], strict=True))
    first = (pair.source, pair.target)
    with closing(sqlite3.connect(folder / "coterie.db", isolation_level=None)) as connection:
        _Copier(connection, first).fill(others, old_messages // _MESSAGES_PER_COPY)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    # What the system has not written yet would be written while we measure.
    with (folder / "coterie.db").open("rb") as file:
        os.fsync(file.fileno())
    return first


def _block(host: Product, pair: Pair, rounds: int) -> Block:
    async def lap() -> Lap:
        start = time.perf_counter_ns()
        sent = await host.send(pair.sender, pair.target)
        found = {"send": since_ms(start)}
        start = time.perf_counter_ns()
        await host.settle(sent.turn_id)
        found["settle"] = since_ms(start)
        start = time.perf_counter_ns()
        await host.absorb(pair.turn, sent.message.id)
        found["append"] = since_ms(start)
        start = time.perf_counter_ns()
        await host.store.read(describe.status, pair.target)
        found["status"] = since_ms(start)
        start = time.perf_counter_ns()
        await host.store.read(describe.sessions, (None, 50))
        return found | {"list": since_ms(start)}

    async def block() -> list[Lap]:
        await pair.renew()
        return [await lap() for _ in range(rounds)]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure send, settle, append, status and list on an empty ledger and on an old one."""
    rounds = bench.size(25, 5)
    old, empty = bench.place("old"), bench.place("empty")
    sessions, beside = await _grow(old, bench.old_messages), await _grow(empty, 0)
    async with AsyncExitStack() as stack:
        aged, fresh = await stack.enter_async_context(product(old)), await stack.enter_async_context(product(empty))
        old_pair = Pair(aged, *sessions, await aged.begin(sessions[0]))
        new_pair = Pair(fresh, *beside, await fresh.begin(beside[0]))
        blocks = {_EMPTY: _block(fresh, new_pair, rounds), _OLD: _block(aged, old_pair, rounds)}
        found = await alternate(blocks, bench.size(30, 1))
        _, broken = await aged.store.read(describe.verify, None) if bench.quick else ((), ())
    figures: list[Figure] = []
    for mark, budget in (
        ("send", budgets.GROWTH_SEND),
        ("settle", None),
        ("append", None),
        ("status", budgets.GROWTH_STATUS),
        ("list", None),
    ):
        what = f"{mark} beside {bench.old_messages:,} old messages"
        figures += [
            Figure(f"{what}: p50", percentile(values(found[_OLD], mark), 0.5), "ms"),
            Figure(f"{what}: p50 by empty", ratio(found[_OLD], mark, found[_EMPTY], mark), "x", budget),
        ]
    assert not broken, f"the copies are no sound ledger: {broken[0]}"
    return figures
