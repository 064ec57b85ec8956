"""Time, and what a host does when it dies and starts again."""

from dataclasses import replace

from tests.simulation.life import ACROSS, Life, happens

from coterie.app import recover
from coterie.core.session.session import Held
from coterie.ports.rows import Input


class Starting(Life):
    """Clocks go on and back, and the host dies at any time, also while it starts."""

    @happens(4)
    async def time_passes(self) -> None:
        """Clocks go on, and sometimes back; the audit may see it."""
        seconds = self.one_of((0.001, 0.001, 30, 30))
        if self.one_of((True, True, True, False)):
            self._advance(seconds)
        else:
            self.ledger.clock.set_back(seconds)
        if self.one_of((True, False, False)):
            await self.ledger.expire()

    def _advance(self, seconds: float) -> None:
        self.ledger.clock.advance(seconds)
        self.latest = max(self.latest, self.ledger.clock.now_ms())

    @happens(2)
    async def the_host_starts_again(self) -> None:
        """Nothing begins, and nothing is lost; it has other settings perhaps, and dies once more while it starts."""
        before, resume, across = self.now, self.perhaps(), self.one_of((self.ledger.host.across, *ACROSS))
        self.ledger.host = replace(self.ledger.host, resume=resume, across=across)
        self._advance(self.one_of((0, 30)))
        if self.perhaps():
            await self._start_and_die(self.one_of(range(6)))
        await self.ledger.restart()
        after = await self.see()
        assert after.turns.keys() == before.turns.keys()
        assert after.running == []
        for session, queue in before.queues.items():
            kept = [one.id for one in queue if not self._ends_with_the_start(one)]
            assert [one.id for one in after.queues[session] if one.id in kept] == kept
            if resume:
                assert after.sessions[session].held is not Held.RESTART
            else:
                assert after.sessions[session].held is not None or after.queues[session] == ()

    async def _start_and_die(self, steps: int) -> None:
        await self.ledger.store.close()
        await self.ledger.start()
        store = self.ledger.store
        left = await store.read(recover.turns_left_running, None)
        for turn in left:
            await self.report_in_vain(turn.id)
        acts = (
            lambda: store.run(recover.hold_queues, None),
            *((lambda turn=turn: store.run(recover.interrupt, turn)) for turn in left),
            lambda: store.run(recover.expire, None),
        )
        for act in acts[:steps]:
            await act()

    def _ends_with_the_start(self, waiting: Input) -> bool:
        """Steering was meant for a turn that is gone; what is over is cancelled."""
        expires_at = self.now.messages[waiting.message_id].expires_at if waiting.message_id else None
        return waiting.kind == "steer" or (expires_at is not None and expires_at <= self.latest)
