"""The product as benchmarks drive it: the real store and the real operations, with a script in place of the models."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import Lap, since_ms
from benchmarks.raw import PAYLOAD
from benchmarks.stores import SQLITE, OpenStore
from coterie.app import describe, recover
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.open_session import OpenSession, open_session
from coterie.app.prompt_session import PromptSession, prompt_session
from coterie.app.send_message import Receipt, SendMessage, send_message
from coterie.app.sender import Sender
from coterie.app.settle_turn import Settled, SettleTurn, settle_turn
from coterie.bootstrap.system import RandomIds, SystemClock
from coterie.core.ids import HostId, MessageId, NewId, SessionId, TurnId
from coterie.core.ledger.message import Kind
from coterie.core.limits import Limits
from coterie.core.permission import Mode, StoredMode
from coterie.core.turn.items import Reply, ToolResult
from coterie.operations.act import HostParts
from coterie.operations.caller import Agent
from coterie.operations.invocations import Invocations
from coterie.operations.perform import Operations
from coterie.operations.views import SendReceipt, View, Waited
from coterie.ports.rows import HostFacts
from coterie.ports.store import Tx
from coterie.runtime.subagents.delegations import Delegations
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.testing.ledger import OpenedStore
from coterie.testing.probe import ScriptedProbe

LIMITS: Final = Limits(hops_max=1000, inbox_max=10_000, chain_messages_max=1_000_000)
"""Wide enough that no bound stops a benchmark."""
_REPLY: Final = (Reply(PAYLOAD),)


def _nothing(tx: Tx, command: None, now: int, new_id: NewId) -> None:
    del tx, command, now, new_id


class Script:
    """Implements `ports.slots.Slots`: there is always a place, and each turn replies at once."""

    def __init__(self, store: OpenedStore) -> None:
        self._store = store
        self._playing: set[asyncio.Task[None]] = set()

    def reserve(self) -> bool:
        """See the port."""
        return True

    def give_back(self) -> None:
        """See the port."""

    def hand_over(self, turn_id: TurnId) -> None:
        """See the port."""
        task = asyncio.get_running_loop().create_task(self._play(turn_id))
        self._playing.add(task)
        task.add_done_callback(self._playing.discard)

    @asynccontextmanager
    async def parked(self, turn_id: TurnId) -> AsyncGenerator[None]:
        """See the port."""
        del turn_id
        yield

    async def _play(self, turn_id: TurnId | None) -> None:
        while turn_id is not None:
            settled = await self._store.run(settle_turn, SettleTurn(turn_id, _REPLY), brief=True)
            turn_id = settled.next.id if settled.next else None


@dataclass(frozen=True, slots=True)
class Product:
    """A host without doors and models."""

    store: OpenedStore
    operations: Operations
    script: Script

    async def session(self, title: str) -> SessionId:
        """Open a session."""
        command = OpenSession(title, None, None, permission_mode=StoredMode.INHERIT)
        return (await self.store.run(open_session, command))[0].id

    async def begin(self, session_id: SessionId) -> TurnId:
        """Prompt an idle session; returns the turn that runs, and that nobody plays."""
        prompted = await self.store.run(prompt_session, PromptSession(session_id, "go", None, slot=True), brief=True)
        assert prompted.turn_id is not None, "an idle session takes a prompt at once"
        return prompted.turn_id

    async def send(self, sender: Sender, target: SessionId, *, kind: Kind = Kind.TASK, slot: bool = True) -> Receipt:
        """Send a message of the usual size; a task asks for its completion."""
        command = SendMessage(sender, target, PAYLOAD, kind, notify=kind is Kind.TASK, key=None, slot=slot)
        return await self.store.run(send_message, command, brief=True)

    async def settle(self, turn_id: TurnId | None, *, slot: bool = True) -> Settled:
        """Let a turn reply and end."""
        assert turn_id is not None, "the turn was started"
        return await self.store.run(settle_turn, SettleTurn(turn_id, _REPLY, slot=slot), brief=True)

    async def absorb(self, turn_id: TurnId, *shown: MessageId) -> None:
        """Append the tool result with which a turn reads outcomes."""
        item = ToolResult("call", "session_task", PAYLOAD)
        assert await self.store.run(append_items, AppendToTurn(turn_id, (item,), shown), brief=True), "the turn runs"

    async def counted(self) -> None:
        """Let the writer count what it has committed: a reader can see a commit before that."""
        await self.store.run(_nothing, None)

    async def pair(self) -> "Pair":
        """Two fresh sessions, of which the first runs a turn."""
        source, target = await self.session("A"), await self.session("B")
        return Pair(self, source, target, await self.begin(source))


@dataclass(slots=True)
class Pair:
    """A running session and the one that works for it."""

    product: Product
    source: SessionId
    target: SessionId
    turn: TurnId
    """What the source runs."""
    rounds: int = 0

    @property
    def sender(self) -> Sender:
        """The credential of the source."""
        return Sender(self.source, self.turn)

    async def renew(self) -> None:
        """Give the source a new turn: each outcome that a turn reads lowers the hops that it has left."""
        await self.product.settle(self.turn, slot=False)
        self.turn = await self.product.begin(self.source)

    async def answered(self) -> MessageId:
        """One round trip by use cases: send, settle, read the outcome."""
        sent = await self.product.send(self.sender, self.target)
        await self.product.settle(sent.turn_id)
        return await self._read(sent.message.id)

    async def answered_later(self, busy: TurnId) -> MessageId:
        """One round trip by use cases whose target runs something else first."""
        sent = await self.product.send(self.sender, self.target)
        following = (await self.product.settle(busy)).next
        assert following is not None, "the message is next"
        await self.product.settle(following.id)
        return await self._read(sent.message.id)

    async def _read(self, message_id: MessageId) -> MessageId:
        (found,) = await self.product.store.read(describe.messages, ((message_id,), self.source), brief=True)
        assert found.result is not None, "the message is answered"
        return message_id

    async def performed(self, busy: TurnId | None = None) -> MessageId:
        """One round trip by operations: send, then wait; what the target was *busy* with ends in between."""
        operations, self.rounds = self.product.operations, self.rounds + 1
        with operations.host.invocations.live(self.source, self.turn, "call", None) as invocation:
            agent = Agent(invocation)
            sent = await operations.perform(agent, "collaboration.send", self.task())
            if busy is not None:
                self.product.script.hand_over(busy)
            message_id = message_of(sent)
            answered_in_time(await operations.perform(agent, "collaboration.wait", {"messageIds": [message_id]}))
        return message_id

    def task(self) -> Mapping[str, Any]:
        """The parameters of the next send."""
        key = f"{self.turn}-{self.rounds}"
        return {"sessionId": self.target, "content": PAYLOAD, "kind": "task", "idempotencyKey": key}

    async def lap(self, *, queued: bool = False, performed: bool = False) -> Lap:
        """Measure one round trip, by use cases or by operations, up to the answer and up to the item that absorbs."""
        store = self.product.store
        busy = await self.product.begin(self.target) if queued else None
        commits, start = store.commits, time.perf_counter_ns()
        if performed:
            message_id = await self.performed(busy)
        else:
            message_id = await (self.answered() if busy is None else self.answered_later(busy))
        answered = since_ms(start)
        await self.product.counted()
        lap = {"answered": answered, "answered commits": float(store.commits - commits)}
        start = time.perf_counter_ns()
        await self.product.absorb(self.turn, message_id)
        return lap | {"read": answered + since_ms(start), "read commits": float(store.commits - commits)}


def message_of(view: View) -> MessageId:
    """The message that a send made."""
    assert isinstance(view, SendReceipt), "a send answers with a receipt"
    return MessageId(view.message_id)


def answered_in_time(view: View) -> None:
    """Check that a wait did not run out."""
    assert isinstance(view, Waited), "a wait answers with what it waited for"
    assert not view.timed_out, "the script replies at once"


@asynccontextmanager
async def product(folder: Path, open_store: OpenStore = SQLITE.open_store) -> AsyncGenerator[Product]:
    """Open the product on what belongs to a folder."""
    ids, clock, feed = RandomIds(), SystemClock(), MemoryFeed()
    facts = HostFacts(HostId(ids.new("hst")), 0, Mode.ASK, LIMITS)
    store = open_store(folder, facts, clock, ids, feed=feed)
    try:
        host_id, epoch = await store.run(recover.begin_epoch, facts.id)
        store.become(HostFacts(host_id, epoch, facts.permission_default, LIMITS))
        script = Script(store)
        delegates = Delegations(ids, clock, folder, LIMITS.delegations_max)
        parts = HostParts(
            store, feed, clock, script, Invocations(ids), (), LIMITS, "benchmark", delegates, ScriptedProbe()
        )
        yield Product(store, Operations(parts), script)
    finally:
        await store.close()
