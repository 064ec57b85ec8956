"""A script: rules in order, each with conditions and a reply.

Not the YAML: `reading` makes scripts from text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from coterie.model_server.condition import Capture, Condition, always
from coterie.model_server.request import Request
from coterie.model_server.template import Shape, Template


class Finish(StrEnum):
    """Why a model stopped, in OpenAI's words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


class Ending(StrEnum):
    """How the reply ends on the wire."""

    FINISHED = "finished"
    UNFINISHED = "unfinished"
    """Well-formed HTTP, but no finish reason."""
    CUT = "cut"
    """The socket is closed in the middle."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens to report; None is estimated at four characters a token."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A tool call to make."""

    tool: Template
    arguments: Shape
    arguments_text: Template | None = None
    """Sent as it is in place of *arguments*, be it JSON or not."""


@dataclass(frozen=True, slots=True)
class Speech:
    """A reply in the form of a model's answer; without text and calls it is silence."""

    chunks: tuple[Template, ...] = ()
    chunk_chars: int | None = None
    """Cut the text anew into chunks of this length, after the slots are filled."""
    thinking: Template | None = None
    calls: tuple[CallPlan, ...] = ()
    first_delay_ms: int = 0
    delay_ms: int = 0
    finish: Finish | None = None
    """None is `tool_calls` where there are calls, `stop` otherwise."""
    ending: Ending = Ending.FINISHED
    chunks_max: int = 0
    """After how many chunks the socket is closed, where *ending* is a cut."""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Failure:
    """A reply in the form of an HTTP error."""

    status: int
    body: Shape
    """A text is sent as it is, a mapping as JSON, None as the vendor's shape around *message*."""
    message: Template
    retry_after: str | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Hang:
    """No reply: the request is taken and nothing is sent until the client leaves."""


@dataclass(frozen=True, slots=True)
class Drop:
    """No reply: the request is taken and the connection closed."""


Reply: TypeAlias = Speech | Failure | Hang | Drop


@dataclass(frozen=True, slots=True)
class Rule:
    """The reply to the requests that meet all of *conditions*, unless they meet all of *exceptions* too."""

    name: str
    reply: Reply
    conditions: tuple[Condition, ...] = ()
    exceptions: tuple[Condition, ...] = ()
    captures: Mapping[str, Capture] | None = None
    times: int | None = None
    """How often it may be used, over all clients and the life of the server."""

    def match(self, request: Request) -> dict[str, str] | None:
        """Return the values for the reply's slots, or None where the rule does not hold."""
        values = always(request)
        for condition in self.conditions:
            found = condition.check(request)
            if found is None:
                return None
            values |= found
        if self.exceptions and all(condition.check(request) is not None for condition in self.exceptions):
            return None
        for name, capture in (self.captures or {}).items():
            value = capture.find(request)
            if value is None:
                return None
            values[name] = value
        return values


@dataclass(frozen=True, slots=True)
class Script:
    """What the server answers; the first rule that holds does."""

    rules: tuple[Rule, ...]
    api_key: str | None = None
    """The only key that is let in; None lets in everybody."""
    models: tuple[str, ...] = ("scripted",)
    """What `GET /v1/models` lists; any model may be asked."""

    def choose(self, request: Request, used: Mapping[str, int]) -> tuple[Rule, dict[str, str]] | None:
        """Return the rule for *request* with its values.

        Args:
            request: What is asked.
            used: How often each rule was used, by its name.
        """
        for rule in self.rules:
            if rule.times is not None and used.get(rule.name, 0) >= rule.times:
                continue
            values = rule.match(request)
            if values is not None:
                return rule, values
        return None
