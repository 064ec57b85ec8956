"""Random lives of a ledger: whatever happens in whatever order, every promise holds after each step."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.guarantees import guarantee
from tests.simulation.arranging import Arranging, Ending
from tests.simulation.starting import Starting
from tests.simulation.talking import Talking
from tests.simulation.working import Working

SEEDS: Final = os.environ.get("COTERIE_SEEDS", "60")  # noqa: TID251 - `make long` says how many lives
"""How many lives, or which: `100:200` are those from 100 on."""
STEPS: Final = 60


class LedgerLife(Talking, Working, Arranging, Ending, Starting):
    """All that may happen to a ledger."""


async def fault_of(seed: int, steps: Sequence[int]) -> Exception | None:
    """Lead a life of these steps; return what was wrong with it, with the story up to there."""
    with TemporaryDirectory() as folder:
        life = LedgerLife(Path(folder) / "coterie.db")
        try:
            await life.lead(seed, steps)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the shortest way there is looked for
            fault.add_note("\n".join([f"seed {seed}", *life.story]))
            return fault
    return None


async def shortest(seed: int, steps: Sequence[int], fault: Exception) -> Exception:
    """Leave out the steps that a fault does not need; return the fault of what is left."""
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = [*steps[:at], *steps[at + size :]]
            found = await fault_of(seed, fewer)
            if found is None or type(found) is not type(fault):
                at += size
            else:
                steps, fault = fewer, found
        size //= 2
    return fault


@guarantee("I1")
@guarantee("I2")
@guarantee("I3")
@guarantee("I4")
@guarantee("I5")
@guarantee("I6")
@guarantee("I7")
@guarantee("I8")
@guarantee("I9")
@guarantee("I10")
@guarantee("I11")
@guarantee("I12")
@guarantee("I14")
@guarantee("I16")
async def test_every_promise_holds_in_every_life_of_a_ledger() -> None:
    """Orders that nobody thinks of are the ones that break a ledger."""
    for seed in range(*map(int, SEEDS.split(":"))):
        fault = await fault_of(seed, range(STEPS))
        if fault is not None:
            raise await shortest(seed, range(STEPS), fault)
