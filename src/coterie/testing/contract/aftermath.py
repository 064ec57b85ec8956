"""What is left when a turn or a session has ended in a way that nobody reported."""

import pytest

from coterie.app import describe
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.delete_session import DeleteSession, delete_session
from coterie.app.describe import WhichResult
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.chain import MICRO
from coterie.core.codes import Code
from coterie.core.ids import SessionId, TurnId
from coterie.core.ledger.message import Deliver, Kind
from coterie.core.turn.items import Reply, ToolCall, Usage
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger

CALLS = (ToolCall("1", "look", "{}"),)


async def reply(ledger: Ledger, turn_id: TurnId, cost: int) -> None:
    """Write a reply that has cost something and goes on with a tool."""
    said = Reply("", CALLS, usage=Usage(10, 5, cost))
    assert await ledger.store.run(append_items, AppendToTurn(turn_id, (said,)))


async def delete(ledger: Ledger, session: SessionId) -> None:
    """Delete a session."""
    await ledger.store.run(delete_session, DeleteSession(session, None))


class AftermathContract(LedgerContract):
    """Costs are counted, outcomes can be read, and nothing is meant for what is gone."""

    @pytest.mark.guarantee("I12")
    @pytest.mark.parametrize("end", ["crash", "delete", "broken worker"])
    async def test_what_a_turn_has_cost_counts_however_it_ends(self, ledger: Ledger, end: str) -> None:
        """Its written replies tell, where no worker does: else a chain could spend without end by crashing."""
        session = await ledger.session()
        turn = await ledger.turn(await ledger.begin(session))
        await reply(ledger, turn.id, MICRO)
        await reply(ledger, turn.id, 2 * MICRO)

        if end == "crash":
            await ledger.restart()
        elif end == "delete":
            await delete(ledger, session)
        else:
            await ledger.store.run(settle_turn, SettleTurn(turn.id, code=Code.INTERNAL, message="broke", counted=False))

        ended = await ledger.turn(turn.id)
        assert (ended.input_tokens, ended.output_tokens, ended.cost) == (20, 10, 3 * MICRO)
        assert (await ledger.chain(turn.chain_id)).cost == 3 * MICRO

    @pytest.mark.guarantee("I9")
    @pytest.mark.parametrize("names", ["AB", "BA"])
    async def test_a_crash_leaves_no_offer_to_a_turn_that_is_gone(self, ledger: Ledger, names: str) -> None:
        """Turns are ended one by one, and the completion of the first finds the sender's turn not yet ended."""
        ids = dict(zip(names, await ledger.sessions(names), strict=True))
        source, target = ids["A"], ids["B"]
        await ledger.configure(source, current_turn=True)
        turn_id = await ledger.begin(source)
        sent = await ledger.task(source, target)

        await ledger.restart()

        completion = await ledger.completion(sent.message.id)
        assert completion is not None
        (waiting,) = await ledger.look(lambda tx: tx.inputs.page(source, 9))
        assert (waiting.message_id, waiting.turn_id) == (completion.id, None)
        assert not (await ledger.turn(turn_id)).news

    async def test_the_outcome_of_a_message_to_a_deleted_session_can_be_read(self, ledger: Ledger) -> None:
        """By its id and by its turn, with the reason, whether it ran or waited; the session itself is not there."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ran, waited = [(await ledger.task(source, target)).message for _ in range(2)]
        turn = await ledger.running(target)
        assert turn is not None
        await delete(ledger, target)

        by_id = [
            await ledger.store.read(describe.result, WhichResult(target, message.id, None, source))
            for message in (ran, waited)
        ]
        by_turn = await ledger.store.read(describe.result, WhichResult(target, None, turn.id, source))

        assert [(ready, found and found.error) for ready, found in by_id] == [
            (True, "CANCELLED: the session was deleted.")
        ] * 2
        assert by_turn == by_id[0]

    async def test_ones_own_message_of_a_turn_is_found_behind_what_joined_it(self, ledger: Ledger) -> None:
        """Each party sees its own; a person sees what the turn was created for."""
        source, target, other = await ledger.sessions("ABC")
        await ledger.configure(target, current_turn=True)
        await ledger.begin(source)
        await ledger.begin(other)
        task = await ledger.task(source, target)
        assert task.turn_id is not None
        joined = await ledger.send(other, target, kind=Kind.MESSAGE, notify=False, deliver=Deliver.CURRENT_TURN)
        await ledger.take_news(task.turn_id)
        await ledger.settle(task.turn_id)

        found = [
            (await ledger.store.read(describe.result, WhichResult(target, None, task.turn_id, reader)))[1]
            for reader in (source, other, None)
        ]

        assert [one and one.id for one in found] == [task.message.id, joined.message.id, task.message.id]

    async def test_a_slot_goes_to_the_next_when_the_first_was_no_longer_worth_starting(self, ledger: Ledger) -> None:
        """Else it would stand still until somebody looks again."""
        source, late, following = await ledger.sessions("ABC")
        await ledger.begin(source)
        soon = ledger.clock.now_ms() + 10
        await ledger.send(source, late, kind=Kind.MESSAGE, notify=False, slot=False, expires_at=soon)
        good = await ledger.note(source, following, slot=False)
        ledger.clock.advance(1)

        turn = await ledger.claim()

        assert turn is not None
        assert turn.message_id == good.message.id
