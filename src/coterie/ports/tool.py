"""A tool that a model may call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.permission import Risk
from coterie.ports.model_provider import ToolSpec

DIFF_CHARS_MAX: Final = 8_000
"""How much of a change people are shown."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One tool call of one running turn: the credential with which a tool or plugin acts for a session (ADR 0239).

    The host makes it for the call and forgets it when the call ends; only the host's own copy counts.
    """

    id: str
    session_id: SessionId
    turn_id: TurnId
    call_id: str
    workspace: str | None
    """Absolute path of the project folder that the session works in, if it has one."""
    show: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    """Shows text live to who watches the session. It may be cut or lost; what counts is the output."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for the model, if it takes any."""

    data: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers."""

    text: str
    error: bool = False
    shows: tuple[MessageId, ...] = ()
    """Messages whose settled outcome the text shows: their queued completions join this turn."""
    diff: str = ""
    """What was changed in a file, for people only: the model knows what it wrote."""
    picture: Picture | None = None
    """Belongs to the text, which names it."""


@dataclass(frozen=True, slots=True)
class About:
    """What a call is about."""

    subject: str
    """As deny rules and grants name it: a path below the project folder, a command line."""
    shown: str = ""
    """What it would do, for the person who is asked: a difference, a command."""
    found: str = ""
    """Stands for all that it would act on as it is now, also for what is too long to be shown."""


class Tool(Protocol):
    """One tool. Expected failures are outputs with `error`, so that the model can do better."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and schema."""
        ...

    def risk(self, arguments: Mapping[str, object]) -> Risk:
        """What this call can do."""
        ...

    async def about(self, invocation: Invocation, arguments: Mapping[str, object]) -> About | ToolOutput:
        """What this call is about; an output where it cannot be done anyway, so that nobody is asked in vain."""
        ...

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Do it. *arguments* are a JSON object that the model wrote, not yet checked against the schema."""
        ...
