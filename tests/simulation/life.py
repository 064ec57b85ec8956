"""The ground that the simulated lives of a ledger stand on: one host on one file, a clock, a witness, and chance."""

import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from tests.contract.test_sqlite import open_sqlite
from tests.simulation.witness import Sight, Witness

from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted
from coterie.app.receipt import Receipt
from coterie.core.errors import ConflictError, NotFoundError, PermissionDeniedError, RefusedError
from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.inbound import Across
from coterie.core.limits import Limits
from coterie.core.permission import StoredMode
from coterie.core.turn.turn import Turn
from coterie.testing.ledger import Ledger

T = TypeVar("T")
F = TypeVar("F", bound=Callable[[Any], Coroutine[Any, Any, None]])
Ask: TypeAlias = Callable[[], Awaitable[Prompted | Receipt]]
"""A request with its key, for whoever asks again."""

LIMITS: Final = replace(
    Limits(),
    hops_max=3,
    inbox_max=3,
    prompts_max=3,
    chain_messages_max=8,
    chain_sessions_max=1,
    chain_cost_max=1.0,
    chain_tokens_max=100,
    workers_active_max=2,
    workers_active_per_plugin_max=2,
)
"""Small, so that a short life comes to each of them."""
SESSIONS_MAX: Final = 6
EXPECTED: Final = (RefusedError, ConflictError, PermissionDeniedError)
"""What may answer a request that comes at the wrong moment."""
ACROSS: Final = (Across.ALLOW, Across.ALLOW, Across.ALLOW, Across.ASK, Across.ASK, Across.DENY)
MODES: Final = (StoredMode.INHERIT, *StoredMode)


def happens(often: int = 1, when: Callable[[Any], object] = bool) -> Callable[[F], F]:
    """Let a method be one of the things that may happen: so *often* among the others, and *when* that is possible."""

    def mark(act: F) -> F:
        vars(act)["often"], vars(act)["when"] = often, when
        return act

    return mark


class Life:
    """One host on one file; what may happen to it is said in the classes that are built on this one."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger(open_sqlite, path, LIMITS)
        self.witness = Witness(self.ledger.host)
        self.repeats: dict[str, Ask] = {}
        """What was accepted under a key, by the id that it made."""
        self.latest = self.ledger.clock.now_ms()
        """No time that the ledger has written is after this one."""
        self.story: list[str] = []
        """What has happened, a line each."""
        self._chance = random.Random(0)
        acts = (getattr(type(self), name) for name in sorted(dir(type(self))))
        self._acts = [act for act in acts if hasattr(act, "often")]

    @property
    def now(self) -> Sight:
        """The ledger as the last step has left it."""
        return self.witness.now

    @property
    def sessions(self) -> list[SessionId]:
        """Those that are there."""
        return self.witness.sessions

    @property
    def busy(self) -> list[SessionId]:
        """Those that run something."""
        return [turn.session_id for turn in self.now.running]

    @property
    def accepted(self) -> list[MessageId]:
        """Every task and message so far."""
        return self.witness.accepted

    async def lead(self, seed: int, steps: Sequence[int]) -> None:
        """Lead it to its end; chance begins anew with each step, so that a step is much the same without others."""
        try:
            await self._begin(f"{seed}")
            for step in steps:
                await self._step(f"{seed}.{step}")
            await self._end()
        finally:
            await self.ledger.store.close()

    async def _begin(self, seed: str) -> None:
        self._chance.seed(seed)
        self.story.append("begin:")
        limits = replace(
            LIMITS, accepted_per_request_max=self.one_of((1, 3)), accepted_per_turn_max=self.one_of((1, 3))
        )
        self.ledger.host = replace(self.ledger.host, limits=limits, across=self.one_of(ACROSS))
        await self.ledger.start()
        for title, project in (("A", None), ("B", None), ("C", "/project")):
            session = await self.ledger.session(title, self.one_of(MODES), project=project)
            await self.ledger.configure(session, current_turn=True)
            self.sessions.append(session)
        await self.see()

    async def _step(self, seed: str) -> None:
        self._chance.seed(seed)
        possible = [act for act in self._acts if act.when(self)]
        act = self._chance.choices(possible, [act.often for act in possible])[0]
        self.story.append(f"{act.__name__}:")
        await act(self)
        await self.see()

    async def _end(self) -> None:
        await self.ledger.restart()
        await self.see()
        await self.ledger.look(self.witness.reread)

    async def see(self) -> Sight:
        """Look at the ledger, and hold it against what was seen before."""
        self.witness.check(await self.ledger.look(self.witness.look))
        return self.now

    def one_of(self, those: Sequence[T], rather: Sequence[T] = ()) -> T:
        """One of *those*; mostly one of those that would be better, if there are any."""
        found = self._chance.choice(rather if rather and self._chance.random() < 0.8 else those)
        self.story[-1] += f" {found}"
        return found

    def perhaps(self) -> bool:
        """Yes or no."""
        return self.one_of((True, False))

    def slot(self) -> bool:
        """Whether a slot is free for what may start at once."""
        return self.one_of((True, True, False))

    def turn(self, rather: Sequence[Turn] = ()) -> Turn:
        """A running turn; there is one."""
        return self.now.turns[self.one_of([one.id for one in self.now.running], [one.id for one in rather])]

    async def report_in_vain(self, turn_id: TurnId) -> None:
        """A worker of a turn that is over, or was a dead host's, reports; nothing changes."""
        before = await self.ledger.last_change()
        assert (await self.ledger.settle(turn_id, "late")).state is None
        assert not await self.ledger.append(turn_id)
        assert not await self.ledger.take_news(turn_id)
        assert await self.ledger.last_change() == before

    def key(self) -> Key:
        """A key under which nothing was done."""
        return Key("person", f"key {len(self.repeats)}", "the same")

    async def try_to(self, act: Awaitable[T]) -> T | None:
        """Do what a rule may refuse; a refusal is an answer too."""
        try:
            return await act
        except EXPECTED as error:
            self.story[-1] += f" ({error})"
        except NotFoundError as error:
            if error.subject not in self.witness.gone:
                raise
        return None

    def know(self, answer: Receipt | None, ask: Ask) -> None:
        """Note a message that was accepted, and how to ask for it again."""
        if answer is not None:
            self.accepted.append(answer.message.id)
            self.repeats[answer.message.id] = ask
