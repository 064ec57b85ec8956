"""How turns end, and what their senders are told."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

import asyncio
import json
from dataclasses import replace
from typing import Final

import pytest

from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.ledger.message import Kind
from coterie.core.ledger.states import MessageState
from coterie.core.turn.items import PersonText, Reply, SessionText, ToolResult
from coterie.core.turn.states import TurnState
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger

OUTCOMES: Final = ("completed", "failed", "cancelled", "interrupted")


async def end(ledger: Ledger, turn_id: TurnId | None, outcome: str) -> None:
    """End a turn in each of the ways that there are."""
    match outcome:
        case "completed":
            await ledger.settle(turn_id)
        case "failed":
            await ledger.settle(turn_id, code=Code.PROVIDER_ERROR)
        case "cancelled":
            await ledger.cancel((await ledger.turn(turn_id)).session_id)
            await ledger.settle(turn_id)
        case _:
            await ledger.restart()


class SettlingContract(LedgerContract):
    """One end for each turn."""

    @pytest.mark.guarantee("I6")
    @pytest.mark.parametrize("outcome", OUTCOMES)
    async def test_a_message_ends_as_its_turn_ends(self, ledger: Ledger, outcome: str) -> None:
        """A host that dies is no failure of the work, and a cancel is none either."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)

        await end(ledger, receipt.turn_id, outcome)

        assert (await ledger.turn(receipt.turn_id)).state.value == outcome
        assert (await ledger.state(receipt.message.id)).value == outcome

    @pytest.mark.guarantee("I6")
    async def test_a_text_that_speaks_of_failure_is_a_completed_turn(self, ledger: Ledger) -> None:
        """Only the way in which the turn ended says how it ended."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        said, broke = await ledger.task(source, target), '{"status": "failed"}'

        await ledger.settle(said.turn_id, broke)

        message = await ledger.read(said.message.id)
        assert (message.state, message.result, message.error) == (MessageState.COMPLETED, broke, None)

    async def test_a_failed_turn_has_an_error_and_no_result(self, ledger: Ledger) -> None:
        """What it had said is in the transcript; it is not an answer."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)

        await ledger.settle(receipt.turn_id, "half", code=Code.PROVIDER_ERROR)

        message = await ledger.read(receipt.message.id)
        assert (message.result, message.error) == (None, "PROVIDER_ERROR: it broke")
        assert [one.item for one in await ledger.transcript(target)][-1] == Reply("half")

    @pytest.mark.guarantee("I5")
    @pytest.mark.parametrize("outcome", OUTCOMES)
    async def test_what_has_ended_stays(self, ledger: Ledger, outcome: str) -> None:
        """A late worker changes nothing: no state, no item, no second completion."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await end(ledger, receipt.turn_id, outcome)
        before = await ledger.last_change()

        late = await ledger.settle(receipt.turn_id, code=Code.INTERNAL)
        assert receipt.turn_id is not None
        appended = await ledger.append(receipt.turn_id)
        await ledger.cancel(target)

        assert (late.state, late.next, appended) == (None, None, False)
        assert await ledger.last_change() == before
        assert (await ledger.state(receipt.message.id)).value == outcome

    @pytest.mark.guarantee("I5")
    async def test_a_worker_of_an_earlier_epoch_settles_nothing(self, ledger: Ledger) -> None:
        """Between a start and its recovery the old turn still runs in the rows, and is nobody's."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        ledger.become(replace(ledger.host, epoch=ledger.host.epoch + 1))

        late = await ledger.settle(turn_id)
        appended = await ledger.append(turn_id)

        assert (late.state, appended) == (None, False)
        assert (await ledger.turn(turn_id)).state is TurnState.RUNNING
        assert (await ledger.settle(TurnId("turn_unknown"))).state is None

    @pytest.mark.guarantee("I5")
    async def test_of_many_settles_at_once_one_counts(self, ledger: Ledger) -> None:
        """Compare and set, so a worker that was thought dead cannot write over its successor."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)

        settled = await asyncio.gather(*(ledger.settle(receipt.turn_id, f"{number}") for number in range(8)))

        assert [one.state for one in settled if one.state] == [TurnState.COMPLETED]

    async def test_a_fenced_turn_is_cancelled_whatever_its_worker_reports(self, ledger: Ledger) -> None:
        """Case 100: the person's stop came first, even if the answer was ready."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        await ledger.cancel(session)

        ledger.feed.topics = []

        settled = await ledger.settle(turn_id, "ready")

        turn = await ledger.turn(turn_id)
        assert (settled.state, turn.result) == (TurnState.CANCELLED, None)
        assert turn_id in ledger.feed.topics

    async def test_usage_is_kept_and_unknown_is_not_zero(self, ledger: Ledger) -> None:
        """Costs are counted from these."""
        session = await ledger.session()
        known = await ledger.begin(session)
        await ledger.store.run(settle_turn, SettleTurn(known, (Reply("x"),), input_tokens=3, output_tokens=0))
        unknown = await ledger.begin(session)
        await ledger.settle(unknown)

        turns = [await ledger.turn(turn_id) for turn_id in (known, unknown)]
        assert [(turn.input_tokens, turn.output_tokens) for turn in turns] == [(3, 0), (None, None)]

    async def test_the_result_is_the_last_reply_cut_at_its_bound(self, ledger: Ledger) -> None:
        """What was left out is said, and stays readable in the transcript."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)
        ledger.limit(result_chars_max=4)
        items = (Reply("first"), ToolResult("c", "t", "r"), Reply("😀😀😀😀😀"), PersonText("late"))
        assert receipt.turn_id is not None

        await ledger.store.run(settle_turn, SettleTurn(receipt.turn_id, items))

        message = await ledger.read(receipt.message.id)
        assert (message.result, message.truncated) == ("😀😀😀😀", True)
        assert Reply("😀😀😀😀😀") in [one.item for one in await ledger.transcript(target)]

    async def test_items_are_numbered_without_gaps_and_read_back_equal(self, ledger: Ledger) -> None:
        """A transcript is shown again byte for byte."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        items = (Reply("a\u2028\u0085\ufffd", thinking="t", state="{}"), ToolResult("c", "t", "😀", error=True))
        await ledger.store.run(append_items, AppendToTurn(turn_id, items))
        await ledger.settle(turn_id)

        found = await ledger.transcript(session)

        assert [one.number for one in found] == [1, 2, 3, 4]
        assert [one.item for one in found] == [PersonText("go"), *items, Reply("done")]
        assert [one.number for one in await ledger.look(lambda tx: tx.items.page(session, 1, 2))] == [2, 3]


class CompletionContract(LedgerContract):
    """One completion for each message that asked, to the session that sent it."""

    @pytest.mark.guarantee("I7")
    @pytest.mark.guarantee("I8")
    @pytest.mark.parametrize("outcome", OUTCOMES)
    async def test_every_end_writes_one_completion_to_the_sender(self, ledger: Ledger, outcome: str) -> None:
        """Silence would look like work, whatever went wrong."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)

        await end(ledger, receipt.turn_id, outcome)

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        assert (completion.source_session_id, completion.target_session_id) == (target, source)
        assert (completion.kind, completion.notify, completion.reply_to) == (
            Kind.COMPLETION,
            False,
            receipt.message.id,
        )
        told = json.loads(completion.content)
        assert (told["messageId"], told["workerSessionId"], told["status"]) == (receipt.message.id, target, outcome)
        _, messages = await self._messages(ledger, receipt.message.id)
        assert messages.count(receipt.message.id) == 1

    @pytest.mark.guarantee("I7")
    @pytest.mark.parametrize("outcome", OUTCOMES)
    async def test_who_asked_for_none_is_told_nothing(self, ledger: Ledger, outcome: str) -> None:
        """And a completion is answered by nothing, so the ledger cannot talk to itself."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.note(source, target)
        await end(ledger, receipt.turn_id, outcome)
        assert await ledger.completion(receipt.message.id) is None

    async def _messages(self, ledger: Ledger, message_id: MessageId) -> tuple[int, list[MessageId | None]]:
        chain_id = (await ledger.read(message_id)).chain_id
        found = await ledger.look(lambda tx: tx.exchanges.of_chain(chain_id, 0, 100))
        return len(found), [message.reply_to for _, message in found]

    async def test_a_completion_starts_its_sender_where_that_is_idle(self, ledger: Ledger) -> None:
        """With the slot of the turn that ended, in its transaction."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.settle(turn_id)

        settled = await ledger.settle(receipt.turn_id)

        assert settled.next is not None
        assert (settled.next.session_id, settled.next.kind) == (source, "completion")
        told = (await ledger.transcript(source))[-1].item
        assert isinstance(told, SessionText)
        assert told.origin.reply_to_message_id == receipt.message.id

    async def test_a_completion_waits_for_a_sender_that_runs(self, ledger: Ledger) -> None:
        """Case 1: it starts when the running turn ends, and after what a person has said."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, target)

        settled = await ledger.settle(receipt.turn_id)
        places = await ledger.places(source)
        follows = await ledger.settle(turn_id)

        assert settled.next is None
        assert (places.completions, places.running) == (1, True)
        assert follows.next is not None
        assert follows.next.kind == "completion"

    async def test_completions_wait_in_the_order_of_settling(self, ledger: Ledger) -> None:
        """The order in which things happened is the order in which they are told."""
        source, *workers = await ledger.sessions("ABCD")
        turn_id: TurnId | None = await ledger.begin(source)
        receipts = [await ledger.task(source, worker) for worker in workers]
        for receipt in reversed(receipts):
            await ledger.settle(receipt.turn_id)

        told: list[SessionId] = []
        while turn_id is not None:
            turn = (await ledger.settle(turn_id)).next
            turn_id = turn and turn.id
            if turn is not None and turn.message_id is not None:
                told.append((await ledger.read(turn.message_id)).source_session_id)

        assert told == workers[::-1]

    async def test_a_completion_says_what_it_leaves_out(self, ledger: Ledger) -> None:
        """An excerpt has both ends and the way to the rest."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, target)

        await ledger.settle(receipt.turn_id, "a" * 3000 + "z")

        completion = await ledger.completion(receipt.message.id)
        assert completion is not None
        told = json.loads(completion.content)
        assert told["truncated"] is True
        assert len(told["result"]) <= 2000
        assert (told["result"][0], told["result"][-1]) == ("a", "z")
        assert (await ledger.read(receipt.message.id)).truncated is False


class AbsorbingContract(LedgerContract):
    """A sender that has read the outcome needs no turn to be told it."""

    async def _read(self, ledger: Ledger) -> tuple[SessionId, TurnId, MessageId]:
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.settle(receipt.turn_id)
        return source, turn_id, receipt.message.id

    async def test_the_item_that_shows_an_outcome_absorbs_its_notice(self, ledger: Ledger) -> None:
        """Case 25: no second turn, no second cost; it ends with the turn that read it."""
        source, turn_id, message_id = await self._read(ledger)

        await ledger.append(turn_id, message_id)
        completion = await ledger.completion(message_id)
        settled = await ledger.settle(turn_id)

        assert completion is not None
        assert (completion.state, completion.turn_id) == (MessageState.RUNNING, turn_id)
        assert settled.next is None
        ended = await ledger.read(completion.id)
        assert (ended.state, ended.result) == (MessageState.COMPLETED, None)
        assert await ledger.completion(completion.id) is None
        assert (await ledger.places(source)).waiting == 0

    async def test_an_item_that_shows_nothing_absorbs_nothing(self, ledger: Ledger) -> None:
        """A crash between reading and writing brings the notice again, rather than lose it."""
        source, turn_id, _ = await self._read(ledger)
        await ledger.append(turn_id)
        assert (await ledger.places(source)).completions == 1

    async def test_reading_twice_changes_nothing_more(self, ledger: Ledger) -> None:
        """In one item or in two."""
        source, turn_id, message_id = await self._read(ledger)
        await ledger.append(turn_id, message_id, message_id)
        completion = await ledger.completion(message_id)
        await ledger.append(turn_id, message_id)
        assert await ledger.completion(message_id) == completion
        assert (await ledger.places(source)).waiting == 0

    async def test_a_claimed_completion_is_not_absorbed(self, ledger: Ledger) -> None:
        """It has a turn of its own, and keeps it."""
        source, turn_id, message_id = await self._read(ledger)
        claimed = (await ledger.settle(turn_id)).next
        assert claimed is not None

        await ledger.append(claimed.id, message_id)

        completion = await ledger.completion(message_id)
        assert completion is not None
        assert completion.turn_id == claimed.id
        await ledger.settle(claimed.id)
        assert (await ledger.places(source)).waiting == 0

    async def test_only_the_senders_own_turn_absorbs(self, ledger: Ledger) -> None:
        """Another session that reads the outcome takes nothing from the one that asked."""
        source, _, message_id = await self._read(ledger)
        reader = await ledger.begin(await ledger.session("reader"))
        await ledger.append(reader, message_id)
        assert (await ledger.places(source)).completions == 1

    async def test_an_outcome_that_is_not_there_yet_absorbs_nothing(self, ledger: Ledger) -> None:
        """A wait that ran out has shown a state, and the notice still comes."""
        source, target = await ledger.sessions("AB")
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, target)
        await ledger.append(turn_id, receipt.message.id, MessageId("msg_unknown"))
        await ledger.settle(receipt.turn_id)
        assert (await ledger.places(source)).completions == 1

    @pytest.mark.guarantee("I2")
    async def test_settle_and_absorption_at_once_leave_the_queue_once(self, ledger: Ledger) -> None:
        """Case 26: whichever comes first, the notice is either read or has a turn, and never both."""
        for first in (True, False):
            source, turn_id, message_id = await self._read(ledger)
            acts = [ledger.append(turn_id, message_id), ledger.settle(turn_id)]
            await asyncio.gather(*(acts if first else reversed(acts)))

            running = await ledger.running(source)
            completion = await ledger.completion(message_id)
            assert completion is not None
            assert completion.turn_id == (running.id if running else turn_id)
