"""Random lives of a whole host: people, models, crashes and a failing disk, all told by one seed."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.guarantees import guarantee
from tests.simulation.host.disk import Disk
from tests.simulation.host.life import HostLife
from tests.simulation.host.store import SimulatedStore

SEEDS: Final = os.environ.get("COTERIE_SEEDS") or "300"  # noqa: TID251 - `make long` says how many lives
"""How many lives, or which: `100:200` are those from 100 on."""
STEPS: Final = 25
SHARES: Final = 10
"""Tests that the lives are spread over, so that none takes long."""
ROOT: Final = Path(__file__).parents[3]


class HastyDisk(Disk):
    """Says that a commit is done a moment before it is."""

    def die_at_commit(self, connection: sqlite3.Connection) -> None:
        """Die in that moment."""
        self.befall(None)
        connection.rollback()
        connection.execute("BEGIN IMMEDIATE")
        asyncio.get_running_loop().call_later(0.05, self.die)


class HastyStore(SimulatedStore):
    """A store that answers before its commit."""

    stands_on = HastyDisk


class HastyLife(HostLife):
    """A host with such a store."""

    opens = HastyStore


def led(seed: int, kind: type[HostLife] = HostLife) -> HostLife:
    """Lead the life of a seed to its end; what was wrong with it is raised with the story as its note."""
    with TemporaryDirectory() as folder:
        life = kind(Path(folder), seed, range(STEPS))
        life.lead()
    return life


def all_led(seeds: Iterable[int], kind: type[HostLife] = HostLife) -> None:
    """Lead the lives of *seeds*, up to the first with which something is wrong."""
    for seed in seeds:
        led(seed, kind)


@guarantee("I1")
@guarantee("I2")
@guarantee("I3")
@guarantee("I4")
@guarantee("I5")
@guarantee("I6")
@guarantee("I7")
@guarantee("I8")
@guarantee("I9")
@guarantee("I14")
@guarantee("I16")
@pytest.mark.parametrize("share", range(SHARES))
def test_every_promise_holds_in_every_life_of_a_host(share: int) -> None:
    """What is right in each part alone can be wrong where they meet: at a crash, a lost wake-up, a late answer."""
    all_led(range(*map(int, SEEDS.split(":")))[share::SHARES])


@pytest.mark.parametrize("seed", [3, 8])
def test_a_seed_tells_the_same_story_in_every_process(seed: int) -> None:
    """A fault that cannot be told again helps nobody to find its cause: no order may come from a hash or an address."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.simulation.host", str(seed)],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={"PYTHONHASHSEED": str(seed)},
        text=True,
    )
    assert told.stdout.splitlines() == led(seed).story.splitlines()


def test_a_host_that_answers_before_it_has_written_is_found_out() -> None:
    """A search that finds nothing in a broken host says nothing about a sound one."""
    with pytest.raises(AssertionError) as found:
        all_led(range(100), HastyLife)
    assert found.value.__notes__[0].startswith("seed ")
