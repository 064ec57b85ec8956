"""What people and sessions say to each other."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.simulation.machine import SESSIONS_MAX, LedgerMachine, projects, which

from coterie.app.prompt_session import Prompted
from coterie.core.errors import NotFoundError
from coterie.core.ids import SessionId
from coterie.core.ledger.message import Deliver, Kind
from coterie.core.permission import StoredMode

letters = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([Kind.TASK, Kind.MESSAGE]),
        "notify": st.booleans(),
        "deliver": st.sampled_from(Deliver),
        "slot": st.booleans(),
    }
)
"""How something is sent, by the names of `SendMessage`."""
lives = st.sampled_from([None, None, None, 1, 31_000])
"""For how many milliseconds a message is worth starting."""


class Talking(LedgerMachine):
    """Sessions open; people prompt and steer, sessions send and spawn."""

    @precondition(lambda self: len(self.sessions) < SESSIONS_MAX)
    @rule(mode=st.sampled_from(StoredMode), project=projects, current_turn=st.booleans())
    def open_session(self, mode: StoredMode, project: str | None, *, current_turn: bool) -> None:
        """A person opens a session."""
        session = self.do(self.ledger.session("more", mode, project=project))
        self.do(self.ledger.configure(session, current_turn=current_turn))
        self.sessions.append(session)

    @precondition(lambda self: len(self.sessions) < SESSIONS_MAX)
    @rule(session=which)
    def fork(self, session: int) -> None:
        """A person goes on from what a session knows."""
        self.sessions.append(self.do(self.ledger.fork(self.pick(session))))

    @rule(session=which, slot=st.booleans())
    def prompt(self, session: int, *, slot: bool) -> None:
        """A person speaks to a session."""
        self._say(self.ledger.prompt, self.pick(session), slot=slot)

    @rule(session=which, slot=st.booleans(), busy=st.booleans())
    def steer(self, session: int, *, slot: bool, busy: bool) -> None:
        """A person speaks into what a session runs."""
        self._say(self.ledger.steer, self.pick(session, busy=busy), slot=slot)

    def _say(self, verb: Callable[..., Coroutine[Any, Any, Prompted]], session: SessionId, *, slot: bool) -> None:
        text = f"words {len(self.witness.said)}"
        ask = partial(verb, session, text, slot=slot, key=self.key())
        prompted = self.try_to(ask())
        if prompted is not None:
            self.witness.said[text] = session
            self.repeats.append((prompted.input_id, ask))

    @rule(source=which, to=which, busy=st.booleans(), letter=letters, life=lives)
    def send(self, source: int, to: int, *, busy: bool, letter: dict[str, Any], life: int | None) -> None:
        """A turn, or a person for an idle session, sends to another one."""
        one, other = self.pick(source, busy=busy), self.pick(to)
        if one != other:
            expires_at = None if life is None else self.latest + life
            ask = partial(self.ledger.send, one, other, **letter, expires_at=expires_at, key=self.key())
            self.know(self.try_to(ask()), ask)

    @precondition(lambda self: self.now.running)
    @rule(source=which, to=which, slot=st.booleans())
    def offer(self, source: int, to: int, *, slot: bool) -> None:
        """A turn sends to another one, to be read at once."""
        one, other = self.turn(source).session_id, self.pick(to, busy=True)
        if one != other:
            ask = partial(
                self.ledger.send, one, other, kind=Kind.MESSAGE, deliver=Deliver.CURRENT_TURN, slot=slot, key=self.key()
            )
            self.know(self.try_to(ask()), ask)

    @precondition(lambda self: len(self.sessions) < SESSIONS_MAX)
    @rule(source=which, busy=st.booleans(), slot=st.booleans(), plugin=st.sampled_from([None, "plugin"]))
    def spawn(self, source: int, *, busy: bool, slot: bool, plugin: str | None) -> None:
        """A turn gives work to a new session."""
        ask = partial(self.ledger.spawn, self.pick(source, busy=busy), slot=slot, plugin=plugin, key=self.key())
        receipt = self.try_to(ask())
        if receipt is not None:
            self.sessions.append(receipt.message.target_session_id)
            self.know(receipt, ask)

    @precondition(lambda self: self.accepted)
    @rule(number=which, slot=st.booleans())
    def retry(self, number: int, *, slot: bool) -> None:
        """A person lets something be tried once more."""
        ask = partial(self.ledger.retry, self.message(number), slot=slot, key=self.key())
        self.know(self.try_to(ask()), ask)

    @precondition(lambda self: self.accepted)
    @rule(number=which)
    def accept(self, number: int) -> None:
        """A session is content with a result."""
        message = self.now.messages[self.message(number)]
        self.try_to(self.ledger.accept(message.id, self.do(self.ledger.sender(message.source_session_id))))

    @precondition(lambda self: self.repeats)
    @rule(number=which)
    def ask_again(self, number: int) -> None:
        """Whoever did not hear the answer asks with the same key: the same is answered, and nothing is done."""
        made, ask = self.repeats[number % len(self.repeats)]
        before = self.do(self.ledger.last_change())
        answer = self.do(ask())
        assert answer.replayed
        assert (answer.input_id if isinstance(answer, Prompted) else answer.message.id) == made
        assert self.do(self.ledger.last_change()) == before

    @precondition(lambda self: self.witness.gone)
    @rule(gone=which, number=which)
    def call_on_the_gone(self, gone: int, number: int) -> None:
        """Nobody finds a session that was deleted."""
        session = self.witness.gone[gone % len(self.witness.gone)]
        ledger = self.ledger
        verbs = (
            ledger.prompt,
            ledger.steer,
            ledger.archive,
            ledger.fork,
            ledger.delete,
            ledger.interrupt,
            ledger.release,
        )
        with pytest.raises(NotFoundError):
            self.do(verbs[number % len(verbs)](session))
        with pytest.raises(NotFoundError):
            self.do(ledger.send(self.pick(number), session))
