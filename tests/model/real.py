"""The real ledger, asked and looked at by the names of the one on paper."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.contract.test_sqlite import open_sqlite
from tests.model import model as paper
from tests.model.model import Letter, View

from coterie.app.arrange_queue import Direction
from coterie.app.cancel import Cancelled
from coterie.app.delete_session import Deleted
from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted
from coterie.app.receipt import Receipt
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import ChainId, SessionId, TurnId
from coterie.core.inbound import Inbound
from coterie.core.ledger.message import Deliver, Kind, Message
from coterie.core.limits import Limits
from coterie.core.permission import StoredMode
from coterie.core.turn.items import Item, PersonText, Reply, SessionText
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input
from coterie.ports.store import Tx
from coterie.testing.ledger import Ledger

ALL: Final = 1000
"""More than one life has of anything."""
LIMITS: Final = replace(
    Limits(),
    hops_max=paper.HOPS_MAX,
    inbox_max=paper.INBOX_MAX,
    prompts_max=paper.PROMPTS_MAX,
    chain_messages_max=paper.CHAIN_MESSAGES_MAX,
    chain_sessions_max=paper.CHAIN_SESSIONS_MAX,
    chain_cost_max=paper.CHAIN_COST_MAX / 1_000_000,
    workers_active_max=paper.WORKERS_MAX,
)


class NamedLedger:
    """A `Ledger` that speaks in names: each verb takes and answers what `PaperLedger` does."""

    def __init__(self, path: Path) -> None:
        self.on = Ledger(open_sqlite, path, LIMITS)
        self.ids: dict[str, Any] = {}
        """Of sessions, messages and turns, and of inputs as `in NAME`; a turn is `turn NAME`."""
        self.names: dict[str, str] = {}
        """The other way round, and of chains."""

    def call(self, id_: str, name: str, prefix: str = "") -> str:
        """Give an id its name; it has the same from then on."""
        self.ids[prefix + name] = id_
        return self.names.setdefault(id_, name)

    async def ask(self, what: str, key: str | None, body: str, **said: Any) -> Any:
        """Do it with a key."""
        return await getattr(self, what)(key=Key("person", key, body) if key else None, **said)

    async def open(self, name: str, mode: str) -> None:
        """See `PaperLedger`."""
        self.call(await self.on.session(name, StoredMode(mode)), name)

    async def fork(self, session: str, name: str) -> None:
        """See `PaperLedger`."""
        self.call(await self.on.fork(self.ids[session]), name)

    async def configure(self, session: str, mode: str, inbound: str, *, current_turn: bool) -> None:
        """See `PaperLedger`."""
        settings: dict[str, Any] = {"permission_mode": StoredMode(mode), "inbound": Inbound(inbound)}
        await self.on.configure(self.ids[session], **settings, current_turn=current_turn)

    async def prompt(self, session: str, name: str, *, slot: bool, key: Key | None) -> Any:
        """See `PaperLedger`."""
        return self._prompted(await self.on.prompt(self.ids[session], name, slot=slot, key=key), name)

    async def steer(self, session: str, name: str, *, slot: bool, key: Key | None) -> Any:
        """See `PaperLedger`."""
        return self._prompted(await self.on.steer(self.ids[session], name, slot=slot, key=key), name)

    def _prompted(self, said: Prompted, name: str) -> Any:
        assert self.call(said.input_id, name, "in ") == name
        return said.status, said.position, said.replayed

    async def send(self, source: str, target: str, name: str, letter: Letter, *, key: Key | None) -> Any:
        """See `PaperLedger`."""
        said = {
            "kind": Kind(letter.kind),
            "notify": letter.notify,
            "expires_at": None if letter.life is None else self.on.clock.now_ms() + letter.life,
            "deliver": Deliver.CURRENT_TURN if letter.now else Deliver.NEXT_TURN,
            "slot": letter.slot,
        }
        return self._sent(await self.on.send(self.ids[source], self.ids[target], **said, key=key), name)

    async def spawn(self, source: str, session: str, name: str, *, slot: bool, key: Key | None) -> Any:
        """See `PaperLedger`."""
        receipt = await self.on.spawn(self.ids[source], title=session, slot=slot, key=key)
        self.call(receipt.message.target_session_id, session)
        return self._sent(receipt, name)

    async def retry(self, message: str, name: str, *, slot: bool, key: Key | None) -> Any:
        """See `PaperLedger`."""
        return self._sent(await self.on.retry(self.ids[message], slot=slot, key=key), name)

    def _sent(self, receipt: Receipt, name: str) -> Any:
        message, waiting = receipt.message, receipt.waiting
        assert self.call(message.id, name) == name
        return receipt.state.value, receipt.position, receipt.held, waiting and waiting.value, receipt.replayed

    async def remove(self, session: str, waiting: str, *, key: Key | None) -> Any:
        """See `PaperLedger`."""
        message, replayed = await self.on.remove(self.ids[session], self.ids[f"in {waiting}"], key=key)
        return message and self.names[message], replayed

    async def promote_input(self, session: str, waiting: str, *, key: Key | None) -> Any:
        """See `PaperLedger`."""
        return (await self.on.promote(self.ids[session], self.ids[f"in {waiting}"], key=key),)

    async def move(self, session: str, waiting: str, *, up: bool, key: Key | None) -> Any:
        """See `PaperLedger`."""
        direction = Direction.UP if up else Direction.DOWN
        return await self.on.move(self.ids[session], self.ids[f"in {waiting}"], direction, key=key)

    async def interrupt(self, session: str, *, cascade: bool, key: Key | None) -> Any:
        """See `PaperLedger`."""
        found = await self.on.interrupt(self.ids[session], cascade=cascade, key=key)
        return self._stopped(found), found.replayed

    def _stopped(self, found: Cancelled | Deleted) -> set[str]:
        turns = {f"turn {self.names[id_]}" for id_ in found.turn_ids}
        return turns | {self.names[id_] for id_ in found.message_ids}

    async def cancel(self, session: str, message: str | None, by: str | None, *, cascade: bool) -> Any:
        """See `PaperLedger`."""
        named, sender = self._perhaps(message), self._perhaps(by)
        return self._stopped(await self.on.cancel(self.ids[session], named, by=sender, cascade=cascade))

    def _perhaps(self, name: str | None) -> Any:
        return None if name is None else self.ids[name]

    async def release(self, session: str | None) -> int:
        """See `PaperLedger`."""
        return await self.on.release(self._perhaps(session))

    async def archive(self, session: str) -> None:
        """See `PaperLedger`."""
        await self.on.archive(self.ids[session])

    async def delete(self, session: str) -> Any:
        """See `PaperLedger`."""
        return self._stopped(await self.on.delete(self.ids[session]))

    async def claim(self) -> str | None:
        """See `PaperLedger`."""
        return await self._begun(await self.on.claim())

    async def settle(self, turn: str, how: str, cost: int, outcomes: list[str], *, slot: bool) -> Any:
        """See `PaperLedger`."""
        shown = tuple(self.ids[name] for name in outcomes)
        code = Code.PROVIDER_ERROR if how == "failed" else None
        turn_id, items = self.ids[f"turn {turn}"], (Reply("done"),)
        settle = SettleTurn(turn_id, items, shown, how == "cancelled", code=code, cost=cost, slot=slot)
        settled = await self.on.store.run(settle_turn, settle)
        return settled.state and settled.state.value, await self._begun(settled.next)

    async def _begun(self, turn: Turn | None) -> str | None:
        await self.view()
        return turn and self.names[turn.id]

    async def append(self, turn: str, outcomes: list[str]) -> bool:
        """See `PaperLedger`."""
        return await self.on.append(self.ids[f"turn {turn}"], *(self.ids[name] for name in outcomes))

    async def take_news(self, turn: str) -> bool:
        """See `PaperLedger`."""
        return await self.on.take_news(self.ids[f"turn {turn}"])

    async def tick(self, ms: int) -> None:
        """See `PaperLedger`."""
        self.on.clock.advance(ms / 1000)

    async def expire(self) -> int:
        """See `PaperLedger`."""
        return await self.on.expire()

    async def restart(self, *, resume: bool) -> None:
        """See `PaperLedger`."""
        self.on.host = replace(self.on.host, resume=resume)
        await self.on.restart()

    async def lose(self, waiting: str) -> None:
        """Take an input away, as no verb does."""
        await self.on.change(lambda tx: tx.inputs.remove(self.ids[f"in {waiting}"]))

    async def view(self) -> View:
        """All that is to be seen, as `PaperLedger.view` tells it."""
        return await self.on.look(self._view)

    def _view(self, tx: Tx) -> View:
        sessions = [SessionId(id_) for id_ in self.ids.values() if id_.startswith("ses_")]
        messages = {message.id: message for id_ in sessions for message in tx.exchanges.recent(id_, ALL)}
        for message in sorted(messages.values(), key=lambda message: message.reply_to is not None):
            self._know(message)
        waiting = {id_: [self._input(one) for one in tx.inputs.page(id_, ALL)] for id_ in sessions}
        known = [TurnId(id_) for id_ in self.ids.values() if id_.startswith("turn_")]
        newest = [turn.id for id_ in sessions if (turn := tx.turns.newest(id_)) is not None]
        turns = [turn for id_ in dict.fromkeys([*known, *newest]) if (turn := tx.turns.get(id_)) is not None]
        return {
            "turns": dict(map(self._turn, turns)),
            "messages": {self.names[id_]: self._message(message) for id_, message in messages.items()},
            "sessions": {self.names[id_]: self._session(tx, id_, waiting[id_]) for id_ in sessions},
            "chains": {self.names[id_]: _chain(tx, ChainId(id_)) for id_ in self.names if id_.startswith("chn_")},
            "broken": list(tx.journal.violations()[1]),
        }

    def _know(self, message: Message) -> None:
        if message.reply_to is not None:
            self.call(message.id, f"re {self.names[message.reply_to]}")
        elif message.source_turn_id is None and message.retry_of is None:
            self.names[message.chain_id] = self.names[message.id]

    def _input(self, waiting: Input) -> Any:
        name = self.names[waiting.message_id or waiting.id]
        self.call(waiting.id, name, "in ")
        if waiting.message_id is None:
            self.names[waiting.chain_id] = name
        kind = "message" if waiting.message_id else waiting.kind
        offered = waiting.turn_id is not None
        return name, kind, waiting.promoted, waiting.waiting and waiting.waiting.value, offered

    def _turn(self, turn: Turn) -> Any:
        name = self.call(turn.id, self.names[turn.message_id or turn.input_id], "turn ")
        if turn.message_id is None:
            self.names[turn.chain_id] = name
        chains = [self.names[id_] for id_ in turn.chains]
        session = self.names[turn.session_id]
        return name, (session, turn.state.value, turn.fenced, turn.permission.value, turn.hops, chains)

    def _message(self, message: Message) -> Any:
        place = (self.names[message.source_session_id], self.names[message.target_session_id])
        turn = message.turn_id and self.names[message.turn_id]
        how = message.joined and message.joined.value
        rights = (message.notify, message.hops, message.ceiling, self.names[message.chain_id])
        return *place, message.kind.value, message.state.value, turn, how, message.result, *rights

    def _session(self, tx: Tx, session_id: SessionId, queue: list[Any]) -> Any:
        found, turn = tx.sessions.get(session_id), tx.turns.running(session_id)
        heard = [self._item(one.item) for one in tx.items.page(session_id, 0, ALL)]
        return found and found.held and found.held.value, found is None, turn and self.names[turn.id], queue, heard

    def _item(self, item: Item) -> str:
        match item:
            case PersonText(text, unread):
                return f"unread {text}" if unread else text
            case SessionText(origin):
                return self.names[origin.message_id]
            case Reply(text):
                return text
            case _:
                return "read"


def _chain(tx: Tx, chain_id: ChainId) -> Any:
    chain = tx.chains.get(chain_id)
    assert chain is not None, "what belongs to a chain names one that is there"
    return chain.messages, chain.sessions, chain.cost, chain.grants
