"""A chain as it can be drawn: who takes part, what they sent, and how long the turns ran."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Final

from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.sequence import Arrow, visible

TEXT_CHARS_MAX: Final = 240
"""Characters of a message that a picture knows."""
TITLE_CHARS_MAX: Final = 18
"""Characters of a title that stands before a part of an id."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A turn that a message has begun, as far as the rows of a picture tell."""

    session: str
    first: int
    """Row of the message, or a later one if the session had to end another turn before."""
    last: int
    """Row of the completion, or of what was sent last while the turn ran."""
    state: str
    runs: bool
    """It has not ended."""
    follows: bool
    """Another turn of the session has ended in its first row."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What the pictures of a chain show."""

    id: str
    people: tuple[tuple[str, str], ...]
    """Id and title of each session, in the order in which they appear."""
    arrows: tuple[Arrow, ...]
    bars: tuple[Bar, ...]


def chain_of(answer: Answer) -> Chain:
    """Read the answer of `collaboration.chain` with the messages of all its pages."""
    messages: list[Answer] = answer["messages"]
    return Chain(answer["chainId"], _people(messages), _arrows(messages), _bars(messages))


def _people(messages: Sequence[Answer]) -> tuple[tuple[str, str], ...]:
    # A session keeps its first place and takes its newest title.
    titles: dict[str, str] = {}
    for message in messages:
        for end in ("source", "target"):
            titles[message[f"{end}SessionId"]] = visible(message[f"{end}Title"])
    uses = Counter(titles.values())
    return tuple(
        (id_, title if title and uses[title] == 1 else f"{title[:TITLE_CHARS_MAX]} {id_[-4:]}".strip())
        for id_, title in titles.items()
    )


def _arrows(messages: Sequence[Answer]) -> tuple[Arrow, ...]:
    by_id = {message["id"]: message for message in messages}
    arrows = list[Arrow]()
    for message in messages:
        answered = by_id.get(message.get("replyToMessageId", ""), {})
        completion = message["kind"] == "completion"
        label, text = _outcome(answered) if completion else _request(message)
        arrows.append(
            Arrow(
                message["sourceSessionId"],
                message["targetSessionId"],
                label,
                visible(message["status"]),
                visible(text[:TEXT_CHARS_MAX]),
                answers=visible(answered.get("status", "")) if completion else None,
                at=_elapsed(messages[0]["createdAt"], message["createdAt"]),
            )
        )
    return tuple(arrows)


def _request(message: Answer) -> tuple[str, str]:
    return f"{message['kind']} by a person" if message.get("via") == "person" else message["kind"], message["content"]


def _outcome(answered: Answer) -> tuple[str, str]:
    if not answered:
        return "completion", ""
    return f"{answered['kind']} {answered['status']}", answered.get("error") or answered.get("result") or ""


def _elapsed(start: str, end: str) -> str:
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def _bars(messages: Sequence[Answer]) -> tuple[Bar, ...]:
    turns: dict[tuple[str, str], list[int]] = {}
    for row, message in enumerate(messages):
        if message.get("turnId"):
            turns.setdefault((message["targetSessionId"], message["turnId"]), []).append(row)
    answered = {one.get("replyToMessageId"): row for row, one in enumerate(messages) if one["kind"] == "completion"}
    ends = sorted(
        (
            max(answered.get(messages[row]["id"], _row_of_end(messages, row)) for row in joined),
            max(messages[row]["updatedAt"] for row in joined),
            joined[0],
        )
        for joined in turns.values()
    )
    bars = list[Bar]()
    free: dict[str, int] = {}
    # A session runs one turn at a time, so the order of the ends is that of the turns.
    for last, _, row in ends:
        session_id, status = messages[row]["targetSessionId"], visible(messages[row]["status"])
        ended = free.get(session_id, -1)
        first = max(row, ended)
        bars.append(Bar(session_id, first, last, status, runs=status == "running", follows=first == ended))
        free[session_id] = last
    return tuple(bars)


def _row_of_end(messages: Sequence[Answer], row: int) -> int:
    """The last row that was sent while the turn of the message in *row* ran."""
    if messages[row]["status"] == "running":
        return len(messages) - 1
    return max(row, bisect_left(messages, messages[row]["updatedAt"], key=itemgetter("createdAt")) - 1)
