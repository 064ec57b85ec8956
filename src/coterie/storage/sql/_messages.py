"""Messages and items over a driver."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Joined, Kind, Message, Via
from coterie.core.ledger.states import MessageState
from coterie.core.turn.items import Checkpoint, Item, PersonText, Reply, Report, SessionText, ToolResult, Usage
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Acceptance, NumberedItem
from coterie.storage.sql.driver import Driver, Row

ITEM_KINDS: Final[dict[str, type[Item]]] = {
    "person": PersonText,
    "session": SessionText,
    "reply": Reply,
    "tool_result": ToolResult,
    "report": Report,
    "checkpoint": Checkpoint,
}
"""The name of each type of item in its row; never renamed."""

SENT_WINDOW: Final = 64
"""How many of a session's newest messages are looked through for one of a kind, so that its cost has a bound (I15)."""

_ALL: Final = 1 << 62
_KINDS: Final = {kind.value: kind for kind in Kind}
_STATES: Final = {state.value: state for state in MessageState}
_NAMES: Final = {type_: name for name, type_ in ITEM_KINDS.items()}
_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final = {name: msgspec.json.Decoder(type_) for name, type_ in ITEM_KINDS.items()}


def message_of(row: Row) -> Message:
    """The message that a row of `{messages}` holds."""
    values = list(row[:24])
    values[6], values[8], values[9] = _KINDS[row[6]], _STATES[row[8]], bool(row[9])
    values[15], values[17] = Joined(row[15]) if row[15] else None, Via(row[17]) if row[17] else None
    values[20] = bool(row[20])
    return Message(*values)


def _numbered(row: Row) -> NumberedItem:
    number, turn_id, kind, diff, body, created_at = row
    item: Item = _DECODERS[kind].decode(body)
    if isinstance(item, ToolResult) and diff is not None:
        item = replace(item, diff=diff)
    return NumberedItem(number, turn_id, item, created_at)


def _kept(item: Item) -> str | None:
    """The reference of what stands beside the ledger."""
    match item:
        case ToolResult(image=image) if image is not None:
            return image.ref
        case ToolResult() | Report():
            return item.ref
        case _:
            return None


def _without_diff(item: Item) -> Item:
    return replace(item, diff=None) if isinstance(item, ToolResult) and item.diff is not None else item


def _messages(rows: Sequence[Row]) -> tuple[Message, ...]:
    return tuple(map(message_of, rows))


class SqlMessages:
    """Implements `ports.store.Messages`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def add(self, message: Message, into: tuple[TurnId, Joined] | None = None) -> None:
        """See the port."""
        turn_id, joined = into or (None, None)
        self._driver.write(
            "add_message",
            id=message.id,
            chain_id=message.chain_id,
            source_session_id=message.source_session_id,
            source_title=message.source_title,
            target_session_id=message.target_session_id,
            target_title=message.target_title,
            kind=message.kind.value,
            content=message.content,
            state=(MessageState.RUNNING if into else message.state).value,
            notify=int(message.notify),
            hops=message.hops,
            ceiling=message.ceiling,
            created_at=message.created_at,
            updated_at=message.updated_at,
            turn_id=turn_id,
            joined=joined.value if joined else None,
            source_turn_id=message.source_turn_id,
            via=message.via.value if message.via else None,
            reply_to=message.reply_to,
            result=message.result,
            truncated=int(message.truncated),
            error=message.error,
            retry_of=message.retry_of,
            expires_at=message.expires_at,
        )

    def _one(self, name: str, **params: object) -> Message | None:
        row = self._driver.one(name, **params)
        return message_of(row) if row else None

    def get(self, message_id: MessageId) -> Message | None:
        """See the port."""
        return self._one("get_message", id=message_id)

    def move(
        self,
        message_id: MessageId,
        event: type,
        now: int,
        *,
        into: tuple[TurnId, Joined] | None = None,
        error: str | None = None,
    ) -> Message | None:
        """See the port."""
        turn_id, joined = into or (None, None)
        return self._one(
            f"move_message.{event.__name__}",
            id=message_id,
            turn_id=turn_id,
            joined=joined and joined.value,
            error=error,
            now=now,
        )

    def settle_turn(self, turn: Turn, event: type, now: int) -> tuple[Message, ...]:
        """See the port."""
        rows = self._driver.all(
            f"settle_messages.{event.__name__}",
            turn_id=turn.id,
            result=turn.result,
            truncated=int(turn.truncated),
            error=f"{turn.error_code}: {turn.error}" if turn.error_code else turn.error,
            now=now,
        )
        return _messages(rows)

    def sent_open(self, turn: Turn) -> tuple[Message, ...]:
        """See the port."""
        return _messages(self._driver.all("sent_open", turn_id=turn.id, chain_id=turn.chain_id))

    def completion_of(self, message_id: MessageId) -> Message | None:
        """See the port."""
        return self._one("completion_of", message_id=message_id)

    def open_between(self, target: SessionId, source: SessionId | None) -> tuple[Message, ...]:
        """See the port."""
        found = _messages(self._driver.all("open_to", target=target))
        return tuple(message for message in found if source in (None, message.source_session_id))

    def accepted(self, turn_id: TurnId) -> int:
        """See the port."""
        row = self._driver.one("accepted_count", turn_id=turn_id)
        assert row is not None
        return row[0]

    def due(self, now: int, limit: int) -> tuple[Message, ...]:
        """See the port."""
        return _messages(self._driver.all("due_messages", now=now, limit=limit))


class SqlExchanges:
    """Implements `ports.reading.Exchanges`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def _one(self, name: str, **params: object) -> Message | None:
        row = self._driver.one(name, **params)
        return message_of(row) if row else None

    def inbound(self, session_id: SessionId) -> Message | None:
        """See the port."""
        return self._one("newest_inbound", session_id=session_id)

    def of_turn(self, turn_id: TurnId, party: SessionId | None) -> Message | None:
        """See the port."""
        return self._one("message_of_turn", turn_id=turn_id, party=party)

    def sent_last(self, source: SessionId, target: SessionId) -> Message | None:
        """See the port."""
        return self._one("sent_last", source=source, target=target, window=SENT_WINDOW)

    def recent(self, session_id: SessionId, limit: int) -> tuple[Message, ...]:
        """See the port."""
        rows = [
            *self._driver.all("recent_inbound", session_id=session_id, limit=limit),
            *self._driver.all("recent_outbound", session_id=session_id, limit=limit),
        ]
        return _messages(sorted(rows, key=lambda row: row[24], reverse=True)[:limit])

    def of_chain(
        self, chain_id: ChainId, after: int, limit: int, party: SessionId | None = None
    ) -> tuple[tuple[int, Message], ...]:
        """See the port."""
        rows = self._driver.all("page_chain", chain_id=chain_id, after=after, limit=limit, party=party)
        return tuple((row[24], message_of(row)) for row in rows)

    def current(self, session_id: SessionId) -> Message | None:
        """See the port."""
        return self._one("first_open", session_id=session_id)

    def delivered(self, session_id: SessionId) -> Message | None:
        """See the port."""
        return self._one("newest_settled", session_id=session_id, window=SENT_WINDOW)

    def accept(self, acceptance: Acceptance) -> None:
        """See the port."""
        self._driver.write(
            "accept_result",
            message_id=acceptance.message_id,
            session_id=acceptance.session_id,
            note=acceptance.note,
            now=acceptance.created_at,
        )

    def acceptance(self, message_id: MessageId) -> Acceptance | None:
        """See the port."""
        row = self._driver.one("get_acceptance", message_id=message_id)
        return Acceptance(*row) if row else None


class SqlItems:
    """Implements `ports.store.Items`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def append(self, session_id: SessionId, turn_id: TurnId, items: Sequence[Item], now: int) -> tuple[int, ...]:
        """See the port."""
        numbers: list[int] = []
        for item in items:
            row = self._driver.one(
                "append_item",
                session_id=session_id,
                turn_id=turn_id,
                kind=_NAMES[type(item)],
                ref=_kept(item),
                diff=item.diff if isinstance(item, ToolResult) else None,
                body=_ENCODER.encode(_without_diff(item)).decode(),
                now=now,
            )
            assert row is not None
            numbers.append(row[0])
        return tuple(numbers)

    def page(self, session_id: SessionId, after: int, limit: int) -> tuple[NumberedItem, ...]:
        """See the port."""
        rows = self._driver.all("page_items", session_id=session_id, after=after, limit=limit)
        return tuple(map(_numbered, rows))

    def checkpoint(self, session_id: SessionId) -> NumberedItem | None:
        """See the port."""
        row = self._driver.one("newest_checkpoint", session_id=session_id)
        return _numbered(row) if row else None

    def sizes(self, session_id: SessionId, after: int, before: int | None, limit: int) -> tuple[tuple[int, int], ...]:
        """See the port."""
        upper = _ALL if before is None else before
        rows = self._driver.all("item_sizes", session_id=session_id, after=after, before=upper, limit=limit)
        return tuple((number, chars) for number, chars in rows)

    def names(self, session_id: SessionId, ref: str) -> bool:
        """See the port."""
        return self._driver.one("names_output", session_id=session_id, ref=ref) is not None

    def named(self, refs: Sequence[str]) -> frozenset[str]:
        """See the port."""
        return frozenset(ref for (ref,) in self._driver.all("named_outputs", ids=list(refs)))

    def usage(self, turn: Turn) -> tuple[Usage, ...]:
        """See the port."""
        rows = self._driver.all("replies_of_turn", session_id=turn.session_id, turn_id=turn.id)
        written = (_DECODERS[kind].decode(body) for kind, body in rows)
        return tuple(item.usage for item in written if isinstance(item, Reply | Checkpoint))

    def copy(self, source: SessionId, target: SessionId, up_to: int | None) -> int:
        """See the port."""
        return self._driver.move("copy_items", source=source, target=target, up_to=_ALL if up_to is None else up_to)

    def purge(self, session_id: SessionId, limit: int) -> int:
        """See the port."""
        return self._driver.move("purge_items", session_id=session_id, limit=limit)
