"""A store with the use cases as verbs: what contract suites and simulations drive.

It decides nothing itself: each verb is one `Store.run`, so whatever a test sees went through a real transaction.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar, cast

from coterie.app import recover
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.cancel import Cancel, Cancelled, cancel
from coterie.app.claim_turn import claim_turn
from coterie.app.describe import verify
from coterie.app.idempotency import Key
from coterie.app.open_session import OpenSession, open_session
from coterie.app.prompt_session import Prompted, PromptSession, prompt_session
from coterie.app.send_message import Receipt, SendMessage, SpawnSession, send_message, spawn_session
from coterie.app.sender import Sender
from coterie.app.settle_turn import Settled, SettleTurn, settle_turn
from coterie.core.admission import Places
from coterie.core.codes import Code
from coterie.core.ids import HostId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Kind, Message
from coterie.core.ledger.states import MessageState
from coterie.core.limits import Limits
from coterie.core.permission import Mode, StoredMode
from coterie.core.session.session import Session
from coterie.core.turn.items import Reply, ToolResult
from coterie.core.turn.turn import Turn
from coterie.ports.clock import Clock
from coterie.ports.feed import Delta, Feed, Listener
from coterie.ports.ids import IdSource
from coterie.ports.store import HostFacts, NumberedItem, Store, Tx, Violation
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds

R = TypeVar("R")

HOST = HostId("hst_contract")


class OpenedStore(Store, Protocol):
    """A store as a suite needs it: it can be closed, and counts what it does."""

    @property
    def commits(self) -> int:
        """Commits that wrote something, since it was opened."""
        ...

    @property
    def statements(self) -> int:
        """Statements that use cases ran, since it was opened."""
        ...

    def become(self, host: HostFacts) -> None:
        """Act as *host* from the next use case on."""
        ...

    async def close(self) -> None:
        """Commit what was accepted and let go of the file."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """What a store is opened with."""

    path: Path
    """A file, or a folder's name that stands for a fresh database."""
    host: HostFacts
    clock: Clock
    ids: IdSource
    feed: Feed


class OpenStore(Protocol):
    """Opens the store under test; called on the loop that uses it."""

    def __call__(self, world: World) -> OpenedStore:
        """Open what is at the world's path, or make it new."""
        ...


class WakeLog:
    """A feed that nobody sleeps on: it notes what was woken."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.on_wake: Callable[[], None] = lambda: None
        """Called at each wake-up: whoever is woken must find what it was woken for."""

    def wake(self, topics: Iterable[str]) -> None:
        """See the port."""
        self.topics += sorted(topics)
        self.on_wake()

    def publish(self, delta: Delta) -> None:
        """See the port; live text may be lost, and here it is."""

    def listen(self, topics: Iterable[str] | None) -> AbstractContextManager[Listener]:
        """See the port."""
        raise NotImplementedError("nothing sleeps in a contract suite")


class Ledger:
    """One data directory and the host on it; `start` opens, `restart` does what a crash and a new start do."""

    def __init__(self, open_store: OpenStore, path: Path, limits: Limits | None = None, seed: int = 0) -> None:
        self._open_store, self._path = open_store, path
        self.clock, self.ids, self.feed = FakeClock(), SeededIds(seed), WakeLog()
        self.host = HostFacts(HOST, 0, Mode.ASK, limits or Limits())
        self.store = cast("OpenedStore", None)

    async def start(self) -> None:
        """Open the store and begin an epoch; nothing is recovered yet."""
        self.store = self._open_store(World(self._path, self.host, self.clock, self.ids, self.feed))
        host_id, epoch = await self.store.run(recover.begin_epoch, self.host.id)
        self.become(replace(self.host, id=host_id, epoch=epoch))

    def become(self, host: HostFacts) -> None:
        """Act as *host*."""
        self.host = host
        self.store.become(host)

    def limit(self, **limits: int) -> None:
        """Change bounds by their names."""
        self.become(replace(self.host, limits=replace(self.host.limits, **limits)))

    async def restart(self) -> None:
        """Close the file, open it again and do what a start does before anything may run."""
        await self.store.close()
        await self.start()
        await self.recover()

    async def recover(self) -> None:
        """Hold what waits and interrupt what earlier epochs were running."""
        await self.store.run(recover.hold_queues, None)
        for turn in await self.store.read(recover.turns_left_running, None):
            await self.store.run(recover.interrupt, turn)

    async def look(self, query: Callable[[Tx], R]) -> R:
        """Read on one snapshot."""
        return await self.store.read(lambda tx, _: query(tx), None)

    async def change(self, act: Callable[[Tx], R]) -> R:
        """Run *act* as a use case of its own, for the states that no verb leads to."""
        return await self.store.run(lambda tx, _command, _now, _new_id: act(tx), None)

    async def violations(self) -> tuple[Violation, ...]:
        """What is broken."""
        return (await self.store.read(verify, None))[1]

    async def session(self, title: str = "A", mode: StoredMode = StoredMode.INHERIT) -> SessionId:
        """Open a session."""
        found, _ = await self.store.run(open_session, OpenSession(title, None, None, permission_mode=mode))
        return found.id

    async def sessions(self, titles: str) -> list[SessionId]:
        """Open one session for each character."""
        return [await self.session(title) for title in titles]

    async def prompt(
        self, session: SessionId, text: str = "go", *, slot: bool = True, key: Key | None = None
    ) -> Prompted:
        """Say something to a session as a person."""
        return await self.store.run(prompt_session, PromptSession(session, text, key, slot))

    async def begin(self, session: SessionId) -> TurnId:
        """Prompt an idle session; returns the turn that runs."""
        turn_id = (await self.prompt(session)).turn_id
        assert turn_id is not None, "an idle session takes a prompt at once"
        return turn_id

    async def sender(self, session: SessionId) -> Sender:
        """The credential of what a session runs now; of a person who speaks for it when it runs nothing."""
        turn = await self.running(session)
        return Sender(session, turn.id if turn else None)

    def message(self, sender: Sender, target: SessionId) -> SendMessage:
        """The plainest task; tests replace what they are about."""
        return SendMessage(sender, target, "work", Kind.TASK, notify=True, key=None, slot=True)

    async def task(self, source: SessionId, target: SessionId, *, slot: bool = True) -> Receipt:
        """Send a task that asks for a completion."""
        command = self.message(await self.sender(source), target)
        return await self.store.run(send_message, replace(command, slot=slot))

    async def note(self, source: SessionId, target: SessionId, *, slot: bool = True) -> Receipt:
        """Send a message that asks for no completion."""
        command = self.message(await self.sender(source), target)
        return await self.store.run(send_message, replace(command, kind=Kind.MESSAGE, notify=False, slot=slot))

    async def spawn(
        self, source: SessionId, *, title: str | None = None, slot: bool = True, key: Key | None = None
    ) -> Receipt:
        """Spawn a session with its first task."""
        sender = await self.sender(source)
        command = SpawnSession(sender, "work", title, None, notify=True, key=key, slot=slot)
        return await self.store.run(spawn_session, command)

    async def settle(
        self, turn_id: TurnId | None, text: str = "done", *, code: Code | None = None, slot: bool = True
    ) -> Settled:
        """Report the end of a turn."""
        assert turn_id is not None, "the turn was started"
        command = SettleTurn(turn_id, (Reply(text),), code=code, message="it broke" if code else "", slot=slot)
        return await self.store.run(settle_turn, command)

    async def append(self, turn_id: TurnId, *shows: MessageId) -> bool:
        """Append a tool result that shows the outcome of messages."""
        command = AppendToTurn(turn_id, (ToolResult("call", "session_task", "read"),), shows)
        return await self.store.run(append_items, command)

    async def cancel(
        self, session: SessionId, message: MessageId | None = None, *, by: SessionId | None = None, cascade: bool = True
    ) -> Cancelled:
        """Cancel as a person, or as the session *by*."""
        return await self.store.run(cancel, Cancel(session, message, by, cascade))

    async def release(self, session: SessionId | None = None) -> int:
        """Let held queues move."""
        freed, _ = await self.store.run(recover.release, recover.Release(session, None))
        return freed

    async def claim(self) -> Turn | None:
        """Give a free slot to what has waited longest."""
        return await self.store.run(claim_turn, None)

    async def running(self, session: SessionId) -> Turn | None:
        """What a session runs."""
        return await self.look(lambda tx: tx.turns.running(session))

    async def turn(self, turn_id: TurnId | None) -> Turn:
        """One turn."""
        assert turn_id is not None, "the turn was started"
        found = await self.look(lambda tx: tx.turns.get(turn_id))
        assert found is not None, "the turn is in the ledger"
        return found

    async def read(self, message_id: MessageId) -> Message:
        """One message."""
        found = await self.look(lambda tx: tx.messages.get(message_id))
        assert found is not None, "the message is in the ledger"
        return found

    async def completion(self, message_id: MessageId) -> Message | None:
        """The completion that answers a message."""
        return await self.look(lambda tx: tx.messages.completion_of(message_id))

    async def places(self, session: SessionId) -> Places:
        """What waits in a session's queue."""
        return await self.look(lambda tx: tx.inputs.places(session))

    async def known(self, session: SessionId) -> Session:
        """One session."""
        found = await self.look(lambda tx: tx.sessions.get(session))
        assert found is not None, "the session is in the ledger"
        return found

    async def state(self, message_id: MessageId) -> MessageState:
        """Where a message is."""
        return (await self.read(message_id)).state

    async def last_change(self) -> int:
        """The newest change: equal before and after what changed nothing."""
        return await self.look(lambda tx: tx.journal.last_change(None))

    async def transcript(self, session: SessionId) -> tuple[NumberedItem, ...]:
        """The first items of a session."""
        return await self.look(lambda tx: tx.items.page(session, 0, 100))
