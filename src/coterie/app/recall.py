"""What a worker reads of a transcript: from its end, as far as a context can use it."""

from dataclasses import dataclass

from coterie.core.ids import SessionId, TurnId
from coterie.core.session.session import Session
from coterie.core.turn.items import Checkpoint, Item
from coterie.core.turn.turn import Turn
from coterie.ports.rows import NumberedItem
from coterie.ports.store import Tx

SHORT_ITEMS = 32
"""Items of a transcript that is read without a change of thread."""
SIZES_MAX = 512
"""Items whose lengths are looked at together."""
PAGE_MAX = 64
"""Items that are read together."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A turn before it is run."""

    turn: Turn
    session: Session
    short: bool
    """Whether its transcript is read in a moment."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Whose transcript, and how much of it."""

    session_id: SessionId
    chars_max: int
    """Length of what is read, as it is stored; the newest item is read whatever its length."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The newest items behind the newest checkpoint, that checkpoint among them, oldest first."""

    numbered: tuple[NumberedItem, ...] = ()
    covered: int = 0
    """Number of the last item that the checkpoint covers."""
    left_out: int = 0
    """Items between those that the checkpoint covers and those that were read."""
    last: int = 0
    """Number of the newest item."""

    @property
    def items(self) -> list[Item]:
        """The items without their numbers."""
        return [one.item for one in self.numbered]


def outline(tx: Tx, turn_id: TurnId) -> Outline | None:
    """A turn and its session; None if there is none, or its session is deleted."""
    turn = tx.turns.get(turn_id)
    session = tx.sessions.get(turn.session_id) if turn else None
    if turn is None or session is None:
        return None
    return Outline(turn, session, short=not tx.items.page(session.id, SHORT_ITEMS, 1))


def recall(tx: Tx, command: Recall) -> Recalled:
    """The end of a transcript; what its newest checkpoint covers is not read, but for what was asked there."""
    session_id = command.session_id
    checkpoint = tx.items.checkpoint(session_id)
    covered, asked = 0, None
    if checkpoint is not None and isinstance(checkpoint.item, Checkpoint):
        covered, asked = checkpoint.item.up_to, checkpoint.item.asked
    first, last = _reach(tx, command, covered)
    found = list(tx.items.page(session_id, asked - 1, 1)) if asked is not None else []
    if checkpoint is not None and checkpoint.number < first:
        # So much came after it that reading ended before: it still stands for what it covers.
        found.append(checkpoint)
    after = first - 1
    while after < last:
        page = tx.items.page(session_id, after, PAGE_MAX)
        found += page
        after = page[-1].number
    return Recalled(tuple(found), covered, first - 1 - covered, last)


def _reach(tx: Tx, command: Recall, covered: int) -> tuple[int, int]:
    """Numbers of the first item that is read, and of the last one; lengths are looked at before anything is read."""
    first: int | None = None
    last, room = covered, command.chars_max
    while sizes := tx.items.sizes(command.session_id, covered, first, SIZES_MAX):
        for number, chars in sizes:
            if first is None:
                last = number
            elif chars > room:
                return first, last
            first, room = number, room - chars
        if len(sizes) < SIZES_MAX:
            break
    return (covered + 1 if first is None else first), last
