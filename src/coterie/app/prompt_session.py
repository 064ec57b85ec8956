"""`session.prompt` and `session.steer`: what a person says to a session."""

from dataclasses import dataclass, replace

from coterie.app import find
from coterie.app.bind import bind_fresh
from coterie.app.ground import refuse
from coterie.app.idempotency import Key, once
from coterie.app.step import Step
from coterie.core import admission
from coterie.core.admission import Places
from coterie.core.chain import Chain
from coterie.core.ids import ChainId, InputId, NewId, SessionId, TurnId
from coterie.core.session.session import Session
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input
from coterie.ports.store import Tx


@dataclass(frozen=True, slots=True)
class PromptSession:
    """A person's input."""

    session_id: SessionId
    text: str
    key: Key | None
    slot: bool


@dataclass(frozen=True, slots=True)
class Prompted:
    """What became of it."""

    input_id: InputId
    turn_id: TurnId | None
    status: str
    """`queued`, `removed`, or the state of its turn; `accepted` for steering that the turn takes in."""
    position: int | None
    replayed: bool = False


def prompt_session(tx: Tx, command: PromptSession, now: int, new_id: NewId) -> Prompted:
    """Queue or start a person's input; on a held session it frees the queue and runs first.

    Raises:
        InvalidArgumentError, NotFoundError, RefusedError, IdempotencyConflictError
    """
    text = find.content(command.text, tx.host.limits.content_chars_max, "text")
    input_id = InputId(new_id("inp"))
    first = once(tx, command.key, input_id)
    if first is not None:
        return _again(tx, InputId(first))
    session, places = _admitted(tx, command.session_id)
    waiting = Input(input_id, session.id, "prompt", ChainId(new_id("chn")), now, text=text)
    return _enqueue(Step(tx, now, new_id), session, waiting, places, slot=command.slot)


def steer_session(tx: Tx, command: PromptSession, now: int, new_id: NewId) -> Prompted:
    """Give the running turn something that its next model request shows; without one it becomes a prompt.

    It never aborts a request or a tool, and stays a person's words.

    Raises:
        InvalidArgumentError, NotFoundError, RefusedError, IdempotencyConflictError
    """
    text = find.content(command.text, tx.host.limits.content_chars_max, "text")
    input_id = InputId(new_id("inp"))
    first = once(tx, command.key, input_id)
    if first is not None:
        said, _, turn_id = first.partition(" ")
        again = _again(tx, InputId(said))
        # What was not read in time has become a prompt; what was read, or waits to be, has no turn of its own.
        if turn_id and again.turn_id is None and not _is_prompt(tx, again.input_id):
            return Prompted(again.input_id, TurnId(turn_id), "accepted", None, replayed=True)
        return again
    session, places = _admitted(tx, command.session_id)
    step = Step(tx, now, new_id)
    waiting = Input(input_id, session.id, "prompt", ChainId(new_id("chn")), now, text=text)
    turn = tx.turns.running(session.id) if places.running else None
    if turn is None or turn.fenced:
        return _enqueue(step, session, waiting, places, slot=command.slot)
    tx.chains.add(Chain(waiting.chain_id, 0, 0, now))
    tx.inputs.add(replace(waiting, kind="steer", turn_id=turn.id))
    tx.turns.set_news(turn.id, news=True)
    tx.changed(session.id, "input", input_id)
    if command.key is not None:
        tx.journal.set_ref(command.key.scope, command.key.key, f"{input_id} {turn.id}")
    return Prompted(input_id, turn.id, "accepted", None)


def _is_prompt(tx: Tx, input_id: InputId) -> bool:
    waiting = tx.inputs.get(input_id)
    return waiting is not None and waiting.kind == "prompt"


def _admitted(tx: Tx, session_id: SessionId) -> tuple[Session, Places]:
    found = tx.locks.target(session_id)
    if found is None:
        raise find.no_session(session_id)
    session, places = found
    refuse(admission.admit_prompt(places, tx.host.limits.prompts_max))
    return session, places


def _enqueue(step: Step, session: Session, waiting: Input, places: Places, *, slot: bool) -> Prompted:
    tx = step.tx
    tx.chains.add(Chain(waiting.chain_id, 0, 0, step.now))
    freed = session.held is not None
    if freed:
        # What happened before the hold must not let a message overtake the next prompts.
        tx.sessions.free(session.id)
        tx.sessions.set_streak(session.id, 0)
        tx.changed(session.id, "released", session.id)
        session = replace(session, held=None, streak=0)
    turn = bind_fresh(step, session, waiting, None, places=places, slot=slot)
    if turn is not None:
        return _prompted(waiting.id, turn)
    if freed:
        # The prompt that frees a held session runs first: before older prompts, and whatever the streak says.
        tx.inputs.promote(waiting.id, first=True)
    return Prompted(waiting.id, None, "queued", 1 if freed else places.prompts + 1)


def _again(tx: Tx, input_id: InputId) -> Prompted:
    turn = tx.turns.of_input(input_id)
    if turn is not None:
        return replace(_prompted(input_id, turn), replayed=True)
    status = "queued" if tx.inputs.get(input_id) is not None else "removed"
    return Prompted(input_id, None, status, None, replayed=True)


def _prompted(input_id: InputId, turn: Turn) -> Prompted:
    return Prompted(input_id, turn.id, turn.state.value, None)
