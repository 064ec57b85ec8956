"""Who acts for a session, and whether it still may."""

from dataclasses import dataclass

from coterie.core.errors import ConflictError
from coterie.core.ids import SessionId, TurnId
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends, from the credential and never from a parameter (I10)."""

    session_id: SessionId
    turn_id: TurnId | None
    """The running turn; None when a person speaks for the session."""
    plugin: str | None = None
    """The plugin through whose tool the turn acts."""


def live_turn(tx: Tx, sender: Sender) -> Turn:
    """The sender's turn, if it runs and no cancel was asked.

    Raises:
        ConflictError: The turn has ended or is being cancelled: nothing may begin in it.
    """
    assert sender.turn_id is not None
    turn = tx.turns.get(sender.turn_id)
    if turn is None or turn.session_id != sender.session_id or turn.state is not TurnState.RUNNING:
        raise ConflictError(f"Turn {sender.turn_id}", "running", turn.state.value if turn else "unknown")
    if turn.fenced:
        raise ConflictError(f"Turn {sender.turn_id}", "running", "being cancelled")
    return turn
