"""Time, and what a host does when it dies and starts again."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.simulation.machine import LedgerMachine

from coterie.app import recover
from coterie.core.inbound import Across
from coterie.core.session.session import Held
from coterie.ports.rows import Input


class Starting(LedgerMachine):
    """Clocks go on and back, and the host dies at any time, also while it starts."""

    @rule(seconds=st.sampled_from([0.001, 30, 30, -30]))
    def let_time_pass(self, seconds: float) -> None:
        """Clocks go on, and sometimes back."""
        self.ledger.clock.advance(seconds) if seconds > 0 else self.ledger.clock.set_back(-seconds)
        self.latest = max(self.latest, self.ledger.clock.now_ms())

    @rule()
    def expire(self) -> None:
        """The audit ends what is no longer worth starting."""
        self.do(self.ledger.expire())

    @rule(dies_after=st.none() | st.integers(0, 5), resume=st.booleans(), across=st.none() | st.sampled_from(Across))
    def restart(self, dies_after: int | None, *, resume: bool, across: Across | None) -> None:
        """The host dies and starts again on the same file, perhaps with other settings: nothing begins, nothing is lost.

        The first start may die as well, after any of its steps.
        """
        before = self.now
        self.ledger.host = replace(self.ledger.host, resume=resume, across=across or self.ledger.host.across)
        if dies_after is not None:
            self.do(self._start_and_die(dies_after))
        self.do(self.ledger.restart())
        after = self.see()
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
        store = self.ledger.store
        await store.close()
        await self.ledger.start()
        store = self.ledger.store
        left = await store.read(recover.turns_left_running, None)
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
