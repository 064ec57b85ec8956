"""What a send stands on: who may speak now, with which rights, and what its chains have left."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.sender import Sender, live_turn
from coterie.app.step import Step
from coterie.core import admission, chain, inbound
from coterie.core.chain import Chain, is_spent
from coterie.core.errors import PermissionDeniedError, RefusedError
from coterie.core.ids import ChainId, RequestId, SessionId
from coterie.core.inbound import Gate, Waiting
from coterie.core.permission import Mode, least, resolve
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.ports.rows import AuditRow, PairRequest


@dataclass(frozen=True, slots=True)
class Ground:
    """A sender that may speak."""

    session: Session
    turn: Turn | None
    """None when a person speaks for the session."""
    chains: tuple[Chain, ...]
    """What a send is charged to; it belongs to the first."""
    ceiling: Mode

    def is_spent(self, step: Step) -> bool:
        """Whether the chain of what is sent may start nothing more."""
        return is_spent(self.chains[0], step.tx.host.spending)


def stand(step: Step, sender: Sender, sessions: dict[SessionId, Session]) -> Ground:
    """Check that the sender may speak now, and read what it has left.

    A person who speaks for a session starts a chain, as a prompt would.

    Args:
        step: The transaction.
        sender: Who sends.
        sessions: The locked sessions.

    Raises:
        NotFoundError, ConflictError
    """
    tx = step.tx
    source = sessions.get(sender.session_id)
    if source is None:
        raise find.no_session(sender.session_id)
    mode = resolve(source.permission_mode, tx.host.permission_default)
    if sender.turn_id is None:
        fresh = Chain(ChainId(step.new_id("chn")), 0, 0, step.now)
        tx.chains.add(fresh)
        tx.journal.audit(AuditRow("person", "send", source.id, fresh.id), step.now)
        return Ground(source, None, (fresh,), mode)
    turn = live_turn(tx, sender)
    return Ground(source, turn, tx.chains.lock(turn.chains), least([turn.permission, mode]))


def pass_gate(step: Step, ground: Ground, target: Session) -> Waiting | None:
    """Return why what is sent to *target* may not start yet; a person's own send asks nobody.

    Raises:
        RefusedError: The target or the host lets nothing in.
    """
    if ground.turn is None:
        return None
    tx, source = step.tx, ground.session
    across = tx.host.across if source.project_path != target.project_path else None
    if across is not None and tx.pairs.has_grant(source.id, target.id, step.now):
        across = None
    found = inbound.admit(Gate(target.inbound, across), target.title)
    if isinstance(found, Refusal):
        raise RefusedError(found)
    if found is Waiting.ACROSS_PROJECTS:
        tx.pairs.ask(PairRequest(RequestId(step.new_id("req")), source.id, target.id, step.now))
        tx.changed(target.id, "permission", source.id)
    return found


def afford(step: Step, ground: Ground, *, sessions: int = 0) -> int:
    """Charge one message, and the sessions that come with it, to every chain; return the hops that the message has.

    Raises:
        RefusedError: Depth or budget is used up, and nothing is charged.
    """
    limits, turn = step.tx.host.limits, ground.turn
    inherited = turn.hops if turn else chain.hops_of_prompt(limits.hops_max)
    hops = chain.hops_of_send(inherited, limits.hops_max)
    if isinstance(hops, Refusal):
        raise RefusedError(hops)
    for used in ground.chains:
        refuse(chain.admit_session(used, limits.chain_sessions_max) if sessions else None)
        refuse(chain.admit_message(used, limits.chain_messages_max))
    for used in ground.chains:
        step.tx.chains.charge(used.id, messages=1, sessions=sessions)
    return hops


def refuse(refusal: Refusal | None) -> None:
    """Raise *refusal*, if there is one."""
    if refusal is not None:
        raise RefusedError(refusal)


def may_spawn(step: Step, ground: Ground, plugin: str | None) -> None:
    """Check that the sender may have one more worker; only live work counts, and a person is not counted.

    Raises:
        PermissionDeniedError: It was spawned itself.
        RefusedError: It, or its plugin, has its fill of workers with work.
    """
    if ground.session.created_by is not None:
        raise PermissionDeniedError("A spawned session cannot spawn; send to a session that is there, or answer.")
    if ground.turn is None:
        return
    directory, limits = step.tx.directory, step.tx.host.limits
    active = directory.workers_active(ground.session.id)
    refuse(admission.admit_worker(active, limits.workers_active_max, "workers_active_max"))
    if plugin is not None:
        active = directory.plugin_workers_active(plugin)
        refuse(admission.admit_worker(active, limits.workers_active_per_plugin_max, "workers_active_per_plugin_max"))
