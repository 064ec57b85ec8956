"""A message between two sessions, and what the host tells its sender when it has settled.

Pure module.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.states import MessageState
from coterie.core.text import head_and_tail

EXCERPT_CHARS_MAX: Final = 2000
"""Code points of the result that a completion quotes; `collaboration.result` has the rest."""


class Kind(StrEnum):
    """What a message is for."""

    TASK = "task"
    MESSAGE = "message"
    COMPLETION = "completion"


class Via(StrEnum):
    """Who spoke for the source session, where it was not its own turn."""

    PERSON = "person"


class Joined(StrEnum):
    """How a message came into a turn; it does so once (I2)."""

    CLAIMED = "claimed"
    """The turn was created for it."""
    ACCEPTED = "accepted"
    """The running turn took it in between two model requests."""
    ABSORBED = "absorbed"
    """The running turn had read what it says."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the ledger (ADR 0239). Titles are those of the time of sending."""

    id: MessageId
    chain_id: ChainId
    source_session_id: SessionId
    source_title: str
    target_session_id: SessionId
    target_title: str
    kind: Kind
    content: str
    state: MessageState
    notify: bool
    """Whether its settling writes a completion to the source."""
    hops: int
    """What remains of the chain's depth behind this message."""
    ceiling: str
    """Highest permission that the message may cause to be used."""
    created_at: int
    """Epoch milliseconds."""
    updated_at: int
    turn_id: TurnId | None = None
    """The turn that it has joined."""
    joined: Joined | None = None
    source_turn_id: TurnId | None = None
    """The turn that sent it; None when a person did."""
    via: Via | None = None
    reply_to: MessageId | None = None
    result: str | None = None
    truncated: bool = False
    error: str | None = None
    retry_of: MessageId | None = None
    """The message that a person has repeated with this one."""
    expires_at: int | None = None
    """When it is no longer worth starting, in epoch milliseconds."""


class Deliver(StrEnum):
    """When a message reaches its target."""

    NEXT_TURN = "next_turn"
    CURRENT_TURN = "current_turn"
    """In the running turn, if the target's session lets it."""


def completion_content(message: Message, change: Mapping[str, object] | None = None) -> str:
    """The JSON text that tells the sender what became of *message*, which has settled, and what *change* it made."""
    excerpt, shortened = head_and_tail(message.result or "", EXCERPT_CHARS_MAX)
    body: dict[str, object] = {
        "workerSessionId": message.target_session_id,
        "messageId": message.id,
        "turnId": message.turn_id,
        "status": message.state.value,
        "result": excerpt or None,
        "truncated": shortened or message.truncated or None,
        "error": message.error,
        "workspace": change,
    }
    return json.dumps({key: value for key, value in body.items() if value is not None}, ensure_ascii=False)
