"""Random lives of a ledger: whatever happens in whatever order, every promise holds after each step.

The machine knows little on purpose: which messages were accepted, and how turns and messages ended. The rest is asked
of the ledger itself, by its own checks.
"""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.contract.test_sqlite import open_sqlite
from tests.guarantees import guarantee

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.errors import ConflictError, PermissionDeniedError, RefusedError
from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.ledger.message import Kind, Message
from coterie.core.ledger.states import SETTLED
from coterie.core.limits import Limits
from coterie.core.permission import StoredMode
from coterie.core.turn.items import Reply
from coterie.core.turn.states import TURN_TABLE
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx
from coterie.testing.ledger import Ledger

T = TypeVar("T")

LIMITS: Final = replace(
    Limits(), hops_max=3, inbox_max=2, prompts_max=2, chain_messages_max=6, chain_sessions_max=2, workers_active_max=2
)
SESSIONS_MAX: Final = 6
EXPECTED: Final = (RefusedError, ConflictError, PermissionDeniedError)
"""What may answer a request that comes at the wrong moment."""

settings.register_profile(
    "ledger",
    max_examples=60,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

which = st.integers(0, 99)
"""One of those that there are, by a number that shrinks."""


class LedgerMachine(RuleBasedStateMachine):
    """One host on one file, with agents that do anything that they may."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(open_sqlite, Path(self.folder.name) / "coterie.db", LIMITS)
        self.sessions: list[SessionId] = []
        self.accepted: list[MessageId] = []
        self.ended: dict[str, str] = {}
        """How turns and messages have ended, by id: for good."""

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Run one step of the host."""
        return self.loop.run(act)

    def try_to(self, act: Coroutine[Any, Any, T]) -> T | None:
        """Run a step that a rule may refuse; a refusal is an answer too."""
        try:
            return self.do(act)
        except EXPECTED:
            return None

    def pick(self, number: int) -> SessionId:
        """A session."""
        return self.sessions[number % len(self.sessions)]

    def running(self) -> list[Turn]:
        """Every running turn, of whatever epoch."""
        found = (self.do(self.ledger.running(session)) for session in self.sessions)
        return [turn for turn in found if turn is not None]

    def know(self, *messages: Message) -> None:
        """Note what was accepted."""
        self.accepted += [message.id for message in messages]

    @initialize(mode=st.sampled_from(StoredMode))
    def begin(self, mode: StoredMode) -> None:
        """A host with two sessions."""
        self.do(self.ledger.start())
        self.sessions = [self.do(self.ledger.session("one", mode)), self.do(self.ledger.session("two"))]

    @precondition(lambda self: len(self.sessions) < SESSIONS_MAX)
    @rule(mode=st.sampled_from(StoredMode))
    def open_session(self, mode: StoredMode) -> None:
        """A person opens a session."""
        self.sessions.append(self.do(self.ledger.session("more", mode)))

    @rule(session=which, slot=st.booleans())
    def prompt(self, session: int, *, slot: bool) -> None:
        """A person speaks to a session."""
        self.try_to(self.ledger.prompt(self.pick(session), slot=slot))

    @rule(source=which, to=which, slot=st.booleans(), task=st.booleans())
    def send(self, source: int, to: int, *, slot: bool, task: bool) -> None:
        """A turn, or a person for an idle session, sends to another one."""
        one, other = self.pick(source), self.pick(to)
        if one != other:
            verb = self.ledger.task if task else self.ledger.note
            receipt = self.try_to(verb(one, other, slot=slot))
            if receipt is not None:
                self.know(receipt.message)

    @precondition(lambda self: len(self.sessions) < SESSIONS_MAX)
    @rule(source=which, slot=st.booleans())
    def spawn(self, source: int, *, slot: bool) -> None:
        """A turn gives work to a new session."""
        receipt = self.try_to(self.ledger.spawn(self.pick(source), slot=slot))
        if receipt is not None:
            self.know(receipt.message)
            self.sessions.append(receipt.message.target_session_id)

    @rule(number=which, slot=st.booleans(), how=st.sampled_from(["completed", "failed", "cancelled"]))
    def settle(self, number: int, *, slot: bool, how: str) -> None:
        """A worker comes to its end."""
        if turns := self.running():
            turn = turns[number % len(turns)]
            code = Code.PROVIDER_ERROR if how == "failed" else None
            items = (Reply("done"),)
            command = SettleTurn(turn.id, items, cancelled=how == "cancelled", code=code, message="m", slot=slot)
            settled = self.do(self.ledger.store.run(settle_turn, command))
            assert settled.state is not None
            assert settled.state.value == ("cancelled" if turn.fenced else how)

    @precondition(lambda self: self.ended)
    @rule(number=which)
    def settle_late(self, number: int) -> None:
        """A worker that was thought dead reports; nothing changes."""
        turns = [id_ for id_ in self.ended if id_.startswith("turn_")]
        if turns:
            before = self.do(self.ledger.last_change())
            late = self.do(self.ledger.settle(TurnId(turns[number % len(turns)]), "late"))
            assert late.state is None
            assert self.do(self.ledger.last_change()) == before

    @precondition(lambda self: self.accepted)
    @rule(number=which, first=which, second=which)
    def append(self, number: int, first: int, second: int) -> None:
        """A turn reads the outcome of any two messages."""
        if turns := self.running():
            turn = turns[number % len(turns)]
            shown = [self.accepted[one % len(self.accepted)] for one in (first, second)]
            assert self.do(self.ledger.append(turn.id, *shown))

    @precondition(lambda self: self.accepted)
    @rule(number=which, person=st.booleans(), cascade=st.booleans())
    def cancel_message(self, number: int, *, person: bool, cascade: bool) -> None:
        """Its sender or a person stops a message, whatever has become of it."""
        message = self.do(self.ledger.read(self.accepted[number % len(self.accepted)]))
        by = None if person else message.source_session_id
        self.do(self.ledger.cancel(message.target_session_id, message.id, by=by, cascade=cascade))

    @rule(session=which, by=which, person=st.booleans(), cascade=st.booleans())
    def cancel_session(self, session: int, by: int, *, person: bool, cascade: bool) -> None:
        """All that may be stopped in a session."""
        agent = None if person else self.pick(by)
        self.do(self.ledger.cancel(self.pick(session), by=agent, cascade=cascade))

    @rule(session=st.none() | which)
    def release(self, session: int | None) -> None:
        """A person lets queues move."""
        self.do(self.ledger.release(None if session is None else self.pick(session)))

    @rule()
    def claim(self) -> None:
        """A slot is free."""
        self.do(self.ledger.claim())

    @rule(back=st.booleans())
    def let_time_pass(self, *, back: bool) -> None:
        """Clocks go on, and sometimes back."""
        if back:
            self.ledger.clock.set_back(30)
        else:
            self.ledger.clock.advance(30)

    @rule()
    def restart(self) -> None:
        """The host dies and starts again on the same file: nothing runs, and nothing is claimed."""
        waiting = [self.do(self.ledger.places(session)).waiting for session in self.sessions]
        self.do(self.ledger.restart())
        assert self.running() == []
        assert self.do(self.ledger.claim()) is None
        now = [self.do(self.ledger.places(session)).waiting for session in self.sessions]
        assert all(after >= before for before, after in zip(waiting, now, strict=True))

    @invariant()
    def every_promise_holds(self) -> None:
        """The ledger's own checks, and the machine's memory of what was said and how it ended."""
        if self.sessions:
            assert self.do(self.ledger.violations()) == ()
            self.do(self.ledger.look(self._remembers))

    def _remembers(self, tx: Tx) -> None:
        for message_id in self.accepted:
            message = tx.messages.get(message_id)
            assert message is not None, "an accepted message is in the ledger"
            completion = tx.messages.completion_of(message_id)
            assert (completion is not None) == (message.notify and message.state in SETTLED)
            for told in (message, completion):
                if told is not None and told.state in SETTLED:
                    assert self.ended.setdefault(told.id, told.state.value) == told.state.value
                if told is not None and told.kind is Kind.COMPLETION:
                    assert told.target_session_id == message.source_session_id
        for session in self.sessions:
            turn = tx.turns.newest(session)
            if turn is not None and turn.state in TURN_TABLE.terminal:
                assert self.ended.setdefault(turn.id, turn.state.value) == turn.state.value
        for id_, state in self.ended.items():
            if id_.startswith("turn_"):
                turn = tx.turns.get(TurnId(id_))
                assert turn is not None
                assert turn.state.value == state

    def teardown(self) -> None:
        """Let go of the file; a last start finds it sound."""
        if self.sessions:
            self.do(self.ledger.restart())
            assert self.do(self.ledger.violations()) == ()
            self.do(self.ledger.store.close())
        self.loop.close()
        self.folder.cleanup()


@guarantee("I1")
@guarantee("I2")
@guarantee("I3")
@guarantee("I4")
@guarantee("I5")
@guarantee("I6")
@guarantee("I7")
@guarantee("I8")
@guarantee("I9")
@guarantee("I10")
@guarantee("I16")
def test_every_promise_holds_in_every_life_of_a_ledger() -> None:
    """Orders that nobody thinks of are the ones that break a ledger."""
    run_state_machine_as_test(LedgerMachine, settings=settings.get_profile("ledger"))
