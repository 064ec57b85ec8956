"""What people decide: the order of queues, settings, answers, and what is to stop or to go."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.simulation.machine import LedgerMachine, which

from coterie.app.arrange_queue import Direction
from coterie.app.release import Answer
from coterie.core.inbound import Inbound
from coterie.core.ledger.states import SETTLED
from coterie.core.permission import StoredMode

settings = st.fixed_dictionaries(
    {},
    optional={
        "current_turn": st.booleans(),
        "inbound": st.sampled_from([Inbound.ACCEPT, *Inbound]),
        "permission_mode": st.sampled_from(StoredMode),
    },
)


class Arranging(LedgerMachine):
    """Queues are put in order, and what waits for a person is answered."""

    @precondition(lambda self: self.now.waiting)
    @rule(number=which, direction=st.none() | st.sampled_from(Direction))
    def go_before(self, number: int, direction: Direction | None) -> None:
        """A person promotes or moves what waits; it waits on, with all the others."""
        one = self.now.waiting[number % len(self.now.waiting)]
        if direction is None:
            self.try_to(self.ledger.promote(one.session_id, one.id))
        else:
            self.do(self.ledger.move(one.session_id, one.id, direction))
        after = self.do(self.ledger.queue(one.session_id))
        assert {other.id for other in after} == {other.id for other in self.now.queues[one.session_id]}

    @precondition(lambda self: self.now.waiting)
    @rule(number=which)
    def remove(self, number: int) -> None:
        """A person takes something out of a queue."""
        one = self.now.waiting[number % len(self.now.waiting)]
        self.do(self.ledger.remove(one.session_id, one.id))
        if one.text is not None:
            self.witness.taken_back.add(one.text)

    @rule(session=which, changes=settings)
    def configure(self, session: int, changes: dict[str, Any]) -> None:
        """A person changes what a session may do and takes in."""
        self.do(self.ledger.configure(self.pick(session), **changes))

    @rule(session=st.none() | which)
    def release(self, session: int | None) -> None:
        """A person lets queues move."""
        self.do(self.ledger.release(None if session is None else self.pick(session)))

    @precondition(lambda self: self.now.asked)
    @rule(number=which, answer=st.sampled_from(Answer), seconds=st.sampled_from([1, 60]))
    def answer(self, number: int, answer: Answer, seconds: int) -> None:
        """A person says whether a session may write to another across projects."""
        asked = self.now.asked
        self.do(self.ledger.answer(asked[number % len(asked)].id, answer, seconds=seconds))

    @precondition(lambda self: self.now.granted)
    @rule(number=which)
    def revoke(self, number: int) -> None:
        """A person takes the leave back."""
        granted = self.now.granted
        self.do(self.ledger.revoke(granted[number % len(granted)].id))


class Ending(LedgerMachine):
    """Messages, turns and sessions are stopped, put away and deleted."""

    @precondition(lambda self: self.accepted)
    @rule(number=which, by=st.none() | which, cascade=st.booleans())
    def cancel_message(self, number: int, *, by: int | None, cascade: bool) -> None:
        """Its sender, another session or a person stops a message; where that is possible, it is over at once."""
        message = self.now.messages[self.message(number)]
        agents = [message.source_session_id, *self.sessions]
        agent = None if by is None else agents[by % len(agents)]
        stopped = self.try_to(self.ledger.cancel(message.target_session_id, message.id, by=agent, cascade=cascade))
        if stopped is not None:
            assert agent in {None, message.source_session_id}
            assert self.do(self.ledger.state(message.id)) in SETTLED

    @rule(session=which, by=st.none() | which, cascade=st.booleans())
    def cancel_session(self, session: int, *, by: int | None, cascade: bool) -> None:
        """All that may be stopped in a session."""
        agent = None if by is None else self.pick(by)
        self.do(self.ledger.cancel(self.pick(session), by=agent, cascade=cascade))

    @precondition(lambda self: self.now.running)
    @rule(number=which, cascade=st.booleans())
    def interrupt(self, number: int, *, cascade: bool) -> None:
        """A person stops what a session runs."""
        turn = self.turn(number)
        self.do(self.ledger.interrupt(turn.session_id, cascade=cascade))
        assert (self.do(self.ledger.turn(turn.id))).fenced

    @rule(session=which)
    def archive(self, session: int) -> None:
        """A person puts a session away."""
        self.try_to(self.ledger.archive(self.pick(session)))

    @precondition(lambda self: len(self.sessions) > 2)
    @rule(session=which, purged=st.integers(0, 3))
    def delete(self, session: int, purged: int) -> None:
        """A person deletes a session; its transcript goes in pieces."""
        one = self.pick(session)
        self.do(self.ledger.delete(one))
        self.do(self.ledger.purge(purged))
        self.sessions.remove(one)
        self.witness.gone.append(one)
