"""Which messages from other sessions may start work, and which wait for a person first.

Pure module. A completion answers what its receiver has asked for, and a person asks nobody: neither is judged here.
"""

from dataclasses import dataclass
from enum import StrEnum

from coterie.core.codes import Code
from coterie.core.refusal import Refusal


class Inbound(StrEnum):
    """What a session does with tasks and messages of other sessions."""

    ACCEPT = "accept"
    HOLD = "hold"
    """They wait until a person releases them."""
    REFUSE = "refuse"


class Across(StrEnum):
    """What a host does with messages between sessions of different project folders."""

    ASK = "ask"
    """They wait until a person has allowed them, once or for a time."""
    ALLOW = "allow"
    DENY = "deny"


class Waiting(StrEnum):
    """Why one input waits though its session is free; claims pass it by."""

    BUDGET = "budget"
    """Its chain has spent what it may spend."""
    POLICY = "policy"
    """The session holds what other sessions send."""
    ACROSS_PROJECTS = "across_projects"
    """Nobody has allowed this pair of sessions to write across projects."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a message has to pass."""

    inbound: Inbound
    """The target's policy."""
    across: Across | None
    """The host's rule, if the two sessions have different project folders and no grant; None is nothing to ask."""


def admit(gate: Gate, target: str) -> Waiting | Refusal | None:
    """Return why a message may not start yet, or why it may not even wait; None lets it through.

    Args:
        gate: The rules that apply.
        target: Title of the session, for the refusal's text.
    """
    if gate.inbound is Inbound.REFUSE:
        text = f"{target!r} takes no messages from other sessions (inbound = refuse); a person can change that."
        return Refusal(Code.PERMISSION_DENIED, text)
    if gate.across is Across.DENY:
        text = f"{target!r} works in another project, and this host lets no message cross (across_projects = deny)."
        return Refusal(Code.PERMISSION_DENIED, text)
    if gate.inbound is Inbound.HOLD:
        return Waiting.POLICY
    return Waiting.ACROSS_PROJECTS if gate.across is Across.ASK else None
