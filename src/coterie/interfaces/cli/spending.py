"""What turns have used, in words; what is unknown is called so and never counts as nothing."""

from typing import Any

from coterie.interfaces.cli.dial import Answer


def usage_facts(used: Answer | None) -> list[tuple[str, Any]]:
    """The tokens and the cost of a session, if it was told, as facts."""
    if used is None or not used["turns"]:
        return []
    turns = f"{used['turns']} {'turn' if used['turns'] == 1 else 'turns'}"
    tokens = f"{_figure(used.get('inputTokens'))} read, {_figure(used.get('outputTokens'))} written in {turns}"
    cost = used.get("costUsd")
    price = "unknown" if cost is None else f"{cost:.4f} US dollars"
    return [
        ("tokens", tokens + _but(used["turnsUncounted"], "were not counted", "was not counted")),
        ("cost", price + (_but(used["turnsUnpriced"], "have no price", "has no price") if cost is not None else "")),
    ]


def _figure(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"


def _but(turns: int, several: str, single: str) -> str:
    return f"; {turns} of them {single if turns == 1 else several}" if turns else ""
