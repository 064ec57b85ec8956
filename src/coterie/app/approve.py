"""Tool calls that a person is asked about, and questions that a call itself puts: what is asked, and the answer."""

from dataclasses import dataclass

from coterie.app import find
from coterie.app.idempotency import Key, once, until
from coterie.core.codes import Code
from coterie.core.errors import ConflictError, InvalidArgumentError, NotFoundError, RefusedError
from coterie.core.ids import GrantId, NewId, RequestId, SessionId, TurnId
from coterie.core.ledger.message import Message
from coterie.core.permission import Mode, Risk, covers, resolve
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import AuditRow, CallAnswer, CallGrant, CallRequest
from coterie.ports.store import Tx

CLIMB_MAX = 64
"""Messages that are looked through for whose ceiling it is: a chain may be set to be longer than a person reads."""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """A tool call that its turn may not make by itself, or that asks a person something."""

    turn_id: TurnId
    call_id: str
    """Of this one run of it: no other call of the turn has it, whatever its model calls it."""
    tool: str
    risk: Risk
    subject: str
    """What it is about, as rules and grants name it."""
    shown: str
    """What it would do, for the person."""
    mode: Mode | None
    """What the turn may do without asking; None where that is no matter of the question."""
    choices: tuple[str, ...] | None = None
    """Answers that are proposed to a question of the agent's own, which is the subject; None asks for leave."""


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """A person's answer."""

    request_id: RequestId
    answer: CallAnswer
    note: str
    """What they say, where they were asked for words; else what they add."""
    key: Key | None


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A call that is given up while its turn goes on."""

    turn_id: TurnId
    call_id: str


@dataclass(frozen=True, slots=True)
class CallOf:
    """One call of a running turn, as grants see it."""

    turn_id: TurnId
    tool: str
    subject: str


def is_granted(tx: Tx, call: CallOf) -> bool:
    """Whether a person has said that the session may do exactly this without asking again.

    That is the session's own right: it does not count in a turn that works for somebody who may do less (I11).
    """
    turn = tx.turns.get(call.turn_id)
    session = tx.sessions.get(turn.session_id) if turn is not None else None
    if turn is None or session is None or _clamped_by(tx, turn, session) is not None:
        return False
    return tx.approvals.has_grant(session.id, call.tool, call.subject)


def ask_person(tx: Tx, command: AskPerson, now: int, new_id: NewId) -> CallRequest | None:
    """Write the question, once for a call; None if the turn does not run here any more, or is to stop."""
    turn = tx.locks.turn(command.turn_id)
    if turn is None or turn.state is not TurnState.RUNNING or (turn.host_id, turn.epoch) != (tx.host.id, tx.host.epoch):
        return None
    if turn.fenced:
        return None
    # After a commit of unknown end the call is asked about a second time.
    known = tx.approvals.of_call(turn.id, command.call_id)
    if known is not None:
        return known
    session = tx.sessions.get(turn.session_id)
    assert session is not None, "a deleted session has no running turn"
    request = CallRequest(
        RequestId(new_id("req")),
        session.id,
        turn.id,
        command.call_id,
        command.tool,
        command.risk,
        command.subject,
        command.shown,
        command.mode or turn.permission,
        None if command.choices is not None else _clamped_by(tx, turn, session),
        now,
        choices=command.choices,
    )
    tx.approvals.ask(request)
    tx.changed(session.id, "permission", request.id)
    return request


def withdraw(tx: Tx, command: Withdraw, now: int, new_id: NewId) -> None:
    """End the question about a call that nobody waits for any more: a yes to it would do nothing."""
    del new_id
    turn = tx.locks.turn(command.turn_id)
    request = tx.approvals.of_call(command.turn_id, command.call_id)
    if turn is None or request is None:
        return
    if tx.approvals.answer(request.id, CallAnswer.DENY, "", now):
        tx.changed(request.session_id, "permission", request.id)


def _clamped_by(tx: Tx, turn: Turn, session: Session) -> SessionId | None:
    """Who is at the start of what keeps *turn* below its session's mode; None where nothing does.

    Rights only narrow on the way down, so the first message from the top with this ceiling is where it comes from.
    """
    message = tx.messages.get(turn.message_id) if turn.message_id else None
    if message is None or covers(Mode(message.ceiling), resolve(session.permission_mode, tx.host.permission_default)):
        return None
    for _ in range(CLIMB_MAX):
        above = _above(tx, message)
        if above is None or above.ceiling != message.ceiling:
            break
        message = above
    return message.source_session_id


def _above(tx: Tx, message: Message) -> Message | None:
    """Where *message* has its ceiling from, if not from its sender's own mode: a completion from what it answers."""
    if message.reply_to is not None:
        return tx.messages.get(message.reply_to)
    sender = tx.turns.get(message.source_turn_id) if message.source_turn_id else None
    return tx.messages.get(sender.message_id) if sender is not None and sender.message_id else None


def answer_call(tx: Tx, command: AnswerCall, now: int, new_id: NewId) -> tuple[CallRequest, bool]:
    """Answer whether a tool call may run, or what it asks; that is new authority and may exceed the turn's ceiling.

    Returns the request as it was asked, and whether that was answered before with the key.

    Raises:
        NotFoundError: There is no such question, or its turn has ended.
        ConflictError: Somebody has answered it.
        InvalidArgumentError: It asks for leave and not for words, or the other way round; or the words are none.
        RefusedError: The words are too many, or it was to be granted for the session, in a turn in which such grants
            do not count.
    """
    note = command.note
    if command.answer is CallAnswer.SAID:
        note = find.content(note, tx.host.limits.content_chars_max, "answer")
    request = tx.approvals.request(command.request_id)
    if request is None:
        raise NotFoundError("open request", command.request_id)
    if once(tx, command.key, request.id, kept_until=until(now)) is not None:
        return request, True
    turn = tx.locks.turn(request.turn_id)
    if turn is None or turn.state is not TurnState.RUNNING or turn.fenced:
        raise NotFoundError("open request", command.request_id)
    _check_fits(request, command.answer)
    if not tx.approvals.answer(request.id, command.answer, note, now):
        raise ConflictError(f"request {request.id}", "open", "answered")
    if command.answer is CallAnswer.SESSION:
        grant = CallGrant(GrantId(new_id("grt")), request.session_id, request.tool, request.subject, now)
        tx.approvals.add_grant(grant)
    tx.changed(request.session_id, "permission", request.id)
    tx.wake(request.turn_id)
    act = f"answer {command.answer.value} to {request.tool}"
    tx.journal.audit(AuditRow("person", act, request.session_id, request.id), now)
    return request, False


def _check_fits(request: CallRequest, answer: CallAnswer) -> None:
    """See that *answer* is one to what was asked."""
    if request.is_question and answer in (CallAnswer.ONCE, CallAnswer.SESSION):
        raise InvalidArgumentError("The agent asks for words, not for leave: answer it in words, or deny it.")
    if answer is CallAnswer.SAID and not request.is_question:
        raise InvalidArgumentError("The call waits for leave, not for words: let it run once or deny it.")
    if answer is CallAnswer.SESSION and request.clamped_by is not None:
        text = (
            f"This turn works for session {request.clamped_by}, which may do less, so each call is asked about: "
            "approve it once."
        )
        raise RefusedError(Refusal(Code.PERMISSION_DENIED, text))
