"""What does a durable round trip cost over HTTP, by `POST /rpc`?"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.http_client import Connection, connected
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, ratio, since_ms, values
from benchmarks.pairs import PAIRS, block_of, rows
from benchmarks.product import Pair, Product, product
from coterie.core.ids import MessageId
from coterie.interfaces.http import Server, bind, build_app, hosts_of

_RAW: Final = "raw, 4 commits"
_RAW_RATE: Final = "raw, 4 commits, one connection"
_TOKEN: Final = "benchmark"


async def _round_trip(client: Connection, pair: Pair) -> MessageId:
    """Send as a person for the source, then wait for the outcome."""
    pair.rounds += 1
    sent = await client.call("collaboration.send", {**pair.task(), "asSessionId": pair.source})
    waited = await client.call("collaboration.wait", {"messageIds": [sent["messageId"]]})
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


def _block(pair: Pair, connection: Connection, rounds: int) -> Block:
    async def lap() -> Lap:
        start = time.perf_counter_ns()
        message_id = await _round_trip(connection, pair)
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
        raw = stack.enter_context(bench.ground.raw(folder))
        host = await stack.enter_async_context(product(folder, bench.ground.open_store))
        port = await stack.enter_async_context(_served(host))
        pairs = [await host.pair() for _ in range(PAIRS)]
        clients = {pair.source: await stack.enter_async_context(connected(port, _TOKEN)) for pair in pairs}

        async def act(pair: Pair) -> MessageId:
            return await _round_trip(clients[pair.source], pair)

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
