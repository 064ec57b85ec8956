"""A store with the use cases as verbs: what contract suites and simulations drive.

It decides nothing itself: each verb is one `Store.run`, so whatever a test sees went through a real transaction.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from coterie.app import recover
from coterie.app.accept_result import AcceptResult, accept_result
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.arrange_queue import Direction, MoveInput, OfInput, move_input, promote_input, remove_input
from coterie.app.cancel import Cancel, Cancelled, Interrupt, cancel, interrupt
from coterie.app.claim_turn import claim_turn
from coterie.app.configure_session import ArchiveSession, ConfigureSession, archive_session, configure_session
from coterie.app.delete_session import Deleted, DeleteSession, delete_session, purge_deleted
from coterie.app.describe import verify
from coterie.app.expire import expire_due
from coterie.app.fork_session import ForkSession, fork_session
from coterie.app.idempotency import Key
from coterie.app.open_session import OpenSession, open_session
from coterie.app.prompt_session import Prompted, PromptSession, prompt_session, steer_session
from coterie.app.receipt import Receipt
from coterie.app.release import Answer, AnswerPair, Release, Revoke, answer_pair, release, revoke
from coterie.app.retry_message import RetryMessage, retry_message
from coterie.app.send_message import SendMessage, send_message
from coterie.app.sender import Sender
from coterie.app.settle_turn import Settled, SettleTurn, settle_turn
from coterie.app.spawn_session import SpawnSession, spawn_session
from coterie.app.take_news import TakeNews, take_news
from coterie.core.admission import Places
from coterie.core.chain import Chain
from coterie.core.codes import Code
from coterie.core.ids import ChainId, GrantId, HostId, InputId, MessageId, RequestId, SessionId, TurnId
from coterie.core.inbound import Inbound
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
from coterie.ports.rows import HostFacts, Input, NumberedItem, PairRequest, Violation
from coterie.ports.store import C, Store, Tx, UseCase
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
        host_id, epoch = await self._run(recover.begin_epoch, self.host.id)
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
        """Hold what waits, interrupt what earlier epochs were running and end what is no longer worth starting."""
        await self._run(recover.hold_queues, None)
        for turn in await self.store.read(recover.turns_left_running, None):
            await self._run(recover.interrupt, turn)
        while await self._run(recover.expire, None):
            pass

    async def _run(self, use_case: UseCase[C, R], command: C) -> R:
        """Run a verb as the hot paths of a host do."""
        return await self.store.run(use_case, command, brief=True)

    async def look(self, query: Callable[[Tx], R]) -> R:
        """Read on one snapshot."""
        return await self.store.read(lambda tx, _: query(tx), None)

    async def change(self, act: Callable[[Tx], R]) -> R:
        """Run *act* as a use case of its own, for the states that no verb leads to."""
        return await self.store.run(lambda tx, _command, _now, _new_id: act(tx), None)

    async def violations(self) -> tuple[Violation, ...]:
        """What is broken."""
        return (await self.store.read(verify, None))[1]

    async def session(
        self, title: str = "A", mode: StoredMode = StoredMode.INHERIT, *, project: str | None = None
    ) -> SessionId:
        """Open a session."""
        found, _ = await self._run(open_session, OpenSession(title, project, None, permission_mode=mode))
        return found.id

    async def sessions(self, titles: str) -> list[SessionId]:
        """Open one session for each character."""
        return [await self.session(title) for title in titles]

    async def admit(self, session: SessionId, inbound: Inbound) -> None:
        """Set what a session does with messages of others."""
        await self._run(configure_session, ConfigureSession(session, None, inbound=inbound))

    async def configure(self, session: SessionId, *, key: Key | None = None, **settings: Any) -> bool:
        """Change a session's settings, by the names of `ConfigureSession`; returns whether the key had done it."""
        return (await self._run(configure_session, ConfigureSession(session, key, **settings)))[1]

    async def archive(self, session: SessionId) -> None:
        """Put a session away."""
        await self._run(archive_session, ArchiveSession(session, None))

    async def fork(self, session: SessionId) -> SessionId:
        """Begin a session from the whole transcript of another one."""
        return (await self._run(fork_session, ForkSession(session, None, None, None)))[0].id

    async def delete(self, session: SessionId) -> Deleted:
        """Let a session and all that is its own end."""
        return await self._run(delete_session, DeleteSession(session, None))

    async def purge(self, limit: int) -> int:
        """Delete items of deleted sessions, as the audit does."""
        return await self._run(purge_deleted, limit)

    async def prompt(
        self, session: SessionId, text: str = "go", *, slot: bool = True, key: Key | None = None
    ) -> Prompted:
        """Say something to a session as a person."""
        return await self._run(prompt_session, PromptSession(session, text, key, slot))

    async def steer(
        self, session: SessionId, text: str = "left", *, slot: bool = True, key: Key | None = None
    ) -> Prompted:
        """Say something to what a session runs, as a person."""
        return await self._run(steer_session, PromptSession(session, text, key, slot))

    async def take_news(self, turn_id: TurnId) -> bool:
        """Let what is meant for a turn join it, as its worker does before each model request."""
        return await self._run(take_news, TakeNews(turn_id))

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

    async def send(self, source: SessionId, target: SessionId, **changes: Any) -> Receipt:
        """Send the plainest task, but for *changes* by the names of `SendMessage`."""
        command = self.message(await self.sender(source), target)
        return await self._run(send_message, replace(command, **changes))

    async def task(self, source: SessionId, target: SessionId, *, slot: bool = True) -> Receipt:
        """Send a task that asks for a completion."""
        command = self.message(await self.sender(source), target)
        return await self._run(send_message, replace(command, slot=slot))

    async def note(self, source: SessionId, target: SessionId, *, slot: bool = True) -> Receipt:
        """Send a message that asks for no completion."""
        command = self.message(await self.sender(source), target)
        return await self._run(send_message, replace(command, kind=Kind.MESSAGE, notify=False, slot=slot))

    async def retry(self, message: MessageId, *, slot: bool = True, key: Key | None = None) -> Receipt:
        """Let what has settled be tried once more."""
        return await self._run(retry_message, RetryMessage(message, key, slot))

    async def spawn(
        self,
        source: SessionId,
        *,
        title: str | None = None,
        slot: bool = True,
        key: Key | None = None,
        plugin: str | None = None,
    ) -> Receipt:
        """Spawn a session with its first task."""
        sender = replace(await self.sender(source), plugin=plugin)
        command = SpawnSession(sender, "work", title, None, notify=True, key=key, slot=slot)
        return await self._run(spawn_session, command)

    async def settle(
        self, turn_id: TurnId | None, text: str = "done", *, code: Code | None = None, slot: bool = True
    ) -> Settled:
        """Report the end of a turn."""
        assert turn_id is not None, "the turn was started"
        command = SettleTurn(turn_id, (Reply(text),), code=code, message="it broke" if code else "", slot=slot)
        return await self._run(settle_turn, command)

    async def spend(self, turn_id: TurnId | None, *, cost: int | None = None, tokens: int | None = None) -> Settled:
        """Report the end of a turn that has cost something, in millionths of a US dollar; the slot is not passed on."""
        assert turn_id is not None, "the turn was started"
        command = SettleTurn(turn_id, (Reply("dear"),), input_tokens=tokens, cost=cost, slot=False)
        return await self._run(settle_turn, command)

    async def append(self, turn_id: TurnId, *shows: MessageId) -> bool:
        """Append a tool result that shows the outcome of messages."""
        command = AppendToTurn(turn_id, (ToolResult("call", "session_task", "read"),), shows)
        return await self._run(append_items, command)

    async def accept(self, message: MessageId, by: Sender) -> bool:
        """Note that a sender is content with a result."""
        return await self._run(accept_result, AcceptResult(by, message, "good", None))

    async def cancel(
        self, session: SessionId, message: MessageId | None = None, *, by: SessionId | None = None, cascade: bool = True
    ) -> Cancelled:
        """Cancel as a person, or as the session *by*."""
        return await self._run(cancel, Cancel(session, message, by, cascade))

    async def interrupt(self, session: SessionId, *, cascade: bool = True, key: Key | None = None) -> Cancelled:
        """Stop what a session runs, as a person."""
        return await self._run(interrupt, Interrupt(session, cascade, key))

    async def expire(self) -> int:
        """End queued messages whose time is over, as the audit does."""
        return await self._run(expire_due, None)

    async def release(self, session: SessionId | None = None) -> int:
        """Let held queues move."""
        freed, _ = await self._run(release, Release(session, None))
        return freed

    async def remove(
        self, session: SessionId, waiting: InputId, *, key: Key | None = None
    ) -> tuple[MessageId | None, bool]:
        """Take an input out of a queue."""
        return await self._run(remove_input, OfInput(session, waiting, key))

    async def promote(self, session: SessionId, waiting: InputId, *, key: Key | None = None) -> bool:
        """Let an input go before others."""
        return await self._run(promote_input, OfInput(session, waiting, key))

    async def move(
        self, session: SessionId, waiting: InputId, direction: Direction, *, key: Key | None = None
    ) -> tuple[bool, bool]:
        """Exchange an input with its neighbour."""
        return await self._run(move_input, MoveInput(OfInput(session, waiting, key), direction))

    async def answer(
        self, request: RequestId, answer: Answer, *, seconds: int = 60, key: Key | None = None
    ) -> tuple[int, bool]:
        """Say whether a session may write to another across projects."""
        return await self._run(answer_pair, AnswerPair(request, answer, seconds, key))

    async def revoke(self, grant: GrantId) -> bool:
        """End the leave to write across projects."""
        return await self._run(revoke, Revoke(grant, None))

    async def claim(self) -> Turn | None:
        """Give a free slot to what has waited longest."""
        return await self._run(claim_turn, None)

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

    async def queue(self, session: SessionId) -> tuple[Input, ...]:
        """What waits in a session's queue, in the order of its parts."""
        return await self.look(lambda tx: tx.inputs.page(session, 100))

    async def asked(self) -> tuple[PairRequest, ...]:
        """The questions that a person is asked about sessions of different projects."""
        return await self.look(lambda tx: tx.pairs.pending(100))

    async def chain(self, chain_id: ChainId) -> Chain:
        """One chain."""
        found = await self.look(lambda tx: tx.chains.get(chain_id))
        assert found is not None, "the chain is in the ledger"
        return found

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
