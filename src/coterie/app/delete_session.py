"""`session.delete`: everything of a session ends, and a tombstone stays for who refers to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from coterie.app import find
from coterie.app.complete import complete
from coterie.app.idempotency import Key, once, until
from coterie.app.settle_turn import end_turn, with_usage
from coterie.app.step import Step
from coterie.core.ids import MessageId, NewId, SessionId, TurnId
from coterie.core.ledger.states import InputRemoved
from coterie.core.session.worktree import Worktree
from coterie.core.turn.states import TurnCancelled
from coterie.ports.rows import AuditRow
from coterie.ports.store import Tx

_QUEUE_MAX: Final = 1 << 31
_REASON: Final = "CANCELLED: the session was deleted."


@dataclass(frozen=True, slots=True)
class DeleteSession:
    """A session to end."""

    session_id: SessionId
    key: Key | None


@dataclass(slots=True)
class Deleted:
    """What ended with it."""

    message_ids: list[MessageId] = field(default_factory=list[MessageId])
    turn_ids: list[TurnId] = field(default_factory=list[TurnId])
    replayed: bool = False
    worktree: Worktree | None = None
    """What nobody works in any more."""


def delete_session(tx: Tx, command: DeleteSession, now: int, new_id: NewId) -> Deleted:
    """Cancel what the session runs and what waits for it, tell the senders, and leave a tombstone of id and title.

    What it has sent runs on and tells nobody. Its transcript is purged later, in pieces (`purge_deleted`).

    Raises:
        NotFoundError: It is not there.
    """
    before = once(tx, command.key, "[[], []]", kept_until=until(now))
    if before is not None:
        message_ids, turn_ids = json.loads(before)
        return Deleted(message_ids, turn_ids, replayed=True)
    session, step, gone = find.locked(tx, command.session_id), Step(tx, now, new_id), Deleted()
    gone.worktree = session.worktree
    senders = [message.source_session_id for message in tx.messages.open_between(session.id, None)]
    tx.locks.involve([session.id, *senders])
    turn = tx.turns.running(session.id)
    if turn is not None:
        tx.turns.fence(turn.id)
        end_turn(step, replace(with_usage(step, turn), error=_REASON), TurnCancelled, slot=False)
        gone.turn_ids.append(turn.id)
    for waiting in tx.inputs.page(session.id, _QUEUE_MAX):
        tx.inputs.remove(waiting.id)
        if waiting.message_id is None:
            continue
        settled = tx.messages.move(waiting.message_id, InputRemoved, now, error=_REASON)
        assert settled is not None, "a message with an input is queued (I3)"
        gone.message_ids.append(settled.id)
        tx.changed(settled.source_session_id, "message", settled.id)
        complete(step, settled, slot=False)
    tx.pairs.forget(session.id)
    tx.approvals.forget(session.id)
    tx.sessions.bury(session.id, now)
    tx.changed(session.id, "deleted", session.id)
    tx.journal.audit(AuditRow("person", "delete", session.id, session.title), now)
    if command.key is not None:
        tx.journal.set_ref(command.key.scope, command.key.key, json.dumps([gone.message_ids, gone.turn_ids]))
    return gone


def named_outputs(tx: Tx, refs: Sequence[str]) -> frozenset[str]:
    """Those of *refs* that some transcript still refers to."""
    return tx.items.named(refs)


def purge_deleted(tx: Tx, limit: int, now: int, new_id: NewId) -> int:
    """Delete up to *limit* items of a session that is deleted; returns how many, 0 when nothing is left."""
    del now, new_id
    buried = tx.directory.buried()
    return tx.items.purge(buried, limit) if buried is not None else 0
