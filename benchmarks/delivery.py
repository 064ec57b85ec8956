"""How soon does the worker of an idle session have a message that was sent to it?"""

import time

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.hosted import Hosted, hosted
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, values
from benchmarks.raw import PAYLOAD
from coterie.operations.caller import Person


def _block(host: Hosted, source: str, rounds: int) -> Block:
    async def lap(target: str) -> Lap:
        given = {"sessionId": target, "content": PAYLOAD, "asSessionId": source}
        before = len(host.model.asked_ns)
        start = time.perf_counter_ns()
        await host.engine.operations.perform(Person(), "collaboration.send", given)
        answered = time.perf_counter_ns()
        await host.idle(target)
        asked = host.model.asked_ns[before]
        return {"delivered": (asked - answered) / 1e6, "sent": (asked - start) / 1e6}

    async def block() -> list[Lap]:
        # A worker reads what its session has heard and said so far, so each block begins with nothing.
        target = await host.session("B")
        return [await lap(target) for _ in range(rounds)]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure from the answer of a send, and from its call, to the first request of the turn that it has started."""
    async with hosted(bench.place("delivery")) as host:
        block = _block(host, await host.session("A"), bench.size(25, 3))
        laps = (await alternate({"delivery": block}, bench.size(20, 1)))["delivery"]
    delivered, sent = values(laps, "delivered"), values(laps, "sent")
    what = "delivery to an idle session"
    return [
        Figure(f"{what}: send answered to model asked, p50", percentile(delivered, 0.5), "ms", budgets.DELIVERY),
        Figure(f"{what}: send answered to model asked, p99", percentile(delivered, 0.99), "ms", budgets.DELIVERY_LATE),
        Figure(f"{what}: send called to model asked, p50", percentile(sent, 0.5), "ms"),
    ]
