"""What a vendor can do wrong, where it can meet a turn, and what must come of it.

Declared once: `test_fault_matrix.py` makes each fault at each place on each wire, and the page
`docs/reference/provider_faults.md` is written from the same table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from coterie.core.codes import Code

SAYS: Final = "All is well."
"""What the model says when nothing is wrong."""
BACKOFF: Final = (0.5, 1.0, 2.0)
AWAY: Final = "away"
"""In place of a reply: nobody listens."""
_GLOB: Final = "{tool: glob, arguments: {pattern: '*'}}"


@dataclass(frozen=True)
class Place:
    """Where in a turn the fault meets the host."""

    title: str
    rounds: int = 0
    """Requests that have gone well before it, in the same turn."""
    delegated: bool = False
    """It meets a subagent, for which the turn waits."""


PLACES: Final = (
    Place("First request of a turn"),
    Place("After a tool has run", rounds=1),
    Place("Inside a delegation", rounds=1, delegated=True),
)


@dataclass(frozen=True)
class Fault:
    """One fault, and how a turn ends that meets nothing else."""

    title: str
    reply: str
    """The reply of a script that makes it."""
    code: Code | None = None
    """Why the turn fails; None is completed."""
    waits: tuple[float, ...] = ()
    """Seconds before each retry."""
    kept: str = ""
    """The text that had arrived and stays in the transcript."""
    told: str = ""
    """What its error says, or the result of a call that cannot be run."""
    times: int | None = None
    """How often it comes; None is as often as it is asked."""
    more: int = 0
    """Requests that follow and are no retries."""
    cancelled: bool = False
    """A person interrupts the turn when the first words are there."""

    @property
    def requests(self) -> int:
        """How often the model is asked from the fault on."""
        return 1 + len(self.waits) + self.more

    def outcome(self, place: Place) -> str:
        """How the turn ends, or the subagent, for people."""
        if self.cancelled:
            return "stopped with its turn" if place.delegated else "cancelled; what it used is unknown"
        if self.code is None:
            return "completed"
        return f"fails: `{self.code.value}`" + (", text kept" if self.kept and not place.delegated else "")


def _passing(title: str, reply: str, code: Code, *, waits: tuple[float, ...] = BACKOFF, kept: str = "") -> Fault:
    return Fault(title, reply, code, waits=waits, kept=kept)


def _status(status: int, more: str = "", says: str = "") -> str:
    return f"error: {{status: {status}{more}{f', message: {says!r}' if says else ''}}}"


FAULTS: Final = (
    _passing("Connection refused", AWAY, Code.PROVIDER_ERROR),
    _passing("Connection cut before the first byte", "drop: true", Code.STREAM_INTERRUPTED),
    _passing(
        "Stream cut in the middle of text",
        "text: [one, two, three], cut_after: 2",
        Code.STREAM_INTERRUPTED,
        kept="onetwo",
    ),
    _passing(
        "Stream cut in the middle of a tool's arguments",
        f"text: I look., calls: [{_GLOB}], cut_after: 2",
        Code.STREAM_INTERRUPTED,
        kept="I look.",
    ),
    _passing(
        "Stream ends without a finish reason",
        "text: [one, two], no_finish: true",
        Code.STREAM_INTERRUPTED,
        kept="onetwo",
    ),
    Fault("401", _status(401), Code.PROVIDER_AUTH, told="wants a key"),
    Fault("403", _status(403), Code.PROVIDER_AUTH, told="wants a key"),
    Fault("404: no such model", _status(404, says="No such model."), Code.PROVIDER_ERROR, told="No such model."),
    _passing("408", _status(408), Code.PROVIDER_ERROR),
    _passing("429, `Retry-After: 1`", _status(429, ", retry_after: 1"), Code.PROVIDER_ERROR, waits=(1.0, 1.0, 2.0)),
    Fault("429, `Retry-After: 120`", _status(429, ", retry_after: 120"), Code.PROVIDER_ERROR, told="HTTP 429"),
    _passing("429 without `Retry-After`", _status(429), Code.PROVIDER_ERROR),
    _passing("500", _status(500), Code.PROVIDER_ERROR),
    _passing("503", _status(503), Code.PROVIDER_ERROR),
    Fault("Empty reply, once", "silence: true", times=1, more=1),
    Fault("Empty reply, twice", "silence: true", Code.EMPTY_MODEL_RESPONSE, more=1, told="answered twice"),
    Fault(
        "Arguments that are cut JSON",
        """calls: [{tool: glob, arguments_text: '{"pattern": '}]""",
        more=1,
        told="not one JSON object",
    ),
    Fault("Unknown tool", "calls: [{tool: serch, arguments: {}}]", more=1, told="There is no tool 'serch'."),
    Fault(
        "Answer withheld by the vendor's filter",
        "silence: true, finish: content_filter",
        Code.PROVIDER_ERROR,
        told="withheld the answer",
    ),
    Fault(
        "400: context too long",
        _status(400, says="The context is longer than 8192 tokens."),
        Code.PROVIDER_ERROR,
        told="longer than 8192 tokens",
    ),
    Fault("Interrupted in the middle of a stream", "text: [one, two], delay_ms: 600000", cancelled=True),
)


def page() -> Iterator[str]:
    """The page of the documentation."""
    yield "# When a provider fails"
    yield (
        "What a turn does when the model's vendor, or the way to it, fails in one way and goes on failing in it. Each "
        "line is made over real HTTP at each place, on `openai-chat`, `openai-responses` and `anthropic`, by "
        "`tests/runtime/engine/test_fault_matrix.py`; this page is written from the table of that test."
    )
    head = ["Fault", *(place.title for place in PLACES), "Asked", "Seconds before each retry"]
    rows = [_row([fault.title, *map(fault.outcome, PLACES), *_effort(fault)]) for fault in FAULTS]
    yield "\n".join([_row(head), f"|{'---|' * len(head)}", *rows])
    yield (
        "*Text kept* means that what had arrived stays in the transcript; it is no result. A fault that passes before "
        "its last retry leaves no trace. Whatever the end, the next prompt of the session runs, and no request carries "
        "an assistant message with neither text nor a call. To each wait comes up to a fifth, so that clients that "
        "failed together do not come back together; a `Retry-After` above 60 seconds fails at once. A call that cannot "
        "be run is answered to the model, which goes on. Inside a delegation a fault ends the subagent alone: the "
        "report names it, and the turn goes on."
    )


def _effort(fault: Fault) -> tuple[str, str]:
    asked = "once" if fault.requests == 1 else f"{fault.requests} times"
    return asked, ", ".join(f"{wait:g}" for wait in fault.waits)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
