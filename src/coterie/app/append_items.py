"""Writes items of a running turn; a tool result that shows a settled outcome absorbs its notice."""

from dataclasses import dataclass

from coterie.app.absorb import absorb
from coterie.core.ids import MessageId, NewId, TurnId
from coterie.core.turn.items import Item
from coterie.core.turn.states import TurnState
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class AppendToTurn:
    """Items for the transcript of the turn's session."""

    turn_id: TurnId
    items: tuple[Item, ...]
    shows: tuple[MessageId, ...] = ()
    """Messages whose settled outcome one of the items shows."""


def append_items(tx: Tx, command: AppendToTurn, now: int, new_id: NewId) -> bool:
    """Append to the transcript, if the turn still runs here; returns whether it does.

    A queued completion of a shown message joins this turn: the sender has read it, so it starts no turn of its own.
    That is written with the item, so a crash before the item brings the notice again.
    """
    del new_id
    turn = tx.locks.turn(command.turn_id, shown=command.shows)
    if turn is None or turn.state is not TurnState.RUNNING or (turn.host_id, turn.epoch) != (tx.host.id, tx.host.epoch):
        return False
    assert command.items, "there is something to append"
    numbers = tx.items.append(turn.session_id, turn.id, command.items, now)
    tx.changed(turn.session_id, "items", str(numbers[-1]))
    absorb(tx, turn, command.shows, now)
    return True
