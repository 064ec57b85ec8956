"""A host whose sessions are in different states, its door, and an eye on whether anything was written."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, cast

from tests.interfaces.bad_input import Names, alike, is_id, requests_with, shapes
from tests.interfaces.conftest import BOUND_S, HOST, TOKEN, Door, Host, compose, furnish, in_process

from coterie.interfaces.http import build_app
from coterie.operations.catalogue import OPERATIONS, Operation
from coterie.testing.slots import IdleSlots

SLOTS: Final = 8
_READING: Final = tuple(one for one in OPERATIONS if one.verb == "GET")


@dataclass(frozen=True)
class World:
    """One host; every world that is made has the same ids."""

    host: Host
    door: Door
    names: Names
    """Ids by what they are."""
    _eye: sqlite3.Connection
    _first: sqlite3.Connection
    """The ledger as it was at first."""
    _flaws: Sequence[Mapping[str, str]]
    """What the checks say of rows that were written past the use cases."""

    def written(self) -> tuple[int, int]:
        """A number that changes with every commit of the host, and how many of its slots are free."""
        return self._eye.execute("PRAGMA data_version").fetchone()[0], self.host.slots.free

    def restore(self) -> None:
        """Make the ledger as it was at first."""
        self._first.backup(self._eye)
        self.host.slots.free = SLOTS

    async def new_flaws(self) -> list[Mapping[str, str]]:
        """What is broken in the ledger and was not at first."""
        return [flaw for flaw in (await self.host.ask("ledger.verify"))["failures"] if flaw not in self._flaws]

    async def request_with(self, operation: Operation, name: str | None) -> tuple[dict[str, Any], bool]:
        """The smallest request with a parameter that succeeds, and needs it if it is an id; else any, and False."""
        tried = list(requests_with(operation, name, self.names))
        for given in tried:
            if await self._succeeds(operation, given):
                ignored = name is not None and is_id(given[name])
                if not (ignored and await self._succeeds(operation, {**given, str(name): "nothing"})):
                    return given, True
        return tried[0], False

    async def _succeeds(self, operation: Operation, given: Mapping[str, Any]) -> bool:
        try:
            async with asyncio.timeout(BOUND_S):
                answer = await self.door.rpc(operation.name, given)
        except TimeoutError:
            return False
        if operation.mutates:
            self.restore()
        return "result" in answer

    async def tells(self, text: str) -> bool:
        """Whether a reading operation shows a text as it stands, of whatever it is asked for."""
        listed = [one["id"] for one in (await self.host.ask("session.list"))["sessions"]]
        known = [*listed, *(value for value in self.names.values() if value not in listed)]
        for operation in _READING:
            wanted = [shape for shape in shapes(operation).values() if shape.required]
            asked = {one.name: [value for value in known if alike(value, one.good(self.names)[0])] for one in wanted}
            for values in product(*asked.values()):
                answer = await self.door.rest(operation, dict(zip(asked, values, strict=True)))
                if text in _leaves(answer.json()):
                    return True
        return False


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        several = value.values() if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]  # any JSON
        for one in cast("list[Any]", several):
            yield from _leaves(one)
    else:
        yield value


@asynccontextmanager
async def world_at(path: Path) -> AsyncGenerator[World]:
    """A world whose ledger is a new file."""
    async with AsyncExitStack() as stack:
        host, store = await compose(path, IdleSlots())
        stack.push_async_callback(store.close)
        app = build_app(host.operations, token=TOKEN, hosts=lambda: frozenset({HOST}), stopping=host.stopping)
        door = Door(await stack.enter_async_context(in_process(app)))
        yield await stack.enter_async_context(lived_in(host, door, path))


@asynccontextmanager
async def lived_in(host: Host, door: Door, path: Path) -> AsyncGenerator[World]:
    """The world of a host that is new."""
    host.slots.free = SLOTS
    names = await furnish(host)
    chain = await host.ask("collaboration.chain", messageId=names["$m"])
    waited = await host.ask("collaboration.wait", messageIds=[names["$m"]], timeoutMs=0)
    names |= {"$chain": chain["chainId"], "$cursor": waited["cursor"], "$folder": str(path.parent)}
    with closing(sqlite3.connect(path)) as eye, closing(sqlite3.connect(":memory:")) as first:
        eye.execute("PRAGMA synchronous = OFF")
        eye.backup(first)
        world = World(host, door, names, eye, first, (await host.ask("ledger.verify"))["failures"])
        world.restore()
        yield world
