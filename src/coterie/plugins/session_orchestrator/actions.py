"""What `session_task` can do: each action once, with what it takes and what it asks of the host.

An action sees its own call only. What it knows of other sessions it reads anew each time, and nothing of it is kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from coterie.core.codes import Code
from coterie.core.errors import HostError, InvalidArgumentError, NotFoundError, RefusedError
from coterie.core.ids import MessageId
from coterie.core.ledger.message import Kind
from coterie.core.ledger.states import SETTLED
from coterie.core.refusal import Refusal
from coterie.core.text import head_and_tail
from coterie.operations.projection import OUTCOME_CHARS_MAX
from coterie.plugins.gateway import Gateway
from coterie.plugins.session_orchestrator.arguments import Form, within
from coterie.ports.tool import Invocation

Row: TypeAlias = dict[str, Any]

RESULTS_CHARS_MAX: Final = 20_000
"""Characters that the results of one wait share."""
SUPERVISED_MAX: Final = 4
"""Sessions that one `supervise` writes to."""
_CONTENT_CHARS_MAX: Final = 500
"""Characters of a message's own content beside its result."""
_BRIEF_CHARS_MAX: Final = 8_000
"""Characters that the texts of several summaries share."""
_BRIEF: Final = (
    "sessionId",
    "title",
    "status",
    "held",
    "waiting",
    "modelKey",
    "createdBySession",
    "currentTask",
    "lastDelivery",
    "lastSentMessageId",
    "acceptanceStatus",
)
"""What a summary keeps beside others: what the rest is about, one can ask for alone."""
_CONTENT: Final = {"task": "content", "message": "content"}
"""What operations call the words of a task or message."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model is shown."""

    body: Row
    tells: tuple[MessageId, ...] = ()
    """The messages whose settled outcome it tells; the host passes over those that other sessions have sent."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: for whom, with what, and the way to the host."""

    gateway: Gateway
    invocation: Invocation
    given: Mapping[str, Any]

    async def ask(self, operation: str, **params: Any) -> Row:
        """Perform an operation as the session that calls."""
        named = {_CONTENT.get(name, name): value for name, value in params.items() if value is not None}
        return await self.gateway.call(self.invocation, operation, named)


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the table."""

    perform: Callable[[Call], Awaitable[Answer]]
    signature: str
    """Its parameters; a question mark follows what may be left out."""
    says: str
    """What the model is told that it does."""
    refuses: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def form(self) -> Form:
        """What it takes."""
        return Form.of(self.signature, self.refuses)


def fault(error: HostError) -> Row:
    """A fault as a model reads it."""
    return {"code": error.code.value, "message": str(error), **error.detail()}


def _forward(operation: str) -> Callable[[Call], Awaitable[Answer]]:
    """An action that is one operation."""

    async def perform(call: Call) -> Answer:
        return Answer(await call.ask(operation, **call.given))

    return perform


async def _spawn(call: Call) -> Answer:
    return Answer({"accepted": True, **await call.ask("collaboration.spawn", **call.given)})


async def _supervise(call: Call) -> Answer:
    said = dict(call.given)
    ids = within(said.pop("sessionIds"), "sessionIds", "supervised_max", SUPERVISED_MAX)
    receipts, failures = await _each(ids, lambda one: call.ask("collaboration.send", sessionId=one, **said))
    return Answer({"accepted": not failures, "workers": receipts, "failures": failures})


async def _status(call: Call) -> Answer:
    ids = call.given["sessionIds"] if "sessionIds" in call.given else await _recent(call)
    if len(ids) == 1:
        rows, failures = [await _summary(call, ids[0])], []
    else:
        rows, failures = await _each(ids, lambda one: _summary(call, one))
        rows = [{name: row[name] for name in _BRIEF if name in row} for row in rows]
    outcomes = [row[name] for row in rows for name in ("result", "lastDelivery") if name in row]
    for outcome in outcomes:
        if len(outcome.get("text", "")) >= OUTCOME_CHARS_MAX:
            outcome["truncated"] = True
    if len(ids) > 1:
        _fit([*outcomes, *(row["currentTask"] for row in rows if "currentTask" in row)], _BRIEF_CHARS_MAX)
    tells = [MessageId(outcome["messageId"]) for outcome in outcomes if not outcome.get("truncated")]
    return Answer({"sessions": rows, "failures": failures}, tuple(tells))


async def _wait(call: Call) -> Answer:
    given = dict(call.given)
    if len([name for name in ("sessionIds", "messageIds", "cursor") if name in given]) != 1:
        raise InvalidArgumentError("wait needs one of sessionIds, messageIds and cursor.")
    ids: list[str] = given.pop("sessionIds", [])
    which = {name: given.pop(name) for name in ("messageId", "turnId") if name in given}
    if which and len(ids) != 1:
        raise InvalidArgumentError("messageId and turnId choose within one session: give them with one of sessionIds.")
    # What is waited for is fixed here, so that nothing that is sent in the meantime can take its place.
    pins = await asyncio.gather(*(_pin(call, one, **which) for one in ids))
    unsent = [one for one, pin in zip(ids, pins, strict=True) if pin is None]
    if ids:
        given["messageIds"] = [pin["id"] for pin in pins if pin is not None]
    answer = await _waited(call, given, ready=bool(unsent))
    if unsent:
        answer["nothingSentTo"] = unsent
    _fit(answer["messages"], RESULTS_CHARS_MAX)
    return Answer(answer, _settled(answer["messages"]))


async def _waited(call: Call, given: Row, *, ready: bool) -> Row:
    """Sleep until messages have settled.

    Args:
        call: Who waits.
        given: What for, and how long.
        ready: Whether a session was named that was sent nothing: it counts as settled.
    """
    if given.get("messageIds") == []:
        return {"timedOut": False, "messages": []}
    if not ready or given.get("mode") != "any":
        return await call.ask("collaboration.wait", **given)
    seen = await call.ask("collaboration.wait", **{**given, "timeoutMs": 0})
    return {"timedOut": False, "messages": seen["messages"]}


async def _result(call: Call) -> Answer:
    answer = await call.ask("collaboration.result", **call.given)
    message = answer.get("message")
    if message is None:
        return Answer(answer)
    message["content"], _ = head_and_tail(message["content"], _CONTENT_CHARS_MAX)
    return Answer(answer, _settled([message]))


async def _accept(call: Call) -> Answer:
    session_id = call.given["sessionId"]
    pin = await _pin(call, session_id, messageId=call.given.get("messageId"))
    if pin is None:
        text = f"You have sent nothing to {session_id}, so there is no result to accept."
        raise RefusedError(Refusal(Code.WORKER_NOT_READY, text))
    return Answer(await call.ask("collaboration.accept", messageId=pin["id"], note=call.given.get("note")))


async def _models(call: Call) -> Answer:
    return Answer({"defaultModel": None, **await call.ask("models.list")})


async def _each(ids: Iterable[str], ask: Callable[[str], Awaitable[Row]]) -> tuple[list[Row], list[Row]]:
    """Ask for all ids at once; returns the answers, and the failures of the others."""

    async def one(session_id: str) -> tuple[Row | None, Row]:
        try:
            return await ask(session_id), {}
        except HostError as error:
            return None, {"sessionId": session_id, **fault(error)}

    found = await asyncio.gather(*map(one, ids))
    return [row for row, _ in found if row is not None], [failure for row, failure in found if row is None]


async def _recent(call: Call) -> list[str]:
    """The sessions that this one has exchanged messages with lately, or has spawned; those that are there still."""
    own = await call.ask("collaboration.status", sessionId=call.invocation.session_id)
    known = [one["peer"] for one in own["recentExchanges"]] + own.get("createdSessions", [])
    return list(dict.fromkeys(one["sessionId"] for one in known if one.get("available", True)))


async def _summary(call: Call, session_id: str) -> Row:
    """The status of a session, and whether the last that this one sent there was accepted."""
    row = await call.ask("collaboration.status", sessionId=session_id)
    sent = await _pin(call, session_id)
    if sent is None:
        return row
    read = await call.ask("collaboration.message", messageId=sent["id"])
    return {**row, "lastSentMessageId": sent["id"], "acceptanceStatus": read["acceptanceStatus"]}


async def _pin(call: Call, session_id: str, **which: Any) -> Row | None:
    """The message that is chosen, else the newest that this session sent there; None if it has sent nothing.

    Raises:
        NotFoundError: Nothing of this session's is what was chosen.
    """
    found = (await call.ask("collaboration.result", sessionId=session_id, **which)).get("message")
    if any(which.values()):
        if found is None:
            raise NotFoundError("message of turn", which["turnId"])
        return found
    # A completion is the host's word, and what others sent is not for this session to wait for.
    is_own = found and found["sourceSessionId"] == call.invocation.session_id and found["kind"] != Kind.COMPLETION
    return found if is_own else None


def _settled(rows: Iterable[Row]) -> tuple[MessageId, ...]:
    return tuple(MessageId(row["id"]) for row in rows if row["status"] in SETTLED)


def _fit(rows: Sequence[Row], chars_max: int) -> None:
    """Shorten the texts of *rows* to *chars_max* in all, the longest first; `result` has each whole."""
    cells = [(row, name) for row in rows for name in ("text", "result", "error") if row.get(name)]
    cells.sort(key=lambda cell: len(cell[0][cell[1]]))
    for done, (row, name) in enumerate(cells):
        row[name], shortened = head_and_tail(row[name], chars_max // (len(cells) - done))
        chars_max -= len(row[name])
        if shortened:
            row["truncated"] = True


ACTIONS: Final[Mapping[str, Action]] = {
    "spawn": Action(
        _spawn,
        "task, title?, model?, workspace?, notifyOnCompletion?, idempotencyKey?",
        "makes a session that works on the task in this project",
    ),
    "send": Action(
        _forward("collaboration.send"),
        "sessionId, message, kind?, deliver?, expiresAt?, notifyOnCompletion?, idempotencyKey?",
        "writes to a session that is there",
        {"model": "a session keeps its model; leave it out, or spawn a session with it"},
    ),
    "supervise": Action(
        _supervise,
        "sessionIds, message, kind?",
        f"writes the same to at most {SUPERVISED_MAX} sessions, and tells which could not be reached",
        {"idempotencyKey": "one key stands for one message; send one by one to repeat safely"},
    ),
    "status": Action(
        _status, "sessionIds?", "tells what sessions do, by default those that you have spawned or written with lately"
    ),
    "wait": Action(
        _wait,
        "sessionIds?, messageIds?, cursor?, mode?, timeoutMs?, messageId?, turnId?",
        "sleeps until what you sent (to a session: your last message) has settled, and returns the results",
    ),
    "result": Action(_result, "sessionId, messageId?, turnId?", "reads the outcome of one message"),
    "accept": Action(_accept, "sessionId, messageId?, note?", "notes that a result is good"),
    "cancel": Action(
        _forward("collaboration.cancel"), "sessionId, messageId?", "stops what you sent, while the session stays"
    ),
    "list": Action(_forward("collaboration.list"), "cursor?, limit?", "shows all sessions"),
    "models": Action(_models, "", "shows the models that a spawned session can have"),
}
"""The actions by name, in the order in which the model reads them."""
