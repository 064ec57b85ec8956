"""What there is to compare when all is quiet: the rows of the ledger, what clients were told, what the model saw."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from tests.kills.plan import Entry
from tests.kills.stores import LedgerStore

_MESSAGES: Final = (
    "SELECT id, source_session_id, target_session_id, kind, content, state, notify, turn_id, joined, reply_to "
    "FROM messages ORDER BY number"
)
_TURNS: Final = "SELECT id, session_id, input_id, message_id, state, epoch, fenced FROM turns ORDER BY number"
_INPUTS: Final = "SELECT id FROM inputs"
_ITEMS: Final = "SELECT kind, body FROM items WHERE kind IN ('session', 'person')"
_SUBJECT: Final = re.compile(r'"messageId": "(msg_\w+)"')


@dataclass(frozen=True)
class Message:
    """A row of the ledger."""

    id: str
    source: str
    target: str
    kind: str
    content: str
    state: str
    notify: int
    turn_id: str | None
    joined: str | None
    reply_to: str | None


@dataclass(frozen=True)
class Turn:
    """A row of the turns."""

    id: str
    session_id: str
    input_id: str
    message_id: str | None
    state: str
    epoch: int
    fenced: int
    """Whether somebody has cancelled it."""


@dataclass(frozen=True)
class Rows:
    """The ledger at one moment."""

    messages: list[Message]
    turns: list[Turn]
    inputs: list[str]
    """What waits."""
    delivered: list[str]
    """The message of each item that came from another session."""
    prompts: list[str]
    """The text of each item that came from a person."""


@dataclass(frozen=True)
class Answer:
    """What a client was told."""

    entry: Entry
    result: dict[str, Any] | None
    refused: str | None
    repeats: bool = False
    """Whether the client had an answer to this entry already."""


@dataclass(frozen=True)
class Asked:
    """A request that reached the model."""

    epoch: int
    """Of the host that ran when it came."""
    subject: str
    """The message that the turn is about, or the words of a person."""
    step: int
    """Messages behind that: 0 for a turn's first request."""


def read(store: LedgerStore) -> Rows:
    """Read all that is compared."""
    items = [(kind, json.loads(body)) for kind, body in store.rows(_ITEMS)]
    return Rows(
        [Message(*row) for row in store.rows(_MESSAGES)],
        [Turn(*row) for row in store.rows(_TURNS)],
        [one for (one,) in store.rows(_INPUTS)],
        [body["origin"]["message_id"] for kind, body in items if kind == "session"],
        [body["text"] for kind, body in items if kind == "person"],
    )


def asked(body: dict[str, Any], epoch: int) -> Asked:
    """What a model request was about."""
    messages: list[dict[str, Any]] = body["messages"]
    last = max(number for number, one in enumerate(messages) if one["role"] == "user")
    content = messages[last]["content"]
    text = content if isinstance(content, str) else "".join(one["text"] for one in content)
    found = _SUBJECT.search(text)
    return Asked(epoch, found[1] if found else text, len(messages) - 1 - last)
