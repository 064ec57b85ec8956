"""A host that is set to go on with what waits when it starts."""

from dataclasses import replace

import pytest

from coterie.core.ledger.states import MessageState
from coterie.core.turn.states import TurnState
from coterie.ports.feed import READY
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


class ResumingContract(LedgerContract):
    """Queued inputs start after the start; what was interrupted is never run again."""

    @pytest.mark.guarantee("I9")
    async def test_what_waited_starts_and_what_ran_does_not(self, ledger: Ledger) -> None:
        """Nobody knows how far it came; but the sender of an interrupted task is told without a release."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        ran, waited = await ledger.task(source, target), await ledger.task(source, target)
        await ledger.settle(turn_id, slot=False)
        ledger.become(replace(ledger.host, resume=True))
        ledger.feed.topics = []

        await ledger.restart()

        assert await ledger.running(target) is None
        assert READY in ledger.feed.topics
        assert [(await ledger.known(session)).held for session in (source, target)] == [None, None]
        states = [await ledger.state(one.message.id) for one in (ran, waited)]
        assert states == [MessageState.INTERRUPTED, MessageState.QUEUED]
        claimed = [await ledger.claim() for _ in range(3)]
        completion = await ledger.completion(ran.message.id)
        assert completion is not None
        assert [turn and turn.message_id for turn in claimed] == [waited.message.id, completion.id, None]

    @pytest.mark.guarantee("I9")
    async def test_an_interrupted_prompt_is_not_said_again(self, ledger: Ledger) -> None:
        """Nor what was added to it and stayed unread; the next one in the queue begins."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        following = await ledger.prompt(session, "next")
        await ledger.steer(session)
        ledger.become(replace(ledger.host, resume=True))
        await ledger.restart()
        turn = await ledger.claim()
        assert (await ledger.turn(turn_id)).state is TurnState.INTERRUPTED
        assert turn is not None
        assert turn.input_id == following.input_id
        assert (await ledger.places(session)).waiting == 0

    async def test_what_an_earlier_start_has_held_goes_on_too(self, ledger: Ledger) -> None:
        """Who changes the setting has seen what is held; only what was put away stays away."""
        session = await ledger.session()
        await ledger.prompt(session, slot=False)
        await ledger.restart()
        ledger.become(replace(ledger.host, resume=True))
        await ledger.restart()
        turn = await ledger.claim()
        assert (await ledger.known(session)).held is None
        assert turn is not None
        assert turn.session_id == session
