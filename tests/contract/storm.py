"""Random use cases at once on few sessions: everything that takes locks, in every direction."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from coterie.core.codes import Code
from coterie.core.errors import ConflictError, NotFoundError, PermissionDeniedError, RefusedError
from coterie.core.ids import MessageId, SessionId
from coterie.core.inbound import Inbound
from coterie.core.ledger.message import Deliver, Kind, Message
from coterie.core.turn.turn import Turn
from coterie.ports.store import Tx
from coterie.testing.ledger import Ledger

SESSIONS: Final = 5
DEAR: Final = 6_000_000
"""What some turns cost, in millionths of a US dollar: one spends a chain."""
_EXPECTED: Final = (ConflictError, NotFoundError, PermissionDeniedError, RefusedError)
"""What a use case may answer when others were faster."""


class Storm:
    """Clients on several ledgers that stand on one database."""

    def __init__(self, ledgers: Sequence[Ledger], seed: int) -> None:
        self._ledgers = ledgers
        self._random = random.Random(seed)
        self._sessions: list[SessionId] = []
        self.done: Counter[str] = Counter()
        """How often each verb was carried out."""
        self.refused: Counter[str] = Counter()
        of_turns = [self.send, self.settle, self.append, self.take_news, self.spawn, self.claim, self.expire]
        of_people = [self.prompt, self.steer, self.release, self.cancel, self.cascade, self.interrupt]
        of_order = [self.remove, self.delete, self.retry, self.admit]
        self.verbs: list[Callable[[Ledger], Awaitable[object]]] = [*of_turns, *of_people, *of_order]

    async def blow(self, clients: int, rounds: int) -> None:
        """Let so many clients do so many things each."""
        self._sessions = [await self._ledgers[0].session(f"session {number}") for number in range(SESSIONS)]
        for session in self._sessions[:2]:
            await self._ledgers[0].configure(session, current_turn=True)
        await asyncio.gather(*(self._client(self._ledgers[one % len(self._ledgers)], rounds) for one in range(clients)))

    async def _client(self, ledger: Ledger, rounds: int) -> None:
        for _ in range(rounds):
            verb = self._random.choice([*self.verbs, *(self.send, self.settle) * 3])
            try:
                await verb(ledger)
            except _EXPECTED as error:
                self.refused[f"{verb.__name__} {type(error).__name__}"] += 1
            else:
                self.done[verb.__name__] += 1

    def _some(self) -> SessionId:
        return self._random.choice(self._sessions)

    async def _running(self, ledger: Ledger) -> Turn | None:
        turns = await ledger.look(lambda tx: tx.turns.running_here(tx.host))
        return self._random.choice(turns) if turns else None

    async def _settled(self, ledger: Ledger, turn: Turn) -> tuple[MessageId, ...]:
        """Some of what the session of *turn* has sent and what has ended since."""

        def sent(tx: Tx) -> tuple[Message, ...]:
            return tx.exchanges.recent(turn.session_id, 16)

        return tuple(one.id for one in await ledger.look(sent) if one.source_session_id == turn.session_id)

    async def send(self, ledger: Ledger) -> None:
        """One way or the other, from a turn where one runs."""
        source, target = self._random.sample(self._sessions, 2)
        changes = {
            "kind": self._random.choice((Kind.TASK, Kind.MESSAGE)),
            "deliver": self._random.choice((Deliver.NEXT_TURN, Deliver.CURRENT_TURN)),
            "slot": self._random.random() < 0.5,
            "expires_at": ledger.clock.now_ms() + 2000 if self._random.random() < 0.2 else None,
        }
        await ledger.send(source, target, **changes)

    async def settle(self, ledger: Ledger) -> None:
        """A turn ends, dear or cheap, well or badly, with or without a slot to pass on."""
        turn = await self._running(ledger)
        if turn is not None and self._random.random() < 0.4:
            await ledger.spend(turn.id, cost=self._random.choice((1, DEAR)), tokens=5)
        elif turn is not None:
            code = self._random.choice((None, None, Code.INTERNAL))
            await ledger.settle(turn.id, code=code, slot=self._random.random() < 0.7)

    async def append(self, ledger: Ledger) -> None:
        """A turn reads what it has sent, and absorbs the notices."""
        turn = await self._running(ledger)
        if turn is not None:
            await ledger.append(turn.id, *await self._settled(ledger, turn))

    async def take_news(self, ledger: Ledger) -> None:
        """A turn takes in what it was offered."""
        turn = await self._running(ledger)
        if turn is not None:
            await ledger.take_news(turn.id)

    async def claim(self, ledger: Ledger) -> None:
        """A slot is free; time goes on, so that some of what waits is over."""
        ledger.clock.advance(0.1)
        await ledger.claim()

    async def prompt(self, ledger: Ledger) -> None:
        """A person says something."""
        await ledger.prompt(self._some(), slot=self._random.random() < 0.5)

    async def steer(self, ledger: Ledger) -> None:
        """A person says something to what runs."""
        await ledger.steer(self._some())

    async def release(self, ledger: Ledger) -> None:
        """A person lets one session go on, or all."""
        await ledger.release(self._random.choice((None, self._some())))

    async def cancel(self, ledger: Ledger) -> None:
        """A session stops what it has sent to another one."""
        target, by = self._random.sample(self._sessions, 2)
        await ledger.cancel(target, by=by)

    async def cascade(self, ledger: Ledger) -> None:
        """A person stops all of a session and what hangs on it."""
        await ledger.cancel(self._some())

    async def interrupt(self, ledger: Ledger) -> None:
        """A person stops what a session runs, and what hangs on it."""
        await ledger.interrupt(self._some())

    async def spawn(self, ledger: Ledger) -> None:
        """A session makes a worker, through a plugin or not; a later client may use it like any other."""
        receipt = await ledger.spawn(self._some(), plugin=self._random.choice((None, "plugin")))
        if len(self._sessions) < 2 * SESSIONS:
            self._sessions.append(receipt.message.target_session_id)

    async def expire(self, ledger: Ledger) -> None:
        """The audit ends what is over."""
        await ledger.expire()

    async def remove(self, ledger: Ledger) -> None:
        """A person takes something out of a queue."""
        session = self._some()
        waiting = await ledger.queue(session)
        if waiting:
            await ledger.remove(session, self._random.choice(waiting).id)

    async def delete(self, ledger: Ledger) -> None:
        """A session goes, and another one comes."""
        fresh = await ledger.session("fresh")
        place = self._random.randrange(len(self._sessions))
        session, self._sessions[place] = self._sessions[place], fresh
        await ledger.delete(session)

    async def retry(self, ledger: Ledger) -> None:
        """A person lets something be tried once more."""
        session = self._some()
        recent = await ledger.look(lambda tx: tx.exchanges.recent(session, 16))
        ended = [message for message in recent if message.kind is not Kind.COMPLETION]
        if ended:
            await ledger.retry(self._random.choice(ended).id)

    async def admit(self, ledger: Ledger) -> None:
        """A person says what a session does with messages of others."""
        await ledger.admit(self._some(), self._random.choice((Inbound.ACCEPT, Inbound.ACCEPT, Inbound.HOLD)))
