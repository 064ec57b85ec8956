"""Hosts that are killed while many clients write to them; `python -m tests.kills` does the same at any length."""

import os
from pathlib import Path
from typing import Final

import pytest
from tests.guarantees import guarantee
from tests.kills.driver import run
from tests.postgres import needs_postgres

KILLS: Final = 24 if os.environ.get("COTERIE_LONG") else 4  # noqa: TID251 - tests are no part of the settings
SEED: Final = 1


@pytest.mark.timeout(60 * KILLS)
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=needs_postgres)])
@guarantee("I2")
@guarantee("I4")
@guarantee("I5")
@guarantee("I7")
@guarantee("I8")
@guarantee("I9")
@guarantee("I14")
def test_kills_under_load_lose_nothing_double_nothing_and_replay_nothing(tmp_path: Path, database: str) -> None:
    """Clients know what they were told, the model knows what it was asked: the ledger must agree with both.

    On PostgreSQL the server is killed too, under a host that lives on.
    """
    report = run(tmp_path, SEED, KILLS, database)
    assert report.ok, report
    assert report.accepted > 10
    assert report.interrupted > 1
    assert report.repeated
