"""What was used, in words."""

import pytest
from tests.interfaces.cli.conftest import Live

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.turn.items import Reply
from coterie.interfaces.cli.spending import usage_facts


@pytest.mark.parametrize(
    ("known", "tokens", "cost"),
    [
        (
            {"turns": 1, "inputTokens": 1234, "outputTokens": 0, "costUsd": 0.5},
            "1,234 read, 0 written in 1 turn",
            "0.5000 US dollars",
        ),
        (
            {"turns": 3, "inputTokens": 5, "turnsUncounted": 1, "costUsd": 0.0, "turnsUnpriced": 2},
            "5 read, unknown written in 3 turns; 1 of them was not counted",
            "0.0000 US dollars; 2 of them have no price",
        ),
        (
            {"turns": 2, "turnsUncounted": 2, "turnsUnpriced": 2},
            "unknown read, unknown written in 2 turns; 2 of them were not counted",
            "unknown",
        ),
    ],
)
def test_what_is_unknown_is_called_so(known: dict[str, float], tokens: str, cost: str) -> None:
    """A zero would be read as free."""
    used = {"turnsUncounted": 0, "turnsUnpriced": 0, **known}
    assert usage_facts(used) == [("tokens", tokens), ("cost", cost)]


def test_nothing_is_told_where_no_turn_was() -> None:
    """Neither of a new session nor by a host that does not tell."""
    assert usage_facts(None) == usage_facts({"turns": 0}) == []


@pytest.mark.parametrize("command", [("status",), ("session", "show")])
async def test_a_person_sees_what_a_session_has_used(live: Live, command: tuple[str, ...]) -> None:
    """Where they look at it anyway."""
    session_id = await live.host.new_session("lead")
    receipt = await live.host.ask("session.prompt", sessionId=session_id, text="go")
    end = SettleTurn(receipt["turnId"], (Reply("done"),), input_tokens=1200, output_tokens=34, cost=5_600)
    await live.host.parts.store.run(settle_turn, end)
    shown = (await live.line.beside(*command, "lead")).stdout
    assert "1,200 read, 34 written in 1 turn" in shown
    assert "0.0056 US dollars" in shown
