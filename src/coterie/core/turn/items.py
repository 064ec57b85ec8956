"""The entries of a transcript.

Pure module. An item says who speaks by its type, never by its text; `core.turn.context` turns items into what a model
is shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from coterie.core.ids import MessageId, SessionId


@dataclass(frozen=True, slots=True)
class Origin:
    """Which message of which session an item comes from (ADR 0239, provenance); written by the host only."""

    message_id: MessageId
    source_session_id: SessionId
    source_title: str
    target_session_id: SessionId
    kind: str
    """`task`, `message` or `completion`."""
    reply_to_message_id: MessageId | None = None


@dataclass(frozen=True, slots=True)
class PersonText:
    """What a person wrote."""

    text: str
    unread: bool = False
    """It was meant for a turn that ended by a cancel or a crash before its model was asked again."""


@dataclass(frozen=True, slots=True)
class SessionText:
    """What another session, or the host for it, wrote; shown to the model in a frame (`core.turn.frame`)."""

    origin: Origin
    content: str
    nonce: str
    """Made when the item is written and stored with it, so that the frame is byte-equal live and restored."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to run a tool."""

    id: str
    name: str
    arguments: str
    """JSON text as the model wrote it; may be broken."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the provider counted, and what they cost; None is unknown, which is not zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: int | None = None
    """Millionths of a US dollar."""


def total(usages: Iterable[Usage]) -> Usage:
    """What several requests have used together; what none of them knows stays unknown."""
    found = Usage()
    for one in usages:
        found = Usage(
            _sum(found.input_tokens, one.input_tokens),
            _sum(found.output_tokens, one.output_tokens),
            _sum(found.cost, one.cost),
        )
    return found


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, slots=True)
class Reply:
    """One settled answer of a model."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    binding: str = ""
    """Key of the binding that answered, with its api and base URL: only the same one may see *state* again."""
    state: str | None = None
    """The provider's opaque state (signatures, ids) as JSON text."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that a tool has read; a request that shows it carries the bytes."""

    ref: str
    """Where they are kept: the SHA-256 of them, in hexadecimal digits."""
    media_type: str
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to one call."""

    call_id: str
    name: str
    text: str
    error: bool = False
    ref: str | None = None
    """Where the whole output is kept, if *text* is only its head and tail: the SHA-256 of it, in hexadecimal digits."""
    diff: str | None = None
    """What it has changed in a file, for people: no model is shown it."""
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a delegation: written by the host, shown to the model in a frame."""

    delegation_id: str
    agent: str
    """Name of the definition that it ran by."""
    status: str
    """`completed`, `failed` or `stopped`."""
    text: str
    nonce: str
    ref: str | None = None
    """Where the whole report is kept, if *text* is only its head and tail; see `ToolResult`."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What stands in a context for everything before it: a summary that a model wrote. The transcript keeps all."""

    text: str
    up_to: int
    """Number of the last item that it covers."""
    asked: int | None = None
    """Number of an item among those that is shown all the same: what the turn was asked in which it was made."""
    usage: Usage = field(default_factory=Usage)
    todo: str | None = None
    """The list of `todo` as it was then, word for word: no summary can lose it."""


Item: TypeAlias = PersonText | SessionText | Reply | ToolResult | Report | Checkpoint
