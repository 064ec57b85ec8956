"""What people and sessions say to each other."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import pytest
from tests.simulation.life import MODES, SESSIONS_MAX, Life, happens

from coterie.app.prompt_session import Prompted
from coterie.core.errors import NotFoundError
from coterie.core.ids import MessageId, SessionId
from coterie.core.ledger.message import Deliver, Kind
from coterie.core.ledger.states import SETTLED

LIVES: Final = (None, None, None, 1, 31_000)
"""For how many milliseconds a message is worth starting."""


def has_room(life: Life) -> bool:
    """Whether there may be one session more."""
    return len(life.sessions) < SESSIONS_MAX


class Talking(Life):
    """Sessions open; people prompt and steer, sessions send and spawn."""

    @happens(2, when=has_room)
    async def a_person_opens_a_session(self) -> None:
        """It belongs to some project or to none."""
        opening = self.ledger.session("more", self.one_of(MODES), project=self.one_of((None, None, "/project")))
        await self._joins(await opening)

    @happens(when=has_room)
    async def a_person_forks_a_session(self) -> None:
        """The new one knows what the old one has heard."""
        await self._joins(await self.ledger.fork(self.one_of(self.sessions)))

    async def _joins(self, session: SessionId) -> None:
        self.sessions.append(session)
        await self.ledger.configure(session, current_turn=self.one_of((True, True, False)))

    @happens(8)
    async def a_person_prompts(self) -> None:
        """It starts, or waits."""
        session = self.one_of(self.sessions)
        prompted = await self._say(self.ledger.prompt, session)
        if prompted is not None and prompted.turn_id is None and self.now.sessions[session].held is not None:
            assert (await self.ledger.queue(session))[0].id == prompted.input_id, "who frees a queue goes first"

    @happens(5)
    async def a_person_steers(self) -> None:
        """Mostly what runs; what is being cancelled takes in nothing."""
        session = self.one_of(self.sessions, self.busy)
        prompted = await self._say(self.ledger.steer, session)
        if prompted is not None:
            able = [turn.session_id for turn in self.now.running if not turn.fenced]
            assert (prompted.status == "accepted") == (session in able)

    async def _say(self, verb: Callable[..., Awaitable[Prompted]], session: SessionId) -> Prompted | None:
        text = f"words {len(self.witness.said)}"
        ask = partial(verb, session, text, slot=self.slot(), key=self.key())
        prompted = await self.try_to(ask())
        if prompted is not None:
            self.witness.said[text] = session
            self.repeats[prompted.input_id] = ask
        return prompted

    @happens(12)
    async def a_session_sends(self) -> None:
        """A running turn, or a person for an idle session."""
        life = self.one_of(LIVES)
        await self._send(
            self.one_of(self.sessions, self.busy),
            self.one_of(self.sessions),
            kind=self.one_of((Kind.TASK, Kind.TASK, Kind.MESSAGE)),
            notify=self.one_of((True, True, False)),
            slot=self.slot(),
            expires_at=None if life is None else self.latest + life,
        )

    @happens(12, when=lambda life: len(life.busy) > 1)
    async def a_turn_speaks_to_another(self) -> None:
        """It is to be read at once."""
        one, life = self.one_of(self.busy), self.one_of(LIVES)
        await self._send(
            one,
            self.one_of([other for other in self.busy if other != one]),
            kind=self.one_of((*[Kind.MESSAGE] * 7, Kind.TASK)),
            notify=self.perhaps(),
            deliver=Deliver.CURRENT_TURN,
            expires_at=None if life is None else self.latest + life,
        )

    async def _send(self, one: SessionId, other: SessionId, **letter: Any) -> None:
        if one != other:
            ask = partial(self.ledger.send, one, other, **letter, key=self.key())
            self.know(await self.try_to(ask()), ask)

    @happens(5, when=has_room)
    async def a_session_spawns(self) -> None:
        """Through a plugin perhaps."""
        source, plugin = self.one_of(self.sessions, self.busy), self.one_of((None, "plugin"))
        ask = partial(self.ledger.spawn, source, slot=self.slot(), plugin=plugin, key=self.key())
        receipt = await self.try_to(ask())
        if receipt is not None:
            await self._joins(receipt.message.target_session_id)
        self.know(receipt, ask)

    @happens(2, when=lambda life: life.accepted)
    async def a_person_retries(self) -> None:
        """Mostly what has settled."""
        ask = partial(self.ledger.retry, self.one_of(self.accepted, self._settled()), slot=self.slot(), key=self.key())
        self.know(await self.try_to(ask()), ask)

    def _settled(self) -> list[MessageId]:
        return [id_ for id_ in self.accepted if self.now.messages[id_].state in SETTLED]

    @happens(2, when=lambda life: life.accepted)
    async def a_session_accepts_a_result(self) -> None:
        """Mostly one that is there."""
        message = self.now.messages[self.one_of(self.accepted, self._settled())]
        await self.try_to(self.ledger.accept(message.id, await self.ledger.sender(message.source_session_id)))

    @happens(2, when=lambda life: life.repeats)
    async def somebody_asks_again(self) -> None:
        """Whoever did not hear the answer asks with the same key: the same is answered, and nothing is done."""
        made = self.one_of(list(self.repeats))
        before = await self.ledger.last_change()
        answer = await self.repeats[made]()
        assert answer.replayed
        assert (answer.input_id if isinstance(answer, Prompted) else answer.message.id) == made
        assert await self.ledger.last_change() == before

    @happens(when=lambda life: life.witness.gone)
    async def somebody_calls_on_the_gone(self) -> None:
        """Nobody finds a session that was deleted."""
        on, session = self.ledger, self.one_of(self.witness.gone)
        for verb in (on.prompt, on.steer, on.archive, on.fork, on.delete, on.interrupt, on.cancel, on.release):
            with pytest.raises(NotFoundError):
                await verb(session)
        with pytest.raises(NotFoundError):
            await on.send(self.one_of(self.sessions), session)
