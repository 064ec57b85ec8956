"""Bounds on what one human input may set in motion.

Pure module. The bound is on the whole chain, so two sessions that answer each other stop as surely as a long line does.
"""

from dataclasses import dataclass
from typing import Final

from coterie.core.codes import Code
from coterie.core.ids import ChainId
from coterie.core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Chain:
    """All messages that descend from one human input."""

    id: ChainId
    messages: int
    """Messages so far; completions are not counted."""
    sessions: int
    """Sessions spawned so far."""
    created_at: int
    cost: int = 0
    """Millionths of a US dollar, of turns whose price is known."""
    tokens: int = 0
    """Tokens in and out, of turns whose price is not known."""
    grants: int = 0
    """How often a person has granted as much again."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What one chain may spend before a person is asked."""

    cost_max: float
    """US dollars (`chain_cost_max`)."""
    tokens_max: int
    """Tokens where no price is known (`chain_tokens_max`)."""


MICRO: Final = 1_000_000
"""Millionths in one US dollar."""


def is_spent(chain: Chain, spending: Spending) -> bool:
    """Whether *chain* has used up its money or its tokens, grants included: then its further inputs wait."""
    times = 1 + chain.grants
    return chain.cost >= spending.cost_max * MICRO * times or chain.tokens >= spending.tokens_max * times


def grants_of_release(chain: Chain, spending: Spending) -> int:
    """How many grants a person's release is worth: one, or as many as a chain far beyond its bound needs to go on."""
    behind = [chain.tokens // spending.tokens_max - chain.grants]
    if spending.cost_max > 0:
        behind.append(int(chain.cost / (spending.cost_max * MICRO)) - chain.grants)
    return max(1, *behind)


def hops_of_prompt(hops_max: int) -> int:
    """The hops of a turn that a person started, so that its sends carry *hops_max*."""
    return hops_max + 1


def hops_of_send(inherited: int, hops_max: int) -> int | Refusal:
    """The hops of a message that a turn with *inherited* hops sends."""
    if inherited - 1 >= 1:
        return inherited - 1
    text = (
        f"This chain of messages has reached its depth: hops_max is {hops_max}. "
        "Answer with what you have; a person's prompt starts a new chain."
    )
    return Refusal(Code.LIMIT_EXCEEDED, text, limit="hops_max", value=hops_max)


def hops_of_completion(original: int) -> int:
    """The hops of the completion of a message with *original* hops; a completion is never refused."""
    return max(0, original - 1)


def admit_message(chain: Chain, messages_max: int) -> Refusal | None:
    """Why *chain* may not have one message more."""
    if chain.messages < messages_max:
        return None
    text = f"This chain has its {messages_max} messages (chain_messages_max). A person's prompt starts a new chain."
    return Refusal(Code.LIMIT_EXCEEDED, text, limit="chain_messages_max", value=messages_max)


def admit_session(chain: Chain, sessions_max: int) -> Refusal | None:
    """Why *chain* may not spawn one session more."""
    if chain.sessions < sessions_max:
        return None
    text = f"This chain has spawned its {sessions_max} sessions (chain_sessions_max). Use one that is there."
    return Refusal(Code.LIMIT_EXCEEDED, text, limit="chain_sessions_max", value=sessions_max)
