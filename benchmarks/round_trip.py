"""How long does a durable round trip take: A sends, B's turn is bound, B's turn settles, A has the outcome?"""

from statistics import fmean

from benchmarks import budgets
from benchmarks.bench import Bench
from benchmarks.budgets import Budget
from benchmarks.measure import Block, Figure, Lap, alternate, percentile, ratio, values
from benchmarks.product import Pair, Product, product
from coterie.core.ledger.message import Kind

_RAW = "raw, 4 commits"


def _block(pair: Pair, rounds: int, *, queued: bool, performed: bool) -> Block:
    async def block() -> list[Lap]:
        await pair.renew()
        return [await pair.lap(queued=queued, performed=performed) for _ in range(rounds)]

    return block


async def run(bench: Bench) -> list[Figure]:
    """Measure round trips by use cases and by operations, beside raw SQLite."""
    rounds, folder = bench.size(25, 3), bench.place("round-trip")
    with bench.ground.raw(folder) as raw:
        async with product(folder, bench.ground.open_store) as host:
            blocks = {_RAW: raw.round_trips(rounds)}
            for name, performed in (("use cases", False), ("operations", True)):
                for target, queued in (("idle", False), ("busy", True)):
                    pair = await host.pair()
                    blocks[f"{name}, {target} target"] = _block(pair, rounds, queued=queued, performed=performed)
            found = await alternate(blocks, bench.size(40, 1))
            counted = await _statements(host)
    baseline = found.pop(_RAW)
    figures = _times(_RAW, baseline, "answered")
    for name, laps in found.items():
        if name.endswith("idle target"):
            figures += _row(f"{name}, until the wait answers", laps, baseline, mark="answered", budget=budgets.FUSED)
            figures += _row(f"{name}, with the absorbing item", laps, baseline, mark="read", budget=budgets.FUSED_READ)
            figures += [
                _commits(f"{name}, until the wait answers", laps, "answered commits", budgets.COMMITS_FUSED),
                _commits(f"{name}, with the absorbing item", laps, "read commits", budgets.COMMITS_FUSED_READ),
            ]
        else:
            figures += _row(f"{name}, with the absorbing item", laps, baseline, mark="read", budget=budgets.QUEUED)
            figures.append(_commits(f"{name}, with the absorbing item", laps, "read commits", budgets.COMMITS_QUEUED))
    return figures + counted


def _times(what: str, laps: list[list[Lap]], mark: str) -> list[Figure]:
    found = values(laps, mark)
    return [Figure(f"{what}: p{share:.0%}"[:-1], percentile(found, share), "ms") for share in (0.5, 0.99)]


def _row(what: str, laps: list[list[Lap]], baseline: list[list[Lap]], *, mark: str, budget: Budget) -> list[Figure]:
    beside = ratio(laps, mark, baseline, "answered")
    return [*_times(what, laps, mark), Figure(f"{what}: p50 by raw", beside, "x", budget)]


def _commits(what: str, laps: list[list[Lap]], mark: str, budget: Budget) -> Figure:
    return Figure(f"{what}: commits", fmean(values(laps, mark)), "commits", budget)


async def _statements(host: Product) -> list[Figure]:
    """Count what each step asks of the database; nothing else runs."""
    found: list[Figure] = []
    before = host.store.statements

    def count(what: str, budget: Budget | None) -> None:
        nonlocal before
        if budget is not None:
            found.append(Figure(f"{what}: statements", host.store.statements - before, "statements", budget))
        before = host.store.statements

    pair = await host.pair()
    count("", None)
    first = await host.send(pair.sender, pair.target)
    count("send to an idle session", budgets.STATEMENTS_SEND)
    second = await host.send(pair.sender, pair.target)
    count("send to a busy session", budgets.STATEMENTS_SEND)
    following = (await host.settle(first.turn_id)).next
    count("settle, with completion and next turn", budgets.STATEMENTS_SETTLE)
    await host.settle(following.id if following else None)
    count("settle, with completion, nothing next", budgets.STATEMENTS_SETTLE)
    await host.absorb(pair.turn, first.message.id)
    count("append that absorbs", budgets.STATEMENTS_APPEND)
    await host.absorb(pair.turn)
    count("append", budgets.STATEMENTS_APPEND)
    await host.absorb(pair.turn, second.message.id)
    note = await host.send(pair.sender, pair.target, kind=Kind.MESSAGE)
    count("", None)
    await host.settle(note.turn_id)
    count("settle without completion", budgets.STATEMENTS_SETTLE)
    return found
