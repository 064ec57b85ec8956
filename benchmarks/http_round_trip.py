"""What does a durable round trip cost over HTTP, by `POST /rpc`?

The client writes bytes to sockets: a client library would be most of the figure.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import budgets
from benchmarks.measure import Bench, Block, Figure, Lap, alternate, percentile, ratio, since_ms, values
from benchmarks.pairs import PAIRS, block_of, rows
from benchmarks.product import Pair, Product, product
from benchmarks.raw import raw_ledger
from coterie.core.ids import MessageId
from coterie.interfaces.http import Server, bind, build_app, hosts_of

_RAW: Final = "raw SQLite, 4 commits"
_RAW_RATE: Final = "raw SQLite, 4 commits, one connection"
_TOKEN: Final = "benchmark"


@dataclass(frozen=True, slots=True)
class Connection:
    """A client of one connection that it keeps."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes

    async def call(self, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": operation, "params": given}).encode()
        self.writer.write(self.head % len(body) + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(size))
        assert "result" in answer, answer
        return answer["result"]

    async def round_trip(self, pair: Pair) -> MessageId:
        """Send as a person for the source, then wait for the outcome."""
        pair.rounds += 1
        sent = await self.call("collaboration.send", {**pair.task(), "asSessionId": pair.source})
        waited = await self.call("collaboration.wait", {"messageIds": [sent["messageId"]]})
        assert not waited["timedOut"], "the script replies at once"
        return MessageId(sent["messageId"])


@asynccontextmanager
async def _served(host: Product) -> AsyncGenerator[int]:
    stopping, listening = asyncio.Event(), bind("127.0.0.1", 0)
    names = hosts_of(listening)
    server = Server(
        build_app(host.operations, token=_TOKEN, hosts=lambda: names, stopping=stopping), listening, stopping
    )
    port: int = listening.getsockname()[1]
    await server.start()
    try:
        yield port
    finally:
        await server.stop()


@asynccontextmanager
async def _connected(port: int) -> AsyncGenerator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {_TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    try:
        yield Connection(reader, writer, head.encode())
    finally:
        writer.close()
        await writer.wait_closed()


def _block(pair: Pair, connection: Connection, rounds: int) -> Block:
    async def lap() -> Lap:
        start = time.perf_counter_ns()
        message_id = await connection.round_trip(pair)
        found = {"answered": since_ms(start)}
        await pair.product.absorb(pair.turn, message_id)
        return found

    async def block() -> list[Lap]:
        await pair.renew()
        return [await lap() for _ in range(rounds)]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure one client, then 32 at once; they share the process with the server."""
    rounds, folder = bench.size(25, 3), bench.place("http")
    async with AsyncExitStack() as stack:
        raw = stack.enter_context(raw_ledger(folder))
        host = await stack.enter_async_context(product(folder))
        port = await stack.enter_async_context(_served(host))
        pairs = [await host.pair() for _ in range(PAIRS)]
        clients = {pair.source: await stack.enter_async_context(_connected(port)) for pair in pairs}

        async def act(pair: Pair) -> MessageId:
            return await clients[pair.source].round_trip(pair)

        alone = {_RAW: raw.round_trips(rounds), "one client": _block(pairs[0], clients[pairs[0].source], rounds)}
        found = await alternate(alone, bench.size(20, 1))
        many = {
            _RAW_RATE: raw.rates(bench.size(160, 20), inserts=False),
            "clients": block_of(pairs, bench.size(10, 2), act, read=False),
        }
        found |= await alternate(many, bench.size(10, 1))
    what, times = "HTTP, one client, until the wait answers", values(found["one client"], "answered")
    beside = ratio(found["one client"], "answered", found[_RAW], "answered")
    return [
        Figure(f"{what}: p50", percentile(times, 0.5), "ms"),
        Figure(f"{what}: p99", percentile(times, 0.99), "ms"),
        Figure(f"{what}: p50 by raw", beside, "x", budgets.HTTP),
        *rows(f"HTTP, {PAIRS} clients, until the wait answers", found["clients"], found[_RAW_RATE], budgets.HTTP_PAIRS),
    ]
