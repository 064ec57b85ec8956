"""Holds the ledger against what clients were told and what the model saw: pure functions that return faults."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from tests.kills.books import Answer, Asked, Message, Rows

T = TypeVar("T", bound=Hashable)

SETTLED: Final = frozenset({"completed", "failed", "cancelled", "interrupted"})
EXPECTED: Final = frozenset({"AGENT_BUSY", "QUEUE_FULL"})
"""Refusals that a load like this one meets."""


class Kind(StrEnum):
    """What kind of promise is broken."""

    LOST = "lost"
    DOUBLED = "doubled"
    REPLAYED = "replayed"
    """A turn of an earlier host was run again."""
    BEGUN = "begun"
    """Something began by a restart itself."""
    UNSOUND = "unsound"
    """The ledger's own check found something, or a request was refused that should not be."""


@dataclass(frozen=True)
class Fault:
    """A broken promise."""

    kind: Kind
    text: str


def compare(rows: Rows, answers: list[Answer], seen: list[Asked]) -> list[Fault]:
    """Return every broken promise, when all is quiet."""
    return [
        *_answered(rows, answers),
        *_keys(rows, answers),
        *_settled(rows),
        *_completions(rows),
        *_turns(rows),
        *_deliveries(rows),
        *_requests(rows, answers, seen),
    ]


def restarted(dead: Rows, alive: Rows, probe: str) -> Iterator[Fault]:
    """Compare the rows that a killed host left with those of the next one before anybody has released anything.

    Args:
        dead: Read when no host ran.
        alive: Read when the next one has answered.
        probe: The session in which somebody has asked for a turn since.
    """
    known = {one.id: one for one in dead.turns}
    for turn in alive.turns:
        if turn.id not in known and turn.session_id != probe:
            yield Fault(Kind.BEGUN, f"turn {turn.id} of input {turn.input_id} began before the release")
    states = {one.id: one.state for one in alive.turns}
    for turn in dead.turns:
        wanted = turn.state if turn.state != "running" else "cancelled" if turn.fenced else "interrupted"
        if states.get(turn.id) != wanted:
            text = f"turn {turn.id} was {turn.state} when the host died, and is {states.get(turn.id)}, not {wanted}"
            yield Fault(Kind.REPLAYED, text)
    settled = {one.id: one.state for one in alive.messages}
    for message in dead.messages:
        found = settled.get(message.id)
        if found is None or (message.state in SETTLED and found != message.state):
            yield Fault(Kind.LOST, f"message {message.id} was {message.state} when the host died, and is {found}")


def told(answers: list[Answer], method: str, field: str) -> Mapping[str, set[str]]:
    """What clients were told for each key of a method."""
    found = dict[str, set[str]]()
    for one in answers:
        if one.result is not None and one.entry.get("method") == method:
            found.setdefault(one.entry["params"]["idempotencyKey"], set()).add(one.result[field])
    return found


def _answered(rows: Rows, answers: list[Answer]) -> Iterator[Fault]:
    """Whatever was accepted is there, as it was sent; what was cancelled is; and nothing else was refused."""
    messages = {one.id: one for one in rows.messages}
    turns = Counter(one.input_id for one in rows.turns)
    for one in answers:
        if one.result is None:
            if one.refused not in EXPECTED:
                yield Fault(Kind.UNSOUND, f"{one.refused} for {one.entry}")
        elif "cancels" in one.entry:
            for message_id in one.result["messageIds"]:
                if message_id not in messages or messages[message_id].state != "cancelled":
                    yield Fault(Kind.LOST, f"the cancel of {message_id}: it is {messages.get(message_id)}")
        elif one.entry["method"] == "session.prompt":
            if not turns[one.result["inputId"]]:
                yield Fault(Kind.LOST, f"prompt {one.result['inputId']} was accepted and had no turn: {one.entry}")
        elif not _is_as_sent(messages.get(one.result["messageId"]), one):
            found = messages.get(one.result["messageId"])
            yield Fault(Kind.LOST, f"{one.result['messageId']} was accepted and is {found}: {one.entry}")


def _is_as_sent(message: Message | None, answer: Answer) -> bool:
    if message is None:
        return False
    sent = answer.entry["params"]
    found = (message.source, message.target, message.kind, message.content)
    return found == (sent["asSessionId"], sent["sessionId"], sent.get("kind", "message"), sent["content"])


def _keys(rows: Rows, answers: list[Answer]) -> Iterator[Fault]:
    """One key, one message; the contents of all keys differ."""
    for method, field in (("collaboration.send", "messageId"), ("session.prompt", "inputId")):
        for key, ids in told(answers, method, field).items():
            if len(ids) > 1:
                yield Fault(Kind.DOUBLED, f"key {key} was answered with {sorted(ids)}")
    for content in _twice(one.content for one in rows.messages if one.reply_to is None):
        yield Fault(Kind.DOUBLED, f"there are several messages {content!r}")
    for text in _twice(rows.prompts):
        yield Fault(Kind.DOUBLED, f"there are several prompts {text!r}")


def _settled(rows: Rows) -> Iterator[Fault]:
    for message in rows.messages:
        if message.state not in SETTLED:
            yield Fault(Kind.LOST, f"message {message.id} has not settled: it is {message.state}")
    for turn in rows.turns:
        if turn.state not in SETTLED:
            yield Fault(Kind.LOST, f"turn {turn.id} has not ended")
    for input_id in rows.inputs:
        yield Fault(Kind.LOST, f"input {input_id} still waits")


def _completions(rows: Rows) -> Iterator[Fault]:
    """Exactly one for each message that asked for it, and to its sender."""
    replies = dict[str, list[Message]]()
    for one in rows.messages:
        if one.reply_to is not None:
            replies.setdefault(one.reply_to, []).append(one)
    for message in rows.messages:
        found = replies.pop(message.id, [])
        if len(found) > message.notify:
            yield Fault(Kind.DOUBLED, f"message {message.id} has {len(found)} completions for {message.notify}")
        if message.notify and not found:
            yield Fault(Kind.LOST, f"the completion of {message.id}, which is {message.state}")
        for one in found:
            if (one.source, one.target) != (message.target, message.source):
                yield Fault(Kind.LOST, f"completion {one.id} of {message.id} went to {one.target}")
    for reply_to in replies:
        yield Fault(Kind.LOST, f"message {reply_to} has a completion and is not there")


def _turns(rows: Rows) -> Iterator[Fault]:
    for input_id in _twice(one.input_id for one in rows.turns):
        yield Fault(Kind.DOUBLED, f"input {input_id} had several turns")
    for message_id in _twice(one.message_id for one in rows.turns if one.message_id):
        yield Fault(Kind.DOUBLED, f"message {message_id} had several turns")


def _deliveries(rows: Rows) -> Iterator[Fault]:
    """A message that has joined a turn stands in the transcript once; one that was cancelled while it waited, never."""
    counted = Counter(rows.delivered)
    for message in rows.messages:
        wanted = {None: 0, "claimed": 1, "accepted": 1}.get(message.joined)
        if wanted is not None and counted[message.id] != wanted:
            kind = Kind.DOUBLED if counted[message.id] > wanted else Kind.LOST
            yield Fault(kind, f"message {message.id} was delivered {counted[message.id]} times, not {wanted}")


def _requests(rows: Rows, answers: list[Answer], seen: list[Asked]) -> Iterator[Fault]:
    """The model was asked once for each step of a turn, by the host to which that turn belongs."""
    epochs = {one.id: one.epoch for one in rows.turns}
    homes = {one.id: epochs.get(one.turn_id or "") for one in rows.messages}
    by_input = {one.input_id: one.epoch for one in rows.turns}
    for one in answers:
        if one.result is not None and one.entry.get("method") == "session.prompt":
            homes[one.entry["params"]["text"]] = by_input.get(one.result["inputId"])
    for one in seen:
        home = homes.get(one.subject)
        if home is not None and home != one.epoch:
            text = f"host {one.epoch} asked the model about {one.subject}, whose turn belongs to host {home}"
            yield Fault(Kind.REPLAYED, text)
    for epoch, subject, step in _twice((one.epoch, one.subject, one.step) for one in seen):
        yield Fault(Kind.DOUBLED, f"host {epoch} asked the model twice for step {step} of {subject}")
    subjects = {one.subject for one in seen}
    for message in rows.messages:
        if message.state == "completed" and message.joined == "claimed" and message.id not in subjects:
            yield Fault(Kind.LOST, f"message {message.id} completed, and the model never saw it")


def _twice(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]
