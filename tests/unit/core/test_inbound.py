"""Which messages from other sessions may start work: the whole table."""

from itertools import product

import pytest

from coterie.core.codes import Code
from coterie.core.inbound import Across, Gate, Inbound, Waiting, admit
from coterie.core.refusal import Refusal

ALL = [Gate(inbound, across) for inbound, across in product(Inbound, [*Across, None])]


@pytest.mark.parametrize("gate", [gate for gate in ALL if gate.inbound is Inbound.REFUSE])
def test_a_session_that_refuses_lets_nothing_wait(gate: Gate) -> None:
    """Whatever the host would say; the text names the session and who can change that."""
    refusal = admit(gate, "quiet")
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.PERMISSION_DENIED
    assert "'quiet'" in refusal.message
    assert "inbound = refuse" in refusal.message


@pytest.mark.parametrize("inbound", [Inbound.ACCEPT, Inbound.HOLD])
def test_a_host_that_lets_nothing_cross_lets_nothing_wait(inbound: Inbound) -> None:
    """A message that may never start would only take a place."""
    refusal = admit(Gate(inbound, Across.DENY), "far")
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.PERMISSION_DENIED
    assert "'far'" in refusal.message
    assert "across_projects = deny" in refusal.message


@pytest.mark.parametrize(
    ("gate", "waiting"),
    [
        (Gate(Inbound.ACCEPT, None), None),
        (Gate(Inbound.ACCEPT, Across.ALLOW), None),
        (Gate(Inbound.ACCEPT, Across.ASK), Waiting.ACROSS_PROJECTS),
        (Gate(Inbound.HOLD, None), Waiting.POLICY),
        (Gate(Inbound.HOLD, Across.ALLOW), Waiting.POLICY),
        (Gate(Inbound.HOLD, Across.ASK), Waiting.POLICY),
    ],
)
def test_what_may_wait_says_for_what(gate: Gate, waiting: Waiting | None) -> None:
    """A session that holds everything asks its person anyway, so nobody is asked a second time about the projects."""
    assert admit(gate, "any") is waiting


def test_every_gate_is_in_one_of_these_tables() -> None:
    """A new policy comes with a row."""
    refused = [gate for gate in ALL if isinstance(admit(gate, "any"), Refusal)]
    assert (len(refused), len(ALL)) == (6, 12)
