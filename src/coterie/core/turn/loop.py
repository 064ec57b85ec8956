"""The agent loop as data: `advance(turn, outcome) -> (turn, effects)`.

Pure module. A worker performs the effects through ports and comes back with the outcome; every rule of the loop stands
here and is tested without a network.

- A silent reply is asked again once, with an instruction for that one request; the second silence fails the turn
  (ADR 0239, amendment D446).
- The first settled reply to a completion that the ledger delivered may be silent.
- A turn whose delegations still run stays open: it sleeps until one has ended, and asks again with its report.
- Transient faults are retried at most three times, unless the vendor asks for more patience than a minute.
- A request that the vendor finds too long is made again with half of the room, at most three times: nobody else knows
  its tokens, and a session must not be stuck with what it has heard.
- A request that is near the window of the model waits for a summary of what is older, at most one for each reply. After
  one that failed the turn tries no more: its requests drop the oldest exchanges instead (`core.turn.fitting`).
"""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from coterie.core.codes import Code
from coterie.core.turn.fitting import FILL
from coterie.core.turn.items import Item, Reply, Report, ToolCall, ToolResult
from coterie.core.turn.silence import INSTRUCTION, is_silent

BACKOFF_S: Final = (0.5, 1.0, 2.0)
"""Waits before the retries of one request; the worker adds jitter."""
PATIENCE_S: Final = 60.0
"""A `Retry-After` above this fails at once."""
_TIGHT_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class LoopTurn:
    """What the loop remembers of a running turn."""

    requests_max: int
    """Model requests that the turn may make (`model_requests_max`)."""
    may_be_silent: bool = False
    """The next settled reply may be silent: set only where the ledger says that the input is a completion."""
    requests: int = 0
    """Settled replies so far."""
    faults: int = 0
    """Transient faults of the request under way."""
    delegations: int = 0
    """Delegations that run for the turn, or whose reports it was not told: it stays open for them."""
    silent_once: bool = False
    """The last reply was silent, so the next one must not be."""
    crowded_at: int = -1
    """Settled replies at the newest summary."""
    unsummarised: bool = False
    """A summary of this turn has failed."""
    tight: int = 1
    """What the window is divided by, because the vendor counts more tokens than we do."""


@dataclass(frozen=True, slots=True)
class Started:
    """The worker has the turn and its context."""


@dataclass(frozen=True, slots=True)
class Replied:
    """The model settled a reply, with a finish reason."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """The request failed, or its stream ended without a finish reason."""

    code: Code
    message: str
    transient: bool
    """Whether asking again can help: connection, 408, 429, 5xx, a broken stream."""
    retry_after_s: float | None = None
    partial: str = ""
    """Visible text that arrived before the fault."""
    too_long: bool = False
    """The vendor says that the request has more tokens than its model takes."""


@dataclass(frozen=True, slots=True)
class ToolsFinished:
    """Every call of the last reply has its result."""

    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class Reported:
    """Delegations have ended."""

    reports: tuple[Report, ...]


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """A fence was found: somebody who may has cancelled the turn."""


@dataclass(frozen=True, slots=True)
class Crowded:
    """The context is near the window of the model, so nothing was asked yet."""

    asking: "AskModel"


@dataclass(frozen=True, slots=True)
class Summarised:
    """The attempt at a summary is over."""

    asking: "AskModel"
    failed: bool = False
    """The model gave none: it failed, or said nothing."""


Outcome: TypeAlias = Started | Replied | ModelFailed | ToolsFinished | Reported | CancelAsked | Crowded | Summarised


@dataclass(frozen=True, slots=True)
class AskModel:
    """Send the context to the model, after a wait."""

    instruction: str | None = None
    """Added to the system instructions of this one request."""
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AppendItems:
    """Write items to the transcript."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run the calls and collect their results."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class AwaitReports:
    """Sleep until a delegation has ended."""


@dataclass(frozen=True, slots=True)
class Summarise:
    """Let the model summarise what is older, and write a checkpoint."""

    asking: AskModel
    """What waits for it."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Settle the turn; *items* are written with it."""

    code: Code | None = None
    """Why it failed; None is completed."""
    message: str = ""
    items: tuple[Item, ...] = ()
    cancelled: bool = False


Effect: TypeAlias = AskModel | AppendItems | RunTools | AwaitReports | Summarise | Finish


def advance(turn: LoopTurn, outcome: Outcome) -> tuple[LoopTurn, tuple[Effect, ...]]:
    """Return the turn after *outcome*, and what to do next, in order."""
    match outcome:
        case Started():
            return turn, (AskModel(),)
        case Replied(reply):
            return _settled(turn, reply)
        case ModelFailed():
            return _failed(turn, outcome)
        case ToolsFinished(results):
            return _ask_again(turn, AppendItems(results))
        case Reported(reports):
            return _ask_again(turn, AppendItems(reports))
        case Crowded(asking):
            return replace(turn, crowded_at=turn.requests), (Summarise(asking),)
        case Summarised(asking, failed):
            return replace(turn, unsummarised=failed), (asking,)
        case CancelAsked():  # pragma: no branch - the last of all
            return turn, (Finish(cancelled=True),)


def is_crowded(turn: LoopTurn, tokens: int, window: int) -> bool:
    """Whether a request of *tokens* waits for a summary.

    Args:
        turn: Whose request it is.
        tokens: What the request would take.
        window: What the model takes at most.
    """
    return tokens > FILL * window and not turn.unsummarised and turn.crowded_at < turn.requests


def joined(turn: LoopTurn) -> LoopTurn:
    """The turn after something new entered its context: steering or a message, so silence is an answer no more."""
    return replace(turn, may_be_silent=False)


def _settled(turn: LoopTurn, reply: Reply) -> tuple[LoopTurn, tuple[Effect, ...]]:
    excused = turn.may_be_silent
    turn = replace(turn, requests=turn.requests + 1, faults=0, may_be_silent=False)
    silent = is_silent(reply)
    if silent:
        # Stored as empty, so that no door needs to know what counts as visible.
        reply = replace(reply, text="")
    if turn.delegations and not reply.calls:
        # What it has given away may change the answer, so no answer is the last while that runs.
        return replace(turn, silent_once=False), (AppendItems((reply,)), AwaitReports())
    if silent:
        if excused:
            return turn, (Finish(items=(reply,)),)
        if turn.silent_once:
            text = "The model answered twice with no visible text and no tool call."
            return turn, (Finish(Code.EMPTY_MODEL_RESPONSE, text, (reply,)),)
        return _ask_again(replace(turn, silent_once=True), AppendItems((reply,)), INSTRUCTION)
    turn = replace(turn, silent_once=False)
    if reply.calls:
        return turn, (AppendItems((reply,)), RunTools(reply.calls))
    return turn, (Finish(items=(reply,)),)


def _ask_again(
    turn: LoopTurn, append: AppendItems, instruction: str | None = None
) -> tuple[LoopTurn, tuple[Effect, ...]]:
    if turn.requests < turn.requests_max:
        return turn, (append, AskModel(instruction))
    text = f"The turn reached model_requests_max ({turn.requests_max}) without a final answer."
    return turn, (Finish(Code.LIMIT_EXCEEDED, text, append.items),)


def _failed(turn: LoopTurn, fault: ModelFailed) -> tuple[LoopTurn, tuple[Effect, ...]]:
    if fault.too_long and turn.tight < _TIGHT_MAX:
        return replace(turn, tight=2 * turn.tight), (AskModel(INSTRUCTION if turn.silent_once else None),)
    impatient = fault.retry_after_s is not None and fault.retry_after_s > PATIENCE_S
    if fault.transient and turn.faults < len(BACKOFF_S) and not impatient:
        wait = max(BACKOFF_S[turn.faults], fault.retry_after_s or 0.0)
        instruction = INSTRUCTION if turn.silent_once else None
        return replace(turn, faults=turn.faults + 1), (AskModel(instruction, wait),)
    kept = (Reply(fault.partial),) if fault.partial else ()
    return turn, (Finish(fault.code, fault.message, kept),)
