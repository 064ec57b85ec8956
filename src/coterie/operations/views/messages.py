"""Messages between sessions, their chains, and what the verbs for them answer."""

from typing import Literal

from coterie.core.chain import MICRO, Chain
from coterie.core.ledger.message import Kind, Message
from coterie.core.limits import Limits
from coterie.core.text import head_and_tail
from coterie.operations.views.view import View, iso


class MessageView(View):
    """A message of the ledger."""

    id: str
    kind: str
    status: str
    source_session_id: str
    source_title: str
    target_session_id: str
    target_title: str
    turn_id: str | None
    reply_to_message_id: str | None
    content: str
    result: str | None
    truncated: bool | None
    error: str | None
    remaining_hops: int
    ceiling: str
    via: str | None
    retry_of_message_id: str | None
    expires_at: str | None
    created_at: str
    updated_at: str
    shortened: bool | None
    """In lists: content or result is longer; `collaboration.message` has both."""

    @classmethod
    def of(cls, message: Message, chars_max: int | None = None) -> "MessageView":
        """Show a message; at most *chars_max* code points of each text, if given. A completion has a bound anyway."""
        content, result, shortened = message.content, message.result, False
        if chars_max is not None and message.kind is not Kind.COMPLETION:
            content, cut_content = head_and_tail(content, chars_max)
            result, cut_result = head_and_tail(result, chars_max) if result is not None else (None, False)
            shortened = cut_content or cut_result
        return cls(
            id=message.id,
            kind=message.kind.value,
            status=message.state.value,
            source_session_id=message.source_session_id,
            source_title=message.source_title,
            target_session_id=message.target_session_id,
            target_title=message.target_title,
            turn_id=message.turn_id,
            reply_to_message_id=message.reply_to,
            content=content,
            result=result,
            truncated=message.truncated or None,
            error=message.error,
            remaining_hops=message.hops,
            ceiling=message.ceiling,
            via=message.via.value if message.via else None,
            retry_of_message_id=message.retry_of,
            expires_at=iso(message.expires_at) if message.expires_at is not None else None,
            created_at=iso(message.created_at),
            updated_at=iso(message.updated_at),
            shortened=shortened or None,
        )


class OneMessage(View):
    """A message, and what its sender noted about its result."""

    message: MessageView
    acceptance_status: Literal["pending", "accepted"]
    note: str | None


class SendReceipt(View):
    """What the sender of a message is told."""

    message_id: str
    session_id: str
    status: str
    position: int | None
    turn_id: str | None
    remaining_hops: int
    ceiling: str
    replayed: bool
    held: bool | None
    waiting: str | None = None
    """What it waits for besides its turn: `budget`, `policy` or `across_projects`."""
    deliver: str | None = None
    """When it reaches its target; `next_turn` where `current_turn` was asked for and is not possible."""
    requested_model: str | None = None
    model_selection: str | None = None
    uncommitted_carried: bool | None = None
    """False where the new session has a worktree: changes of its creator that are not committed are not in it."""


class ResultView(View):
    """An outcome, if there is one yet."""

    ready: bool
    message: MessageView | None


class MessageState(View):
    """Where a message is."""

    id: str
    status: str
    session_id: str
    turn_id: str | None
    result: str | None
    truncated: bool | None
    error: str | None


class Waited(View):
    """What was seen last; running out of time is a normal answer."""

    timed_out: bool
    messages: list[MessageState]
    status: str | None = None
    cursor: str | None = None
    """When the time ran out: goes on with the same wait in the next call."""


class CancelledView(View):
    """What was stopped; sessions and histories stay."""

    cancelled: Literal[True]
    session_retained: Literal[True]
    message_ids: list[str]
    running_turn_ids: list[str]
    replayed: bool | None = None


class AcceptedView(View):
    """A result was accepted."""

    accepted: Literal[True]
    message_id: str
    replayed: bool | None = None


class Purse(View):
    """What one chain has used, and what it may use."""

    messages: int
    messages_max: int
    sessions: int
    sessions_max: int
    cost_usd: float
    """Of turns whose price is known."""
    cost_max_usd: float
    """Grants of a person included."""
    tokens: int
    """Of turns whose price is not known."""
    tokens_max: int

    @classmethod
    def of(cls, chain: Chain, limits: Limits) -> "Purse":
        """Show what *chain* has used."""
        times = 1 + chain.grants
        return cls(
            messages=chain.messages,
            messages_max=limits.chain_messages_max,
            sessions=chain.sessions,
            sessions_max=limits.chain_sessions_max,
            cost_usd=chain.cost / MICRO,
            cost_max_usd=limits.chain_cost_max * times,
            tokens=chain.tokens,
            tokens_max=limits.chain_tokens_max * times,
        )


class ChainView(View):
    """A page of a chain, completions included, and what it has used."""

    chain_id: str
    messages: list[MessageView]
    budget: Purse
    cursor: str | None
