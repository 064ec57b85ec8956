"""`queue.*`: a person looks at a session's queue and puts it in order; nothing here starts anything."""

from typing import Final

from coterie.app import describe
from coterie.app.arrange_queue import Direction, MoveInput, OfInput, move_input, promote_input, remove_input
from coterie.core.ids import InputId, SessionId
from coterie.core.ledger.message import Message
from coterie.core.text import cut
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.ports.rows import Input

PREVIEW_CHARS_MAX: Final = 240
"""Characters that a waiting input shows."""


async def listing(act: Act, given: params.SessionRef) -> views.QueueView:
    """List what waits for a session, in order, and why it does not move."""
    found = await act.host.store.read(describe.queue, SessionId(given.session_id))
    return views.QueueView(
        session_id=found.session.id,
        blocked_by=_blocked_by(found),
        waiting=found.waiting,
        inputs=[_shown(*one) for one in found.inputs],
    )


def _blocked_by(found: describe.Queue) -> str | None:
    if not found.inputs:
        return None
    if found.session.held is not None:
        return f"held: {found.session.held.value}"
    if found.running is not None:
        return "running"
    return "waiting" if all(one.waiting for one, _ in found.inputs) else "slot"


def _shown(one: Input, message: Message | None) -> views.QueuedInput:
    return views.QueuedInput(
        input_id=one.id,
        kind=one.kind,
        message_id=one.message_id,
        source_session_id=message.source_session_id if message else None,
        source_title=message.source_title if message else None,
        preview=cut(message.content if message else one.text or "", PREVIEW_CHARS_MAX)[0],
        promoted=one.promoted,
        waiting=one.waiting.value if one.waiting else None,
        offered_to_turn_id=one.turn_id,
        created_at=views.iso(one.created_at),
    )


def _which(act: Act, given: params.QueueInput) -> OfInput:
    return OfInput(SessionId(given.session_id), InputId(given.input_id), act.key)


async def remove(act: Act, given: params.QueueInput) -> views.RemovedInput:
    """Take an input out of the queue; a message is cancelled and its sender is told."""
    message_id, replayed = await act.run(remove_input, _which(act, given))
    return views.RemovedInput(removed=True, message_id=message_id, replayed=replayed or None)


async def promote(act: Act, given: params.QueueInput) -> views.PromotedInput:
    """Let an input go before all others, behind what was promoted earlier."""
    replayed = await act.run(promote_input, _which(act, given))
    return views.PromotedInput(promoted=True, replayed=replayed or None)


async def move(act: Act, given: params.QueueMove) -> views.MovedInput:
    """Exchange an input with its neighbour of the same kind."""
    moved, replayed = await act.run(move_input, MoveInput(_which(act, given), Direction(given.direction)))
    return views.MovedInput(moved=moved, replayed=replayed or None)
