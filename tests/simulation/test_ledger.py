"""Random lives of a ledger: whatever happens in whatever order, every promise holds after each step."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.guarantees import guarantee
from tests.simulation.arranging import Arranging, Ending, waits
from tests.simulation.life import Life, happens
from tests.simulation.starting import Starting
from tests.simulation.talking import Talking
from tests.simulation.working import Working

SEEDS: Final = os.environ.get("COTERIE_SEEDS") or "60"  # noqa: TID251 - `make long` says how many lives
"""How many lives, or which: `100:200` are those from 100 on."""
STEPS: Final = 60


class LedgerLife(Talking, Working, Arranging, Ending, Starting):
    """All that may happen to a ledger."""


class BrokenLife(LedgerLife):
    """A ledger that loses what waits."""

    @happens(9, when=waits)
    async def an_input_is_lost(self) -> None:
        """No verb does that."""
        await self.ledger.change(lambda tx: tx.inputs.remove(self.now.waiting[0].id))


async def fault_of(seed: int, steps: Sequence[int], kind: type[Life] = LedgerLife) -> Exception | None:
    """Lead a life of these steps; return what was wrong with it, with the story up to there."""
    with TemporaryDirectory() as folder:
        life = kind(Path(folder) / "coterie.db")
        try:
            await life.lead(seed, steps)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the shortest way there is looked for
            fault.add_note("\n".join([f"seed {seed}", *life.story]))
            return fault
    return None


async def shortest(seed: int, steps: Sequence[int], kind: type[Life] = LedgerLife) -> Exception | None:
    """Lead a life; if anything is wrong with it, leave out the steps that this does not need."""
    fault = await fault_of(seed, steps, kind)
    size = len(steps) // 2 if fault is not None else 0
    while size:
        at = 0
        while at < len(steps):
            fewer = [*steps[:at], *steps[at + size :]]
            found = await fault_of(seed, fewer, kind)
            if type(found) is not type(fault):
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
        fault = await shortest(seed, range(STEPS))
        if fault is not None:
            raise fault


async def test_what_is_broken_is_found_and_told_in_few_steps() -> None:
    """A search that finds nothing in a broken ledger says nothing about a sound one."""
    fault = await shortest(0, range(STEPS), BrokenLife)
    assert isinstance(fault, AssertionError)
    told = fault.__notes__[0].splitlines()
    assert told[0] == "seed 0"
    assert told[-1] == "an_input_is_lost:"
    assert len(told) <= 5
