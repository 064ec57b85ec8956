"""State machines as tables: what is not in a row cannot happen."""

from enum import StrEnum

import pytest
from tests.guarantees import guarantee

from coterie.core.ledger import states as ledger
from coterie.core.ledger.states import MESSAGE_TABLE, SETTLED, MessageState
from coterie.core.machine import StateTable
from coterie.core.turn import states as turn
from coterie.core.turn.states import TURN_TABLE, TurnState


class Door(StrEnum):
    """A machine small enough to see whole."""

    OPEN = "open"
    SHUT = "shut"
    GONE = "gone"


class Pushed:
    """It moves."""


class Burnt:
    """It ends."""


DOOR = StateTable[Door](
    [Door.OPEN],
    [(Door.OPEN, Pushed, Door.SHUT), (Door.OPEN, Burnt, Door.GONE), (Door.SHUT, Burnt, Door.GONE)],
)


def test_a_table_tells_its_states_events_and_ends() -> None:
    """All of it from the rows, so nothing can disagree with them."""
    assert DOOR.states == (Door.OPEN, Door.SHUT, Door.GONE)
    assert DOOR.events == (Pushed, Burnt)
    assert DOOR.terminal == {Door.GONE}
    assert DOOR.sources(Burnt) == (Door.OPEN, Door.SHUT)
    assert DOOR.target(Burnt) is Door.GONE
    assert DOOR.after(Door.OPEN, Pushed) is Door.SHUT
    assert DOOR.after(Door.SHUT, Pushed) is None


def test_a_table_draws_itself() -> None:
    """The picture in the documents is the table."""
    assert DOOR.diagram().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> open",
        "    open --> shut: Pushed",
        "    open --> gone: Burnt",
        "    shut --> gone: Burnt",
        "    gone --> [*]",
    ]


def test_an_event_leads_to_one_state() -> None:
    """A guarded move writes one target, so a table with two is a mistake."""
    with pytest.raises(AssertionError, match="Pushed"):
        StateTable[Door]([Door.OPEN], [(Door.OPEN, Pushed, Door.SHUT), (Door.SHUT, Pushed, Door.OPEN)])


MESSAGE_MOVES = {
    (MessageState.QUEUED, ledger.MessageBound): MessageState.RUNNING,
    (MessageState.QUEUED, ledger.InputRemoved): MessageState.CANCELLED,
    (MessageState.QUEUED, ledger.MessageExpired): MessageState.CANCELLED,
    (MessageState.RUNNING, ledger.MessageCompleted): MessageState.COMPLETED,
    (MessageState.RUNNING, ledger.MessageFailed): MessageState.FAILED,
    (MessageState.RUNNING, ledger.MessageCancelled): MessageState.CANCELLED,
    (MessageState.RUNNING, ledger.MessageInterrupted): MessageState.INTERRUPTED,
}
TURN_MOVES = {
    (TurnState.RUNNING, turn.TurnCompleted): TurnState.COMPLETED,
    (TurnState.RUNNING, turn.TurnFailed): TurnState.FAILED,
    (TurnState.RUNNING, turn.TurnCancelled): TurnState.CANCELLED,
    (TurnState.RUNNING, turn.HostDied): TurnState.INTERRUPTED,
}


@guarantee("I5")
@pytest.mark.parametrize("event", MESSAGE_TABLE.events)
@pytest.mark.parametrize("state", MessageState)
def test_a_message_moves_so_and_not_otherwise(state: MessageState, event: type) -> None:
    """The whole grid, so that a row which somebody adds is seen."""
    assert MESSAGE_TABLE.after(state, event) == MESSAGE_MOVES.get((state, event))


@guarantee("I5")
@pytest.mark.parametrize("event", TURN_TABLE.events)
@pytest.mark.parametrize("state", TurnState)
def test_a_turn_moves_so_and_not_otherwise(state: TurnState, event: type) -> None:
    """A running turn ends once; an ended one never moves."""
    assert TURN_TABLE.after(state, event) == TURN_MOVES.get((state, event))


@guarantee("I5")
def test_the_grids_cover_every_state_and_end_where_the_machine_ends() -> None:
    """A state without a row would be one that nobody can reach or leave."""
    assert set(MESSAGE_TABLE.states) == set(MessageState)
    assert set(TURN_TABLE.states) == set(TurnState)
    assert set(MESSAGE_TABLE.events) == {event for _, event in MESSAGE_MOVES}
    assert set(TURN_TABLE.events) == {event for _, event in TURN_MOVES}
    assert set(MessageState) - SETTLED == {MessageState.QUEUED, MessageState.RUNNING}
    assert {state.value for state in SETTLED} == {state.value for state in TURN_TABLE.terminal}


@guarantee("I2")
def test_a_message_leaves_the_queue_by_being_bound_removed_or_too_old() -> None:
    """Three ways, all of which take its row out of the queue."""
    leaving = {event for event in MESSAGE_TABLE.events if MessageState.QUEUED in MESSAGE_TABLE.sources(event)}
    assert leaving == {ledger.MessageBound, ledger.InputRemoved, ledger.MessageExpired}
    assert MessageState.QUEUED not in {target for _, _, target in MESSAGE_TABLE.rows}
