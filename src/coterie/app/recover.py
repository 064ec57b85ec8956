"""What a start does before anything may run, and what a person's release does after it (I9)."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.idempotency import Key, once
from coterie.app.settle_turn import interrupt_turn
from coterie.app.step import Step
from coterie.core.ids import HostId, NewId, SessionId
from coterie.core.session.session import Held
from coterie.core.turn.turn import Turn
from coterie.ports.store import AuditRow, Tx


@dataclass(frozen=True, slots=True)
class Release:
    """Free the queue of one session, or of all."""

    session_id: SessionId | None
    key: Key | None


def begin_epoch(tx: Tx, command: HostId, now: int, new_id: NewId) -> tuple[HostId, int]:
    """Return the host's id and its new epoch: from here on, earlier turns are nobody's."""
    del new_id
    return tx.hosts.begin_epoch(command, now)


def hold_queues(tx: Tx, command: None, now: int, new_id: NewId) -> int:
    """Hold every session with a non-empty queue; returns how many."""
    del command, new_id
    return tx.sessions.hold_waiting(Held.RESTART, now)


def turns_left_running(tx: Tx, command: None) -> tuple[Turn, ...]:
    """The turns that earlier epochs of this host did not end."""
    del command
    return tx.turns.left_running(tx.host)


def interrupt(tx: Tx, command: Turn, now: int, new_id: NewId) -> bool:
    """End one of them; its completion waits in a held queue. False if an earlier try has done it."""
    return interrupt_turn(Step(tx, now, new_id), command).state is not None


def held_sessions(tx: Tx, command: None) -> tuple[SessionId, ...]:
    """The sessions whose queue a person must release."""
    del command
    return tx.sessions.held()


def turns_running_here(tx: Tx, command: None) -> tuple[Turn, ...]:
    """The turns of this epoch: the audit gives those without a worker to one."""
    del command
    return tx.turns.running_here(tx.host)


def release(tx: Tx, command: Release, now: int, new_id: NewId) -> tuple[int, bool]:
    """Let held queues move again; returns how many sessions were freed, and whether that was told before.

    Raises:
        NotFoundError: The named session is not there.
    """
    del new_id
    before = once(tx, command.key, "0")
    if before is not None:
        return int(before), True
    if command.session_id is None:
        freed = tx.sessions.held()
    else:
        freed = (command.session_id,) if find.session(tx, command.session_id).held else ()
    for session_id in freed:
        tx.sessions.set_held(session_id, None)
        tx.changed(session_id, "released", session_id)
    tx.journal.audit(AuditRow("person", "release", command.session_id, str(len(freed))), now)
    if command.key is not None:
        tx.journal.set_ref(command.key.scope, command.key.key, str(len(freed)))
    return len(freed), False
