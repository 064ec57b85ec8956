"""What operations answer, as doors encode it: camelCase names, absent values left out, times in ISO 8601 UTC."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from coterie.core.ledger.message import Message
from coterie.core.session.session import Session
from coterie.core.turn.items import PersonText, Reply, SessionText, ToolResult
from coterie.core.turn.turn import Turn
from coterie.ports.store import Change, NumberedItem


class View(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True, frozen=True)

    def wire(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)


def iso(at_ms: int) -> str:
    """Epoch milliseconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Health(View):
    """The host answers."""

    ok: bool
    version: str
    epoch: int
    turns_running: int


class SessionView(View):
    """A session."""

    id: str
    title: str
    project_path: str | None
    model: str | None
    mode: Literal["agent"]
    permission_mode: str
    held: str | None
    status: str | None
    """What it does, in lists: `running`, `queued`, else how its newest turn ended, else `idle`."""
    created_by_session_id: str | None
    revision: int
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, session: Session, status: str | None = None) -> "SessionView":
        """Show a session."""
        return cls(
            id=session.id,
            title=session.title,
            project_path=session.project_path,
            model=session.model,
            mode="agent",
            permission_mode=session.permission_mode.value,
            held=session.held.value if session.held else None,
            status=status,
            created_by_session_id=session.created_by,
            revision=session.revision,
            created_at=iso(session.created_at),
            updated_at=iso(session.updated_at),
        )


class OneSession(View):
    """A session, and whether an earlier request had made it."""

    session: SessionView
    replayed: bool | None = None


class TurnView(View):
    """One turn and how it ended."""

    turn_id: str
    session_id: str
    status: str
    kind: str
    """`prompt`, or the kind of the message that started it."""
    message_id: str | None
    permission: str
    """What it may do at most."""
    result: str | None
    truncated: bool | None
    error_code: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    created_at: str
    ended_at: str | None

    @classmethod
    def of(cls, turn: Turn) -> "TurnView":
        """Show a turn."""
        return cls(
            turn_id=turn.id,
            session_id=turn.session_id,
            status=turn.state.value,
            kind=turn.kind,
            message_id=turn.message_id,
            permission=turn.permission.value,
            result=turn.result,
            truncated=turn.truncated or None,
            error_code=turn.error_code,
            error=turn.error,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            created_at=iso(turn.created_at),
            ended_at=iso(turn.ended_at) if turn.ended_at is not None else None,
        )


class SessionPage(View):
    """A page of sessions."""

    sessions: list[SessionView]
    cursor: str | None = None


class ItemView(View):
    """An item of a transcript."""

    number: int
    turn_id: str
    kind: Literal["person", "session", "reply", "tool_result"]
    created_at: str
    text: str
    calls: list[dict[str, str]] | None = None
    call_id: str | None = None
    tool: str | None = None
    error: bool | None = None
    origin: dict[str, str] | None = None

    @classmethod
    def of(cls, numbered: NumberedItem) -> "ItemView":
        """Show an item: what is said, by whom, and nothing opaque."""
        number, turn_id, at = numbered.number, numbered.turn_id, iso(numbered.created_at)
        match numbered.item:
            case PersonText(text):
                return cls(number=number, turn_id=turn_id, kind="person", created_at=at, text=text)
            case SessionText(origin, content):
                shown = {
                    "messageId": origin.message_id,
                    "sourceSessionId": origin.source_session_id,
                    "sourceTitle": origin.source_title,
                    "kind": origin.kind,
                }
                if origin.reply_to_message_id:
                    shown["replyToMessageId"] = origin.reply_to_message_id
                return cls(number=number, turn_id=turn_id, kind="session", created_at=at, text=content, origin=shown)
            case Reply(text, calls):
                asked = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
                return cls(number=number, turn_id=turn_id, kind="reply", created_at=at, text=text, calls=asked or None)
            case ToolResult(call_id, name, text, error):
                return cls(
                    number=number,
                    turn_id=turn_id,
                    kind="tool_result",
                    created_at=at,
                    text=text,
                    call_id=call_id,
                    tool=name,
                    error=error or None,
                )


class ItemPage(View):
    """A page of a transcript; `cursor` is the `after` of the next one."""

    items: list[ItemView]
    cursor: int | None = None


class MessageView(View):
    """A message of the ledger."""

    id: str
    kind: str
    status: str
    source_session_id: str
    source_title: str
    target_session_id: str
    target_title: str
    turn_id: str | None
    reply_to_message_id: str | None
    content: str
    result: str | None
    truncated: bool | None
    error: str | None
    remaining_hops: int
    ceiling: str
    via: str | None
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, message: Message) -> "MessageView":
        """Show a message."""
        return cls(
            id=message.id,
            kind=message.kind.value,
            status=message.state.value,
            source_session_id=message.source_session_id,
            source_title=message.source_title,
            target_session_id=message.target_session_id,
            target_title=message.target_title,
            turn_id=message.turn_id,
            reply_to_message_id=message.reply_to,
            content=message.content,
            result=message.result,
            truncated=message.truncated or None,
            error=message.error,
            remaining_hops=message.hops,
            ceiling=message.ceiling,
            via=message.via.value if message.via else None,
            created_at=iso(message.created_at),
            updated_at=iso(message.updated_at),
        )


class SendReceipt(View):
    """What the sender of a message is told."""

    message_id: str
    session_id: str
    status: str
    position: int | None
    turn_id: str | None
    remaining_hops: int
    ceiling: str
    replayed: bool
    held: bool | None


class PromptReceipt(View):
    """What the sender of a prompt is told."""

    input_id: str
    status: str
    """`queued`, or the state of its turn."""
    turn_id: str | None
    position: int | None
    replayed: bool


class Released(View):
    """How many sessions were freed."""

    released: int
    replayed: bool | None = None


class ResultView(View):
    """An outcome, if there is one yet."""

    ready: bool
    message: MessageView | None


class MessageState(View):
    """Where a message is."""

    id: str
    status: str
    session_id: str
    turn_id: str | None
    result: str | None
    truncated: bool | None
    error: str | None


class Waited(View):
    """What was seen last; running out of time is a normal answer."""

    timed_out: bool
    messages: list[MessageState]
    status: str | None = None


class CancelledView(View):
    """What was stopped; sessions and histories stay."""

    cancelled: Literal[True]
    session_retained: Literal[True]
    message_ids: list[str]
    running_turn_ids: list[str]
    replayed: bool | None = None


class SessionReference(View):
    """A session by id and title."""

    session_id: str
    title: str


class Exchange(View):
    """A recent message, shortened."""

    message_id: str
    direction: Literal["incoming", "outgoing"]
    peer: SessionReference
    kind: str
    status: str
    preview: str
    created_at: str


class StatusView(View):
    """The bounded summary of one session."""

    session_id: str
    title: str
    status: str
    held: str | None
    waiting: int
    model: str | None
    permission_mode: str
    created_by_session: SessionReference | None
    created_sessions: list[SessionReference] | None
    current_task: Exchange | None
    last_turn: TurnView | None
    recent_exchanges: list[Exchange]


class DirectoryEntry(View):
    """A session as other sessions may know it."""

    session_id: str
    title: str
    status: str
    created_by_session_id: str | None
    updated_at: str


class Directory(View):
    """A page of the directory."""

    sessions: list[DirectoryEntry]
    cursor: str | None


class ChainView(View):
    """A page of a chain, completions included, and what it has used."""

    chain_id: str
    messages: list[MessageView]
    messages_used: int
    messages_max: int
    cursor: str | None


class VerifyView(View):
    """The checks of the ledger."""

    ok: bool
    checked: int
    failures: list[dict[str, str]]


class ChangeView(View):
    """One event of the stream."""

    session_id: str
    revision: int
    kind: str
    ref: str
    at: str

    @classmethod
    def of(cls, change: Change) -> "ChangeView":
        """Show a change."""
        return cls(
            session_id=change.session_id,
            revision=change.revision,
            kind=change.kind,
            ref=change.ref,
            at=iso(change.at),
        )
