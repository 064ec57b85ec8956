"""Sessions cannot come to wait for each other in a ring."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.codes import Code
from coterie.core.ids import SessionId
from coterie.core.ledger.waits import Wait, admit_wait

SESSIONS: Final = "abcd"


def _wait(who: str, whom: str, *, needs_all: bool = True) -> Wait:
    return Wait(SessionId(who), tuple(map(SessionId, whom)), needs_all=needs_all)


def _path(asleep: Collection[Wait], wait: Wait) -> str | None:
    refusal = admit_wait(asleep, wait)
    return refusal and "".join(refusal.path)


def _is_deadlock(group: Collection[str], waits: Collection[Wait]) -> bool:
    """Whether each of *group* waits for what none but the group itself could bring about."""
    return all(
        any(
            (any if wait.needs_all else all)(target in group for target in wait.targets)
            for wait in waits
            if wait.session_id == member
        )
        for member in group
    )


def _deadlocked(waits: Collection[Wait]) -> set[str]:
    """Everybody who is in a deadlock, by trying every group of sessions."""
    groups = (group for size in range(1, len(SESSIONS) + 1) for group in combinations(SESSIONS, size))
    return {member for group in groups if _is_deadlock(group, waits) for member in group}


_BEGIN: Final = st.builds(
    _wait,
    st.sampled_from(SESSIONS),
    st.lists(st.sampled_from(SESSIONS), min_size=1, max_size=3, unique=True).map("".join),
    needs_all=st.booleans(),
)
_SETTLE: Final = st.tuples(st.integers(0, 9), st.integers(0, 2))


def _settled(asleep: Sequence[Wait], which: int, target: int) -> list[Wait]:
    """Let one target of one wait settle: a wait for any of them has then what it waited for."""
    if not asleep:
        return []
    found = asleep[which % len(asleep)]
    gone = found.targets[target % len(found.targets)]
    rest = tuple(one for one in found.targets if one != gone) if found.needs_all else ()
    others = [wait for wait in asleep if wait is not found]
    return [*others, replace(found, targets=rest)] if rest else others


@given(st.lists(_BEGIN | _SETTLE, max_size=12))
def test_a_wait_is_refused_exactly_if_it_would_make_a_deadlock(life: Sequence[Wait | tuple[int, int]]) -> None:
    """Whatever has begun and settled before; and a refusal shows a ring of waits that are there."""
    asleep: list[Wait] = []
    for step in life:
        if not isinstance(step, Wait):
            asleep = _settled(asleep, *step)
            continue
        refusal = admit_wait(asleep, step)
        assert (refusal is not None) is bool(_deadlocked([*asleep, step]))
        if refusal is None:
            asleep.append(step)
            continue
        assert (refusal.path[0], refusal.path[-1]) == (step.session_id, step.session_id)
        assert len(set(refusal.path)) == len(refusal.path) - 1
        edges = {(wait.session_id, target) for wait in (*asleep, step) for target in wait.targets}
        assert set(pairwise(refusal.path)) <= edges


@given(st.lists(_BEGIN, max_size=6), _BEGIN)
def test_a_refusal_of_any_waits_blames_those_who_take_part(asleep: Sequence[Wait], wait: Wait) -> None:
    """Even of waits that should never have begun: without a way back to who asks there is no refusal."""
    refusal = admit_wait(asleep, wait)
    if refusal is not None:
        assert set(refusal.path) <= _deadlocked([*asleep, wait])


@pytest.mark.parametrize("size", range(1, 5))
def test_a_ring_of_any_length_is_refused_with_its_path(size: int) -> None:
    """Case 75: pairs, longer rings, and a session that waits for itself; one session less is no ring."""
    ring = SESSIONS[:size]
    asleep = [_wait(who, whom) for who, whom in pairwise(ring[1:] + ring[0])]
    assert _path(asleep, _wait(ring[0], ring[1 % size])) == ring + ring[0]
    if size > 1:
        assert admit_wait(asleep[1:], _wait(ring[0], ring[1])) is None


def test_a_refusal_names_the_sessions_and_says_what_to_do_instead() -> None:
    """The model that reads it should not try again, nor poll."""
    refusal = admit_wait([_wait("b", "a")], _wait("a", "b"))
    assert refusal is not None
    assert refusal.code is Code.WAIT_CYCLE
    assert "a → b → a" in refusal.message
    assert "End your turn instead" in refusal.message


def test_the_shortest_ring_is_shown() -> None:
    """Of several the one that is understood at a glance."""
    asleep = [_wait("b", "c"), _wait("c", "a"), _wait("d", "a")]
    assert _path(asleep, _wait("a", "db")) == "ada"


def test_one_that_closes_a_ring_is_enough_where_all_are_needed() -> None:
    """The others may settle; this one will not."""
    assert _path([_wait("b", "a")], _wait("a", "cb")) == "aba"


def test_where_one_is_enough_all_have_to_close_a_ring() -> None:
    """One way out is a way out."""
    asleep = [_wait("b", "a")]
    assert _path(asleep, _wait("a", "bc", needs_all=False)) is None
    assert _path([*asleep, _wait("c", "b")], _wait("a", "bc", needs_all=False)) == "aba"


def test_who_needs_one_of_several_is_blocked_only_by_all_of_them() -> None:
    """It has gone to sleep long ago, and the way out that it had then is closed by the wait that is asked about."""
    asleep = [_wait("a", "bc", needs_all=False), _wait("b", "a")]
    assert _path(asleep, _wait("d", "a")) is None
    assert _path(asleep, _wait("c", "a")) == "cac"


def test_a_session_is_blocked_by_any_one_of_its_sleeps() -> None:
    """A turn ends when all of its tool calls have, so the other sleep is no way out."""
    asleep = [_wait("b", "c"), _wait("b", "a")]
    assert _path(asleep, _wait("a", "b")) == "aba"


def test_a_sleep_that_is_over_blocks_nobody() -> None:
    """It stands in the list until its turn has noticed."""
    over = [_wait("b", "", needs_all=needs_all) for needs_all in (True, False)]
    assert admit_wait(over, _wait("a", "b")) is None


def test_others_that_block_each_other_are_not_blamed_on_who_asks() -> None:
    """No way leads back from them, so the path would be a lie."""
    assert admit_wait([_wait("b", "c"), _wait("c", "b")], _wait("a", "b")) is None
