"""What a client asked, the same for every wire format."""

from dataclasses import dataclass
from enum import StrEnum


class Speaker(StrEnum):
    """Who says something in a request."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the request; a message that carries tool results and text counts as several."""

    speaker: Speaker
    text: str
    """For an assistant: its text, then a line with name and arguments for each call."""
    tool: str = ""
    """Which tool's result it is."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as the rules look at it."""

    model: str
    said: tuple[Said, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools on offer."""
    stream: bool = False
    usage_in_stream: bool = True
    """OpenAI sends no usage in a stream unless it is asked to."""

    @property
    def system(self) -> str:
        """The system text, its parts a line break apart."""
        return "\n".join(said.text for said in self.said if said.speaker is Speaker.SYSTEM)

    @property
    def since_user(self) -> tuple[Said, ...]:
        """What follows the last user message; everything, where there is none."""
        ends = [at for at, said in enumerate(self.said, 1) if said.speaker is Speaker.USER]
        return self.said[ends[-1] :] if ends else self.said

    @property
    def last_user(self) -> str | None:
        """The last user text."""
        return next((said.text for said in reversed(self.said) if said.speaker is Speaker.USER), None)

    @property
    def last_result(self) -> Said | None:
        """The last tool result after the last user message; an earlier turn's is no answer to this one."""
        return next((said for said in reversed(self.since_user) if said.speaker is Speaker.TOOL), None)

    @property
    def last_speaker(self) -> Speaker | None:
        """Who spoke last, the system apart."""
        return next((said.speaker for said in reversed(self.said) if said.speaker is not Speaker.SYSTEM), None)

    @property
    def user_turn(self) -> int:
        """How many user messages there are."""
        return sum(said.speaker is Speaker.USER for said in self.said)

    @property
    def requests_since_user(self) -> int:
        """How many assistant messages follow the last user message."""
        return sum(said.speaker is Speaker.ASSISTANT for said in self.since_user)

    @property
    def results_since_user(self) -> int:
        """How many tool results follow the last user message."""
        return sum(said.speaker is Speaker.TOOL for said in self.since_user)

    @property
    def chars(self) -> int:
        """How much was said, for the estimate of tokens."""
        return sum(len(said.text) for said in self.said)
