"""How things are measured here: in blocks that take turns, by medians, with the collector asleep."""

import gc
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from benchmarks.budgets import Budget

Lap: TypeAlias = dict[str, float]
"""What one repetition showed, by name: milliseconds from its start, or counts."""
Block: TypeAlias = Callable[[], Awaitable[list[Lap]]]
"""Some repetitions in a row."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    value: float | None
    """None: it could not be measured, and the note says why."""
    unit: str
    budget: Budget | None = None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the budget is kept; None where there is none, or no figure."""
        return None if self.budget is None or self.value is None else self.budget.is_met(self.value)


@contextmanager
def quiet() -> Generator[None]:
    """Keep the garbage collector out of a loop."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def since_ms(start_ns: int) -> float:
    """Milliseconds since a `perf_counter_ns`."""
    return (time.perf_counter_ns() - start_ns) / 1e6


async def alternate(blocks: Mapping[str, Block], cycles: int) -> dict[str, list[list[Lap]]]:
    """Run the blocks in turns, once to warm up (not in a smoke), then *cycles* times; returns their laps by name."""
    found: dict[str, list[list[Lap]]] = {name: [] for name in blocks}
    warm_up = 1 if cycles > 1 else 0
    for cycle in range(warm_up + cycles):
        for name, block in blocks.items():
            with quiet():
                laps = await block()
            if cycle >= warm_up:
                found[name].append(laps)
    return found


def values(blocks: Sequence[Sequence[Lap]], mark: str) -> list[float]:
    """One mark of all laps."""
    return [lap[mark] for laps in blocks for lap in laps]


def percentile(found: Sequence[float], share: float) -> float:
    """The value that *share* of the values do not exceed."""
    return sorted(found)[min(len(found) - 1, int(len(found) * share))]


def ratio(blocks: Sequence[Sequence[Lap]], mark: str, baseline: Sequence[Sequence[Lap]], beside: str) -> float:
    """The median over the cycles of the block's median by that of its baseline in the same cycle."""
    pairs = zip(blocks, baseline, strict=True)
    return median(median(lap[mark] for lap in ours) / median(lap[beside] for lap in theirs) for ours, theirs in pairs)
