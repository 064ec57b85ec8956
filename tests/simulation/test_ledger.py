"""Random lives of a ledger: whatever happens in whatever order, every promise holds after each step."""

import os
from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.guarantees import guarantee
from tests.simulation.arranging import Arranging, Ending
from tests.simulation.starting import Starting
from tests.simulation.talking import Talking
from tests.simulation.working import Working

LIVES: Final = os.environ.get("COTERIE_LIVES")  # noqa: TID251 - `make long` says how many, each time others
"""How many lives to lead; without it few, and the same each time."""


class LedgerLife(Talking, Working, Arranging, Ending, Starting):
    """All that may happen to a ledger."""


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
def test_every_promise_holds_in_every_life_of_a_ledger() -> None:
    """Orders that nobody thinks of are the ones that break a ledger."""
    lives = settings(
        max_examples=int(LIVES or 60),
        stateful_step_count=40,
        derandomize=LIVES is None,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    run_state_machine_as_test(LedgerLife, settings=lives)
