"""`session.prompt`: what a person says to a session."""

from dataclasses import dataclass, replace

from coterie.app import find
from coterie.app.bind import bind_fresh
from coterie.app.idempotency import Key, once
from coterie.app.step import Step
from coterie.core import admission
from coterie.core.chain import Chain
from coterie.core.errors import RefusedError
from coterie.core.ids import ChainId, InputId, NewId, SessionId, TurnId
from coterie.core.turn.turn import Turn
from coterie.ports.store import Input, Tx


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
    """`queued`, or the state of its turn."""
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
        turn = tx.turns.of_input(InputId(first))
        return _prompted(InputId(first), turn, position=None, replayed=True)
    session = tx.sessions.lock([command.session_id]).get(command.session_id)
    if session is None:
        raise find.no_session(command.session_id)
    places = tx.inputs.places(session.id)
    refusal = admission.admit_prompt(places, tx.host.limits.prompts_max)
    if refusal is not None:
        raise RefusedError(refusal)
    chain = Chain(ChainId(new_id("chn")), 0, 0, now)
    tx.chains.add(chain)
    rank = 0
    if session.held is not None:
        # The prompt that frees a held session runs first: before older prompts, and whatever the streak says.
        tx.sessions.set_held(session.id, None)
        tx.sessions.set_streak(session.id, 0)
        tx.changed(session.id, "released", session.id)
        first, _ = tx.inputs.heads(session.id)
        rank = min(0, first.rank if first else 0) - 1
    session = replace(session, held=None, streak=session.streak if rank == 0 else 0)
    waiting = Input(input_id, session.id, "prompt", chain.id, now, text=text, rank=rank)
    turn = bind_fresh(Step(tx, now, new_id), session, waiting, None, places=places, slot=command.slot)
    position = None if turn else places.prompts + 1 if rank == 0 else 1
    return _prompted(input_id, turn, position=position)


def _prompted(input_id: InputId, turn: Turn | None, *, position: int | None, replayed: bool = False) -> Prompted:
    if turn is None:
        return Prompted(input_id, None, "queued", position, replayed)
    return Prompted(input_id, turn.id, turn.state.value, position, replayed)
