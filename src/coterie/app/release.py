"""`session.release` and the answers of a person across projects: what waits for a person may go on."""

from dataclasses import dataclass
from enum import StrEnum

from coterie.app import find
from coterie.app.complete import complete
from coterie.app.idempotency import Key, once, until
from coterie.app.step import Step
from coterie.core.chain import grants_of_release, is_spent
from coterie.core.errors import NotFoundError
from coterie.core.ids import GrantId, NewId, RequestId, SessionId
from coterie.core.inbound import Waiting
from coterie.core.ledger.states import InputRemoved
from coterie.ports.rows import AuditRow, Input, PairGrant, PairRequest
from coterie.ports.store import Tx

_REASON = "PERMISSION_DENIED: a person refused this message across projects."


@dataclass(frozen=True, slots=True)
class Release:
    """Free the queue of one session, or of all."""

    session_id: SessionId | None
    key: Key | None


class Answer(StrEnum):
    """What a person says to a session that wants to write across projects."""

    ONCE = "once"
    """What waits now may go."""
    GRANT = "grant"
    """So may what comes in the next time."""
    DENY = "deny"
    """What waits now is cancelled."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answer to one question."""

    request_id: RequestId
    answer: Answer
    seconds: int
    """How long a grant lasts."""
    key: Key | None
    comment: str = ""
    """What the sender is told of messages that are denied."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """A grant to end."""

    grant_id: GrantId
    key: Key | None


def release(tx: Tx, command: Release, now: int, new_id: NewId) -> tuple[int, bool]:
    """Let held queues and marked inputs move again; a spent chain may spend on.

    Without a session all that a restart has held, and every mark; an archived session is freed by its name only.
    Returns how many sessions were freed, and whether that was told before.

    Raises:
        NotFoundError: The named session is not there.
    """
    del new_id
    before = once(tx, command.key, "0", kept_until=until(now))
    if before is not None:
        return int(before), True
    if command.session_id is None:
        held = tx.directory.held()
    else:
        held = (command.session_id,) if find.locked(tx, command.session_id).held else ()
    marked = tx.marks.marked(command.session_id)
    tx.locks.involve([*held, *(waiting.session_id for waiting in marked)])
    for session_id in held:
        tx.sessions.free(session_id)
        tx.changed(session_id, "released", session_id)
    for waiting in marked:
        tx.journal.audit(AuditRow("person", f"let go {waiting.waiting}", waiting.session_id, waiting.id), now)
    freed = {*held, *_unmark(tx, marked)}
    tx.journal.audit(AuditRow("person", "release", command.session_id, str(len(freed))), now)
    if command.key is not None:
        tx.journal.set_ref(command.key.scope, command.key.key, str(len(freed)))
    return len(freed), False


def _unmark(tx: Tx, marked: tuple[Input, ...]) -> set[SessionId]:
    """Let inputs go, with leave for their chains to spend as much again; returns the sessions concerned."""
    freed = {waiting.session_id for waiting in marked}
    for chain in tx.chains.lock(sorted({waiting.chain_id for waiting in marked})) if marked else ():
        if is_spent(chain, tx.host.spending):
            tx.chains.grant(chain.id, grants_of_release(chain, tx.host.spending))
            freed.update(tx.marks.free_chain(chain.id))
    for waiting in marked:
        tx.marks.mark(waiting.id, None)
    for waiting in marked:
        message = tx.messages.get(waiting.message_id) if waiting.message_id else None
        if message is not None and waiting.waiting is Waiting.ACROSS_PROJECTS:
            tx.pairs.close(message.source_session_id, message.target_session_id)
    for session_id in freed:
        tx.changed(session_id, "released", session_id)
    return freed


def answer_pair(tx: Tx, command: AnswerPair, now: int, new_id: NewId) -> tuple[int, bool]:
    """Answer whether a session may write to another across projects; a sender that is deleted by now gets no grant.

    Returns how many messages that concerned, and whether that was told before.

    Raises:
        NotFoundError: The question is not open.
    """
    before = once(tx, command.key, "0", kept_until=until(now))
    if before is not None:
        return int(before), True
    asked = tx.pairs.request(command.request_id)
    if asked is None:
        raise NotFoundError("open request", command.request_id)
    tx.locks.involve([asked.source_session_id, asked.target_session_id])
    step, waiting = Step(tx, now, new_id), tx.pairs.waiting(asked.source_session_id, asked.target_session_id)
    for one in waiting:
        _answer_one(step, asked, one, command)
    if command.answer is Answer.GRANT and tx.sessions.get(asked.source_session_id) is not None:
        expires_at = now + command.seconds * 1000
        pair = (asked.source_session_id, asked.target_session_id)
        tx.pairs.add_grant(PairGrant(GrantId(new_id("grt")), *pair, now, expires_at))
    tx.pairs.close(asked.source_session_id, asked.target_session_id)
    tx.changed(asked.target_session_id, "permission", asked.id)
    tx.journal.audit(AuditRow("person", f"answer {command.answer.value}", asked.target_session_id, asked.id), now)
    if command.key is not None:
        tx.journal.set_ref(command.key.scope, command.key.key, str(len(waiting)))
    return len(waiting), False


def _answer_one(step: Step, asked: PairRequest, waiting: Input, command: AnswerPair) -> None:
    tx = step.tx
    if command.answer is not Answer.DENY:
        chain = tx.chains.get(waiting.chain_id)
        spent = chain is not None and is_spent(chain, tx.host.spending)
        tx.marks.mark(waiting.id, Waiting.BUDGET if spent else None)
        return
    assert waiting.message_id is not None, "only messages wait for a pair"
    tx.inputs.remove(waiting.id)
    reason = f"{_REASON} They say: {command.comment}" if command.comment else _REASON
    settled = tx.messages.move(waiting.message_id, InputRemoved, step.now, error=reason)
    assert settled is not None, "a message with an input is queued (I3)"
    tx.changed(asked.source_session_id, "message", settled.id)
    tx.changed(asked.target_session_id, "message", settled.id)
    complete(step, settled, slot=False)


def revoke(tx: Tx, command: Revoke, now: int, new_id: NewId) -> bool:
    """End a grant; what was delivered under it stays. Returns whether that was done before with the key.

    Raises:
        NotFoundError: There is no such grant.
    """
    del new_id
    if once(tx, command.key, command.grant_id, kept_until=until(now)) is not None:
        return True
    if not tx.pairs.revoke(command.grant_id) and not tx.approvals.revoke(command.grant_id):
        raise NotFoundError("grant", command.grant_id)
    tx.journal.audit(AuditRow("person", "revoke", None, command.grant_id), now)
    return False
