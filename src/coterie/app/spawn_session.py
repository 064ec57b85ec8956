"""`collaboration.spawn`."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.deliver import Arrival, deliver
from coterie.app.ground import afford, may_spawn, stand
from coterie.app.idempotency import Key, once
from coterie.app.open_session import OpenSession, new_session
from coterie.app.receipt import Receipt, again
from coterie.app.send_message import Draft, SendMessage, new_message
from coterie.app.sender import Sender
from coterie.app.step import Step
from coterie.core.admission import Places
from coterie.core.ids import MessageId, NewId, SessionId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Kind
from coterie.core.permission import resolve
from coterie.core.session.session import title_from
from coterie.core.session.worktree import Origin, wants_worktree
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class SpawnSession:
    """A new session with its first task."""

    sender: Sender
    content: str
    title: str | None
    model: str | None
    notify: bool
    key: Key | None
    slot: bool
    workspace: str | None = None
    """`shared` or `worktree`; None is the default of the permission mode."""
    origin: Origin | None = None
    """What a worktree would begin from; None where there can be none."""


def spawn_session(tx: Tx, command: SpawnSession, now: int, new_id: NewId) -> Receipt:
    """Create a session that inherits project, permission mode and thinking, and send its first task: all or nothing.

    Raises:
        InvalidArgumentError, NotFoundError, PermissionDeniedError, RefusedError, IdempotencyConflictError
    """
    step = Step(tx, now, new_id)
    content = find.content(command.content, tx.host.limits.content_chars_max, "content")
    message_id = MessageId(new_id("msg"))
    first = once(tx, command.key, message_id)
    if first is not None:
        return again(tx, MessageId(first))
    ground = stand(step, command.sender, tx.sessions.lock([command.sender.session_id]))
    may_spawn(step, ground, command.sender.plugin)
    hops = afford(step, ground, sessions=1)
    mode = resolve(ground.session.permission_mode, tx.host.permission_default)
    opening = OpenSession(
        title=command.title or title_from(content),
        project_path=ground.session.project_path,
        model=command.model,
        permission_mode=ground.session.permission_mode,
        created_by=ground.session.id,
        plugin=command.sender.plugin,
        thinking=ground.session.thinking,
        origin=command.origin if wants_worktree(command.workspace, mode) else None,
    )
    worker = new_session(step, opening, SessionId(new_id("ses")))
    tx.changed(ground.session.id, "session", worker.id)
    send = SendMessage(
        command.sender, worker.id, content, Kind.TASK, notify=command.notify, key=command.key, slot=command.slot
    )
    message = new_message(step, ground, worker, send, draft=Draft(message_id, content, hops))
    waiting = Waiting.BUDGET if ground.is_spent(step) else None
    turn = deliver(step, worker, message, Arrival(Places(0, 0, 0, running=False), command.slot, waiting=waiting))
    return Receipt(message, turn) if turn is not None else Receipt(message, position=1, waiting=waiting)
