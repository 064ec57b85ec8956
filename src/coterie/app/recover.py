"""What a start does before anything may run (I9)."""

from coterie.app import expire as expiring
from coterie.app.settle_turn import interrupt_turn
from coterie.app.step import Step
from coterie.core.ids import HostId, NewId, SessionId
from coterie.core.session.session import Held
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx


def begin_epoch(tx: Tx, command: HostId, now: int, new_id: NewId) -> tuple[HostId, int]:
    """Return the host's id and its new epoch: from here on, earlier turns are nobody's."""
    del new_id
    return tx.hosts.begin_epoch(command, now)


def hold_queues(tx: Tx, command: None, now: int, new_id: NewId) -> int:
    """Hold every session with a non-empty queue; returns how many.

    A host that is set to go on with what waits holds none, and frees what earlier starts have held.
    """
    del command, new_id
    if tx.host.resume:
        held = tx.directory.held()
        tx.locks.involve(held)
        for session_id in held:
            tx.sessions.free(session_id)
            tx.changed(session_id, "released", session_id)
        return 0
    return tx.sessions.hold_waiting(Held.RESTART, now)


def turns_left_running(tx: Tx, command: None) -> tuple[Turn, ...]:
    """The turns that earlier epochs of this host did not end."""
    del command
    return tx.turns.left_running(tx.host)


def interrupt(tx: Tx, command: Turn, now: int, new_id: NewId) -> bool:
    """End one of them; its completion waits in a held queue. False if an earlier try has done it."""
    return interrupt_turn(Step(tx, now, new_id), command).state is not None


def expire(tx: Tx, command: None, now: int, new_id: NewId) -> int:
    """Settle queued messages whose time is over; their completions wait in held queues. Returns how many."""
    del command
    due, step = expiring.due_now(tx, now), Step(tx, now, new_id)
    for message in due:
        if message.notify and not tx.host.resume:
            tx.sessions.hold(message.source_session_id, Held.RESTART)
    return sum(expiring.expire(step, message) for message in due)


def held_sessions(tx: Tx, command: None) -> tuple[SessionId, ...]:
    """The sessions whose queue a person must release."""
    del command
    return tx.directory.held()


def turns_running_here(tx: Tx, command: None) -> tuple[Turn, ...]:
    """The turns of this epoch: the audit gives those without a worker to one."""
    del command
    return tx.turns.running_here(tx.host)
