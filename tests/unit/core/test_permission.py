"""Permission as a truth table."""

from itertools import product

import pytest

from coterie.core.permission import Decision, Mode, Risk, StoredMode, covers, decide, least, resolve

ORDER = (Mode.ASK, Mode.ACCEPT_EDITS, Mode.AUTO)
FREE = {
    (Mode.ASK, Risk.LOW),
    (Mode.ACCEPT_EDITS, Risk.LOW),
    (Mode.ACCEPT_EDITS, Risk.EDIT),
    (Mode.AUTO, Risk.LOW),
    (Mode.AUTO, Risk.EDIT),
    (Mode.AUTO, Risk.HIGH),
}


@pytest.mark.parametrize(("mode", "risk"), list(product(Mode, Risk)))
def test_a_mode_allows_what_it_allows_and_asks_for_the_rest(mode: Mode, risk: Risk) -> None:
    """All nine cells; there is no third answer."""
    assert decide(mode, risk) is (Decision.ALLOW if (mode, risk) in FREE else Decision.ASK)


@pytest.mark.parametrize(("one", "other", "third"), list(product(Mode, repeat=3)))
def test_the_least_is_the_weakest_in_any_order(one: Mode, other: Mode, third: Mode) -> None:
    """Modes are text, and text has another order."""
    assert least([one, other, third]) is ORDER[min(map(ORDER.index, (one, other, third)))]


@pytest.mark.parametrize(("ceiling", "mode"), list(product(Mode, repeat=2)))
def test_a_ceiling_covers_itself_and_what_is_weaker(ceiling: Mode, mode: Mode) -> None:
    """All nine cells: what joins a turn must allow at least what the turn may do."""
    assert covers(ceiling, mode) is (ORDER.index(mode) <= ORDER.index(ceiling))


@pytest.mark.parametrize(("stored", "default"), list(product(StoredMode, Mode)))
def test_inherit_is_the_default_of_the_moment_and_the_others_are_themselves(stored: StoredMode, default: Mode) -> None:
    """A changed default reaches those who inherit, and nobody else."""
    assert resolve(stored, default).value == (default.value if stored is StoredMode.INHERIT else stored.value)
