"""Lets steering and offered messages join a running turn between two of its model requests."""

from dataclasses import dataclass

from coterie.app.bind import item_of
from coterie.app.expire import expire, is_over
from coterie.app.step import Step
from coterie.core.ids import NewId, TurnId
from coterie.core.ledger.message import Joined, Message
from coterie.core.ledger.states import MessageBound
from coterie.core.permission import Mode, covers
from coterie.core.turn.items import Item, PersonText
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class TakeNews:
    """A turn that is about to ask its model."""

    turn_id: TurnId


def take_news(tx: Tx, command: TakeNews, now: int, new_id: NewId) -> bool:
    """Append what is meant for the turn to its transcript, oldest first; returns whether there was anything.

    A message joins by the same transaction that appends it, so claim, expiry, cancel and removal exclude it. One whose
    ceiling is below what the turn may do waits for a turn of its own. Where the session's setting was turned off since
    the offers were made, they stay offers.
    """
    turn = tx.locks.turn(command.turn_id)
    if turn is None or turn.state is not TurnState.RUNNING or (turn.host_id, turn.epoch) != (tx.host.id, tx.host.epoch):
        return False
    if turn.fenced or not turn.news:
        return False
    session = tx.sessions.get(turn.session_id)
    assert session is not None, "a deleted session has no running turn"
    news = _News(Step(tx, now, new_id), turn, takes_messages=session.current_turn)
    for waiting in tx.marks.meant_for(turn.id):
        news.take(waiting)
    return news.write()


class _News:
    """What one look finds."""

    def __init__(self, step: Step, turn: Turn, *, takes_messages: bool) -> None:
        self._step, self._turn, self._after, self._takes_messages = step, turn, turn, takes_messages
        self._items: list[Item] = []
        self._accepted = 0
        self._left = False
        """Something stays offered to the next request."""

    def take(self, waiting: Input) -> None:
        """Let one input join, or leave it where it is."""
        tx = self._step.tx
        if waiting.message_id is None:
            assert waiting.text is not None, "steering has a text"
            tx.inputs.remove(waiting.id)
            self._items.append(PersonText(waiting.text))
            return
        message = tx.messages.get(waiting.message_id)
        assert message is not None, "an input's message is in the ledger"
        if is_over(message, self._step.now):
            expire(self._step, message)
        elif self._takes_messages and self._accepted >= tx.host.limits.accepted_per_request_max:
            self._left = True
        elif not self._takes_messages or waiting.waiting is not None or not self._may_join(message):
            tx.marks.withdraw(self._turn.id, waiting.id)
        else:
            self._join(waiting, message)

    def _may_join(self, message: Message) -> bool:
        tx, turn = self._step.tx, self._turn
        within = covers(Mode(message.ceiling), turn.permission)
        return within and tx.messages.accepted(turn.id) < tx.host.limits.accepted_per_turn_max

    def _join(self, waiting: Input, message: Message) -> None:
        tx = self._step.tx
        tx.inputs.remove(waiting.id)
        moved = tx.messages.move(message.id, MessageBound, self._step.now, into=(self._turn.id, Joined.ACCEPTED))
        assert moved is not None, "a message with an input is queued (I3)"
        self._items.append(item_of(self._step, message))
        self._after = self._after.joined_by(message.hops, message.chain_id)
        self._accepted += 1
        tx.changed(message.source_session_id, "message", message.id)
        tx.changed(message.target_session_id, "message", message.id)

    def write(self) -> bool:
        """Write the items and what the turn is by now."""
        tx, turn = self._step.tx, self._turn
        tx.turns.set_news(turn.id, news=self._left)
        if self._after is not turn:
            tx.turns.join(self._after)
        if not self._items:
            return False
        numbers = tx.items.append(turn.session_id, turn.id, self._items, self._step.now)
        tx.changed(turn.session_id, "items", str(numbers[-1]))
        return True
