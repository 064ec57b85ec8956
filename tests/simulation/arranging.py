"""What people decide: the order of queues, settings, answers, and what is to stop or to go."""

from tests.simulation.life import MODES, Life, happens

from coterie.app.arrange_queue import Direction
from coterie.app.release import Answer
from coterie.core.ids import SessionId
from coterie.core.inbound import Inbound
from coterie.core.ledger.states import SETTLED
from coterie.core.session.session import Held
from coterie.ports.rows import Input


def waits(life: Life) -> bool:
    """Whether anything waits."""
    return bool(life.now.waiting)


class Arranging(Life):
    """Queues are put in order, and what waits for a person is answered."""

    @happens(3, when=waits)
    async def an_input_goes_before_others(self) -> None:
        """It is promoted or moved, and waits on with all the others."""
        one, direction = self._waiting(), self.one_of((None, *Direction))
        if direction is None:
            await self.try_to(self.ledger.promote(one.session_id, one.id))
        else:
            await self.ledger.move(one.session_id, one.id, direction)
        after = await self.ledger.queue(one.session_id)
        assert {other.id for other in after} == {other.id for other in self.now.queues[one.session_id]}

    @happens(2, when=waits)
    async def an_input_is_removed(self) -> None:
        """A person takes words back, or a message out."""
        one = self._waiting()
        await self.ledger.remove(one.session_id, one.id)
        if one.text is not None:
            self.witness.taken_back.add(one.text)

    def _waiting(self) -> Input:
        queues = {one.id: one for one in self.now.waiting}
        return queues[self.one_of(list(queues))]

    @happens(3)
    async def a_session_is_configured(self) -> None:
        """What it may do, and what it takes in."""
        mode, inbound = self.one_of((None, *MODES)), self.one_of((Inbound.ACCEPT, Inbound.ACCEPT, *Inbound))
        current_turn = self.one_of((True, True, False))
        session = self.one_of(self.sessions, [turn.session_id for turn in self.now.running if turn.news])
        await self.ledger.configure(session, permission_mode=mode, inbound=inbound, current_turn=current_turn)

    @happens(4)
    async def queues_are_released(self) -> None:
        """One, or all."""
        await self.ledger.release(self.one_of((None, *self.sessions)))

    @happens(5, when=lambda life: life.now.asked)
    async def a_question_is_answered(self) -> None:
        """Whether a session may write to another across projects."""
        asked, answer = self.one_of([one.id for one in self.now.asked]), self.one_of(tuple(Answer))
        await self.ledger.answer(asked, answer, seconds=self.one_of((1, 60)))

    @happens(2, when=lambda life: life.now.granted)
    async def a_grant_is_revoked(self) -> None:
        """The next message across projects asks again."""
        await self.ledger.revoke(self.one_of([grant.id for grant in self.now.granted]))


class Ending(Life):
    """Messages, turns and sessions are stopped, put away and deleted."""

    @happens(3, when=lambda life: life.accepted)
    async def a_message_is_cancelled(self) -> None:
        """By its sender, another session or a person; where that is possible, it is over at once."""
        live = [id_ for id_ in self.accepted if self.now.messages[id_].state not in SETTLED]
        message = self.now.messages[self.one_of(self.accepted, live)]
        by = self.one_of((None, message.source_session_id, *self.sessions))
        act = self.ledger.cancel(message.target_session_id, message.id, by=by, cascade=self.perhaps())
        if await self.try_to(act) is not None:
            assert by in {None, message.source_session_id}
            assert await self.ledger.state(message.id) in SETTLED

    @happens()
    async def a_session_is_cancelled(self) -> None:
        """All of it that may be stopped."""
        session, by = self.one_of(self.sessions, self.busy), self.one_of((None, *self.sessions))
        await self.ledger.cancel(session, by=by, cascade=self.perhaps())

    @happens(when=lambda life: life.busy)
    async def a_session_is_interrupted(self) -> None:
        """What it runs is fenced, and the message that it runs is over."""
        turn = self.turn()
        await self.ledger.interrupt(turn.session_id, cascade=self.perhaps())
        assert (await self.ledger.turn(turn.id)).fenced
        assert turn.message_id is None or await self.ledger.state(turn.message_id) in SETTLED

    @happens(when=lambda life: life.idle())
    async def a_session_is_archived(self) -> None:
        """It runs nothing."""
        session = self.one_of(self.idle())
        await self.ledger.archive(session)
        assert (await self.ledger.known(session)).held is Held.ARCHIVED

    def idle(self) -> list[SessionId]:
        """Sessions that run nothing."""
        return [session for session in self.sessions if session not in self.busy]

    @happens(when=lambda life: len(life.sessions) > 2)
    async def a_session_is_deleted(self) -> None:
        """Mostly one that waits for an answer; its transcript goes in pieces."""
        awaits = {one.source_session_id for one in self.now.messages.values() if one.state not in SETTLED}
        session = self.one_of(self.sessions, [session for session in self.sessions if session in awaits])
        await self.ledger.delete(session)
        await self.ledger.purge(self.one_of(range(4)))
        self.sessions.remove(session)
        self.witness.gone.append(session)
