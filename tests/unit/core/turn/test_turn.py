"""What a turn is after messages have joined it."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from coterie.core.ids import ChainId, HostId, InputId, SessionId, TurnId
from coterie.core.permission import Mode
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn

OWN: Final = ChainId("chn_own")
TURN: Final = Turn(
    TurnId("turn_1"),
    SessionId("ses_1"),
    InputId("inp_1"),
    "prompt",
    message_id=None,
    state=TurnState.RUNNING,
    host_id=HostId("hst_1"),
    epoch=1,
    permission=Mode.ASK,
    chain_id=OWN,
    hops=9,
    fenced=False,
    created_at=0,
)

joining = st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["chn_own", "chn_b", "chn_c"])))


@given(joining)
def test_who_joins_never_gives_hops_and_is_charged_once(joined: list[tuple[int, str]]) -> None:
    """The least hops of all count, and each chain pays, its own first, however often its messages came."""
    turn = TURN
    for hops, chain_id in joined:
        turn = turn.joined_by(hops, ChainId(chain_id))

    assert turn.hops == min([9, *(hops for hops, _ in joined)])
    assert turn.chains[0] == turn.chain_id == OWN
    assert list(turn.chains) == list(dict.fromkeys([OWN, *(chain_id for _, chain_id in joined)]))


def test_a_turn_that_nobody_joined_has_its_own_chain_only() -> None:
    """What it sends is charged to the input that started it."""
    assert TURN.chains == (OWN,)
