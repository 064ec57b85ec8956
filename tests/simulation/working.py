"""What workers do with turns, and the audit beside them."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.simulation.machine import LedgerMachine, which

from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import TurnId
from coterie.core.turn.items import Reply, ToolResult, Usage
from coterie.core.turn.turn import Turn

usages = st.sampled_from(
    [Usage(), Usage(), Usage(30, 30), Usage(5, 5, 0), Usage(5, 5, 400_000), Usage(5, 5, 2_400_000)]
)
"""Nothing known, tokens without a price, and prices, the last of which is beyond every bound."""


class Working(LedgerMachine):
    """Turns are claimed, take in news, write items and end."""

    @rule()
    def claim(self) -> None:
        """A slot is free: it goes to something exactly if anything waits for nothing but a slot."""
        ready = any(session.ready is not None for session in self.now.sessions.values())
        claimed = self.do(self.ledger.claim())
        assert claimed is None or ready
        if not any(message.expires_at for message in self.now.messages.values()):
            assert (claimed is not None) == ready

    @precondition(lambda self: self.now.running)
    @rule(number=which, first=which, second=which, usage=usages)
    def append(self, number: int, first: int, second: int, *, usage: Usage) -> None:
        """A turn asks its model, and reads the outcome of any two messages."""
        items = (Reply("", usage=usage), ToolResult("call", "session_task", "read"))
        command = AppendToTurn(self.turn(number).id, items, self.shown(first, second))
        assert self.do(self.ledger.store.run(append_items, command))

    @precondition(lambda self: self.now.running)
    @rule(number=which)
    def take_news(self, number: int) -> None:
        """A turn is about to ask its model: it takes in all steering, and of messages what it may."""
        turn = self.turn(number)
        takes = self.now.sessions[turn.session_id].current_turn and not turn.fenced
        before = self.do(self.ledger.look(lambda tx: tx.messages.accepted(turn.id)))
        self.do(self.ledger.take_news(turn.id))
        after, left = self.do(self.ledger.look(lambda tx: (tx.messages.accepted(turn.id), tx.marks.meant_for(turn.id))))
        assert after - before <= (self.ledger.host.limits.accepted_per_request_max if takes else 0)
        assert turn.fenced or not any(one.kind == "steer" for one in left)

    @precondition(lambda self: self.now.running)
    @rule(number=which, slot=st.booleans(), how=st.sampled_from(["completed", "completed", "failed", "cancelled"]))
    def settle(self, number: int, *, slot: bool, how: str) -> None:
        """A worker comes to its end."""
        self._end(self.turn(number), SettleTurn(self.turn(number).id, (Reply("done"),), slot=slot), how)

    @precondition(lambda self: self.now.running)
    @rule(number=which, first=which, second=which, usage=usages)
    def settle_at_a_price(self, number: int, first: int, second: int, *, usage: Usage) -> None:
        """A worker comes to its end, has seen the outcome of messages, and says what it has cost."""
        turn = self.turn(number)
        command = SettleTurn(
            turn.id,
            (Reply("done"),),
            self.shown(first, second),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
        )
        self._end(turn, command, "completed")

    def _end(self, turn: Turn, command: SettleTurn, how: str) -> None:
        code = Code.PROVIDER_ERROR if how == "failed" else None
        ended = replace(command, cancelled=how == "cancelled", code=code, message="it broke" if code else "")
        settled = self.do(self.ledger.store.run(settle_turn, ended))
        assert settled.state is not None
        assert settled.state.value == ("cancelled" if turn.fenced else how)

    @precondition(lambda self: len(self.now.turns) > len(self.now.running))
    @rule(number=which)
    def settle_late(self, number: int) -> None:
        """A worker that was thought dead reports; nothing changes."""
        running = self.now.running
        ended = [turn.id for turn in self.now.turns.values() if turn not in running]
        self._changes_nothing(ended[number % len(ended)])

    def _changes_nothing(self, turn_id: TurnId) -> None:
        before = self.do(self.ledger.last_change())
        assert (self.do(self.ledger.settle(turn_id, "late"))).state is None
        assert not self.do(self.ledger.append(turn_id))
        assert not self.do(self.ledger.take_news(turn_id))
        assert self.do(self.ledger.last_change()) == before
