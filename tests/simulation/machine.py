"""The ground that the simulated lives of a ledger stand on: one host on one file, a clock, and a witness."""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from tests.contract.test_sqlite import open_sqlite
from tests.simulation.witness import Sight, Witness

from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted
from coterie.app.receipt import Receipt
from coterie.core.errors import ConflictError, NotFoundError, PermissionDeniedError, RefusedError
from coterie.core.ids import MessageId, SessionId
from coterie.core.inbound import Across
from coterie.core.limits import Limits
from coterie.core.permission import StoredMode
from coterie.core.turn.turn import Turn
from coterie.testing.ledger import Ledger

T = TypeVar("T")
Ask: TypeAlias = Callable[[], Coroutine[Any, Any, Prompted | Receipt]]
"""A request with its key, for whoever asks again."""

LIMITS: Final = replace(
    Limits(),
    hops_max=3,
    inbox_max=2,
    prompts_max=3,
    chain_messages_max=6,
    chain_sessions_max=2,
    chain_cost_max=1.0,
    chain_tokens_max=100,
    workers_active_max=2,
    workers_active_per_plugin_max=2,
    accepted_per_request_max=1,
    accepted_per_turn_max=2,
)
"""Small, so that a short life comes to each of them."""
SESSIONS_MAX: Final = 6
EXPECTED: Final = (RefusedError, ConflictError, PermissionDeniedError)
"""What may answer a request that comes at the wrong moment."""

which = st.integers(0, 99)
"""One of those that there are, by a number that shrinks."""
projects = st.sampled_from([None, "/project"])


class LedgerMachine(RuleBasedStateMachine):
    """One host on one file; what may happen to it is said in the classes that are built on this one."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger(open_sqlite, Path(self.folder.name) / "coterie.db", LIMITS)
        self.witness = Witness(self.ledger.host)
        self.repeats: list[tuple[str, Ask]] = []
        """What was accepted under a key, by the id that it made."""
        self.latest = self.ledger.clock.now_ms()
        """No time that the ledger has written is after this one."""

    @property
    def now(self) -> Sight:
        """The ledger as the last step has left it."""
        return self.witness.now

    @property
    def sessions(self) -> list[SessionId]:
        """Those that are there."""
        return self.witness.sessions

    @property
    def accepted(self) -> list[MessageId]:
        """Every task and message so far."""
        return self.witness.accepted

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Run one step of the host."""
        return self.loop.run(act)

    def try_to(self, act: Coroutine[Any, Any, T]) -> T | None:
        """Run a step that a rule may refuse; a refusal is an answer too."""
        try:
            return self.do(act)
        except EXPECTED:
            return None
        except NotFoundError as error:
            assert error.subject in self.witness.gone
            return None

    def pick(self, number: int, *, busy: bool = False) -> SessionId:
        """A session; one that runs something, if *busy* is wanted and there is one."""
        found = [turn.session_id for turn in self.now.running] if busy else []
        found = found or self.sessions
        return found[number % len(found)]

    def turn(self, number: int) -> Turn:
        """A running turn; there is one."""
        turns = self.now.running
        return turns[number % len(turns)]

    def message(self, number: int) -> MessageId:
        """A task or message; there is one."""
        return self.accepted[number % len(self.accepted)]

    def shown(self, *numbers: int) -> tuple[MessageId, ...]:
        """Messages whose outcome somebody reads, if there are any."""
        return tuple(map(self.message, numbers)) if self.accepted else ()

    def key(self) -> Key:
        """A key that was not used before."""
        return Key("person", f"key {len(self.repeats)}", "the same")

    def know(self, answer: Receipt | None, ask: Ask) -> None:
        """Note a message that was accepted, and how to ask for it again."""
        if answer is not None:
            self.accepted.append(answer.message.id)
            self.repeats.append((answer.message.id, ask))

    @initialize(modes=st.lists(st.sampled_from(StoredMode), min_size=2, max_size=2), across=st.sampled_from(Across))
    def begin(self, modes: list[StoredMode], across: Across) -> None:
        """A host with two sessions of two projects."""
        self.ledger.host = replace(self.ledger.host, across=across)
        self.do(self.ledger.start())
        for title, mode, project in zip(("one", "two"), modes, (None, "/project"), strict=True):
            self.sessions.append(self.do(self.ledger.session(title, mode, project=project)))

    @invariant()
    def every_promise_holds(self) -> None:
        """The ledger's own checks, and all that the witness remembers."""
        if self.sessions:
            self.see()

    def see(self) -> Sight:
        """Look at the ledger, and hold it against what was seen before."""
        self.witness.check(self.do(self.ledger.look(self.witness.look)))
        return self.now

    def teardown(self) -> None:
        """Let go of the file; a last start finds it sound and whole."""
        if self.sessions:
            self.do(self.ledger.restart())
            self.see()
            self.do(self.ledger.look(self.witness.reread))
            self.do(self.ledger.store.close())
        self.loop.close()
        self.folder.cleanup()
