"""The parameters of every operation, as doors decode them.

Names are camelCase on the wire. Unknown names are refused. A request that leaves a default out and one that writes it
are equal once they are decoded: what is kept with an idempotency key is made of that.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic.alias_generators import to_camel

from coterie.core.inbound import Inbound
from coterie.core.permission import StoredMode
from coterie.core.thinking import Thinking


def _text(value: object) -> object:
    """Let nothing but text be read as a time: a bare number could be meant in more than one unit."""
    if value is not None and not isinstance(value, str):
        raise ValueError("a time is text in ISO 8601 with an offset")
    return value


def _utc(value: datetime | None) -> datetime | None:
    """One moment has many offsets, and is one value."""
    try:
        return value.astimezone(UTC) if value is not None else None
    except OverflowError:
        raise ValueError("a time lies between the years 1 and 9999 in UTC") from None


def _told(value: bool | None, info: ValidationInfo) -> bool:  # noqa: FBT001 - pydantic calls it
    """Whether a completion comes back if nobody says: for a task, and what is spawned begins with one."""
    return info.data.get("kind", "task") == "task" if value is None else value


_Time: TypeAlias = Annotated[AwareDatetime | None, Field(strict=False), BeforeValidator(_text), AfterValidator(_utc)]
_Notify: TypeAlias = Annotated[bool | None, Field(validate_default=True), AfterValidator(_told)]


class Params(BaseModel):
    """Base: camelCase, nothing unknown, no guessing of types."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        extra="forbid",
        strict=True,
        frozen=True,
        use_attribute_docstrings=True,
    )


class NoParams(Params):
    """Nothing."""


class Keyed(Params):
    """What every mutating operation takes."""

    idempotency_key: Annotated[str | None, Field(min_length=1)] = None
    """A repeated request with the same key returns the first result and does nothing."""


class SessionCreate(Keyed):
    """A new session."""

    title: str | None = None
    project_path: str | None = None
    """Absolute path of a folder that exists."""
    model: str | None = None
    """Key, alias or id of a configured model; the default model if absent."""
    permission_mode: Annotated[StoredMode, Field(strict=False)] = StoredMode.INHERIT
    thinking: Annotated[Thinking | None, Field(strict=False)] = None
    """How much its model thinks before it answers; absent leaves it to the vendor."""
    mode: Literal["agent"] = "agent"


class SessionRef(Params):
    """One session."""

    session_id: str


class TurnRef(Params):
    """One turn."""

    turn_id: str


class SessionList(Params):
    """A page of sessions, most recently updated first."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class SessionItems(Params):
    """A page of a transcript."""

    session_id: str
    after: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """Number of the last item that is known."""
    limit: Annotated[int, Field(ge=1, le=512)] = 100


class SessionPrompt(Keyed):
    """What a person says to a session."""

    session_id: str
    text: str


class SessionRename(Keyed):
    """A new title."""

    session_id: str
    title: str


class SessionConfigure(Keyed):
    """What to change; what is absent stays."""

    session_id: str
    title: str | None = None
    model: str | None = None
    """Key, alias or id of a configured model."""
    permission_mode: Annotated[StoredMode | None, Field(strict=False)] = None
    """A lower mode acts at once, a higher one from the next turn on."""
    inbound: Annotated[Inbound | None, Field(strict=False)] = None
    """What happens to tasks and messages of other sessions: accept, hold for a person, or refuse."""
    current_turn_delivery: bool | None = None
    """Whether a running turn may take in messages that are sent with `deliver = current_turn`."""
    thinking: Annotated[Thinking | None, Field(strict=False)] = None
    """How much its model thinks before it answers; from the next model request on."""


class SessionKeyed(Keyed):
    """One session, for an act."""

    session_id: str


class SessionDrop(Keyed):
    """A worktree to remove with its branch."""

    session_id: str
    force: bool = False
    """Drop also what is not committed."""


class SessionFork(Keyed):
    """A new session with the transcript of another one."""

    session_id: str
    title: str | None = None
    up_to: Annotated[int | None, Field(ge=1, lt=2**53)] = None
    """Number of the last item to take over; all if absent."""


class SessionInterrupt(Keyed):
    """Stop the running turn of a session."""

    session_id: str
    cascade: bool = True
    """Stop also what the turn has sent."""


class SessionRetry(Keyed):
    """Let a task or message that has ended be tried once more."""

    message_id: str


class QueueInput(Keyed):
    """One waiting input."""

    session_id: str
    input_id: str


class QueueMove(QueueInput):
    """One place up or down."""

    direction: Literal["up", "down"]


class Resolve(Keyed):
    """A person's answer to an open request."""

    request_id: str
    decision: Literal["once", "session", "grant", "deny"]
    """`session` lets a tool call pass whenever its session asks for the same; `grant` lets a pair write for a time."""
    seconds: Annotated[int, Field(ge=1, le=31_536_000)] = 3_600
    """How long a grant lasts."""
    comment: Annotated[str, Field(max_length=4096)] = ""
    """What the model of a tool call is told with the answer, and the sender of messages that are denied."""


class Answer(Keyed):
    """A person's words to a question of an agent."""

    request_id: str
    answer: str
    """One of the choices, or anything else; the agent's model is told that a person says it."""


class RevokeGrant(Keyed):
    """A grant to end."""

    grant_id: str


class ModelName(Params):
    """A model as a person or an agent names it."""

    name: str | None = None
    """Key, alias, id, label or a description; absent is the automatic choice."""
    delegated: bool = False
    """Whether it is for a spawned session."""


class ModelTest(Params):
    """A model to ask for a word."""

    name: str | None = None
    """Key, alias, id, label or a description; absent is the default."""


class Accept(Keyed):
    """The message whose result is good."""

    message_id: str
    note: Annotated[str, Field(max_length=4096)] = ""
    as_session_id: str | None = None
    """For a person's token only: the session to speak for."""


class MessageRef(Params):
    """One message."""

    message_id: str


class SessionRelease(Keyed):
    """Free the held queue of one session, or of all."""

    session_id: str | None = None


class Send(Keyed):
    """A message to a session."""

    session_id: str
    """The target."""
    content: str
    kind: Literal["message", "task"] = "message"
    notify_on_completion: _Notify = None
    """Whether a completion comes back; by default for a task, not for a message."""
    deliver: Literal["next_turn", "current_turn"] = "next_turn"
    """`current_turn` lets a running turn of the target take the message in, where its session allows that."""
    expires_at: _Time = None
    """When it is no longer worth starting (ISO 8601); then it is cancelled."""
    as_session_id: str | None = None
    """For a person's token only: the session to speak for. Stored and shown as `via: person`."""


class Spawn(Keyed):
    """A new session with its first task."""

    content: str
    title: Annotated[str | None, Field(max_length=80)] = None
    model: str | None = None
    notify_on_completion: _Notify = None
    """Whether a completion comes back; it does by default."""
    workspace: Literal["shared", "worktree"] | None = None
    """Where the new session works: in the folder of its creator, or in a git worktree of its own.

    By default a worktree where the project is in git and the session may edit without asking.
    """
    as_session_id: str | None = None
    """For a person's token only: the session to speak for."""


class Result(Params):
    """The outcome of one message, of a turn's message, or of the newest message to a session."""

    session_id: str
    message_id: str | None = None
    turn_id: str | None = None


class Wait(Params):
    """Sleep until messages have settled, or a session is idle."""

    message_ids: Annotated[list[str], Field(max_length=64)] = Field(default_factory=list)
    session_id: str | None = None
    until: Literal["settled", "idle"] = "settled"
    mode: Literal["all", "any"] = "all"
    timeout_ms: Annotated[int | None, Field(ge=0, lt=2**53)] = None
    """At most 45,000 (default 25,000) from outside and from a plugin of others; else a turn may sleep `wait_max_s`."""
    cursor: Annotated[str | None, Field(max_length=4096)] = None
    """From a wait whose time ran out: goes on with what it named, so give at most `timeoutMs` with it."""


class Cancel(Keyed):
    """Stop one message to a session, or all that the caller may stop there."""

    session_id: str
    message_id: str | None = None
    cascade: bool = True
    """Stop also what the stopped turns have sent."""


class ChainOf(Params):
    """A chain, by its id or by one of its messages."""

    chain_id: str | None = None
    message_id: str | None = None
    cursor: Annotated[str | None, Field(pattern=r"^[0-9]{1,18}$")] = None
