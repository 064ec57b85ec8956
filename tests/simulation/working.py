"""What workers do with turns."""

from dataclasses import replace
from typing import Final

from tests.simulation.life import Life, happens

from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import MessageId
from coterie.core.turn.items import Reply, ToolResult, Usage
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn

USAGES: Final = (Usage(), Usage(30, 30), Usage(5, 5, 0), Usage(5, 5, 400_000), Usage(5, 5, 2_400_000))
"""Nothing known, tokens without a price, and prices, the last of which is beyond every bound."""


def runs(life: Life) -> bool:
    """Whether anything runs."""
    return bool(life.now.running)


class Working(Life):
    """Turns are claimed, take in news, write items and end."""

    @happens(8, when=lambda life: life.now.waiting)
    async def a_slot_is_free(self) -> None:
        """It goes to something exactly if anything waits for nothing but a slot."""
        ready = any(session.ready is not None for session in self.now.sessions.values())
        claimed = await self.ledger.claim()
        assert claimed is None or ready
        if not any(message.expires_at for message in self.now.messages.values()):
            assert (claimed is not None) == ready

    @happens(6, when=runs)
    async def a_turn_writes(self) -> None:
        """It has asked its model, and has read the outcome of messages."""
        turn, items = self.turn(), (Reply("", usage=self.one_of(USAGES)), ToolResult("call", "session_task", "read"))
        assert await self.ledger.store.run(append_items, AppendToTurn(turn.id, items, self._outcomes(turn)))

    def _outcomes(self, turn: Turn) -> tuple[MessageId, ...]:
        """Some message, and one that *turn* waits to hear of, if there are any."""
        if not self.accepted:
            return ()
        waiting = [self.now.messages[one.message_id] for one in self.now.queues[turn.session_id] if one.message_id]
        awaited = [message.reply_to for message in waiting if message.reply_to is not None]
        return (self.one_of(self.accepted), self.one_of(self.accepted, awaited))

    @happens(16, when=lambda life: any(turn.news for turn in life.now.running))
    async def a_turn_takes_news(self) -> None:
        """It is about to ask its model: it takes in all steering, and of messages what it may."""
        turn = self.turn([turn for turn in self.now.running if turn.news])
        takes = self.now.sessions[turn.session_id].current_turn and not turn.fenced
        before = await self.ledger.look(lambda tx: tx.messages.accepted(turn.id))
        await self.ledger.take_news(turn.id)
        after, left = await self.ledger.look(lambda tx: (tx.messages.accepted(turn.id), tx.marks.meant_for(turn.id)))
        assert after - before <= (self.ledger.host.limits.accepted_per_request_max if takes else 0)
        assert turn.fenced or not any(one.kind == "steer" for one in left)

    @happens(9, when=runs)
    async def a_turn_ends(self) -> None:
        """Its worker says how, and what it has cost."""
        turn, usage = self.turn(), self.one_of(USAGES)
        how = self.one_of(("completed", "completed", "completed", "failed", "cancelled"))
        code = Code.PROVIDER_ERROR if how == "failed" else None
        ended = SettleTurn(turn.id, (Reply("done"),), self._outcomes(turn), cancelled=how == "cancelled", code=code)
        used = replace(
            ended, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost, slot=self.slot()
        )
        settled = await self.ledger.store.run(settle_turn, used)
        assert settled.state is not None
        assert settled.state.value == ("cancelled" if turn.fenced else how)

    @happens(when=lambda life: len(life.now.turns) > len(life.busy))
    async def a_dead_worker_reports(self) -> None:
        """Its turn has ended; nothing changes."""
        ended = self.one_of([turn.id for turn in self.now.turns.values() if turn.state is not TurnState.RUNNING])
        await self.report_in_vain(ended)
