"""What a send accepts, refuses and carries."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

from dataclasses import replace
from itertools import pairwise

import pytest

from coterie.app import find
from coterie.app.idempotency import Key
from coterie.app.send_message import send_message
from coterie.app.sender import Sender
from coterie.core.codes import Code
from coterie.core.errors import (
    ConflictError,
    HostError,
    IdempotencyConflictError,
    InvalidArgumentError,
    NotFoundError,
)
from coterie.core.ids import SessionId, TurnId
from coterie.core.ledger.message import Kind, Via
from coterie.core.ledger.states import MessageState
from coterie.core.permission import Mode, StoredMode
from coterie.core.thinking import Thinking
from coterie.core.turn.items import SessionText
from coterie.ports.rows import Reference
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


class SendingContract(LedgerContract):
    """One message from one session to another."""

    @pytest.mark.guarantee("I2")
    async def test_a_message_to_an_idle_session_starts_in_the_transaction_that_sends_it(self, ledger: Ledger) -> None:
        """The common case costs one commit, and never shows a message that waits for nothing."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)

        receipt = await ledger.task(source, target)

        turn = await ledger.turn(receipt.turn_id)
        assert (turn.session_id, turn.message_id, turn.kind) == (target, receipt.message.id, "task")
        assert receipt.position is None
        assert await ledger.state(receipt.message.id) is MessageState.RUNNING
        assert (await ledger.places(target)).waiting == 0

    async def test_the_first_item_of_a_turn_tells_the_message_that_started_it(self, ledger: Ledger) -> None:
        """Provenance is written by the host from the ledger's row, with a nonce that nobody else knows."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        message = (await ledger.task(source, target)).message

        (first,) = await ledger.transcript(target)

        assert isinstance(first.item, SessionText)
        origin = first.item.origin
        assert (origin.message_id, origin.source_session_id, origin.kind) == (message.id, source, "task")
        assert first.item.content == "work"
        assert len(first.item.nonce) == 16

    @pytest.mark.guarantee("I3")
    async def test_a_message_waits_where_no_slot_is_free(self, ledger: Ledger) -> None:
        """Queued is a state and a row in the queue, both or none."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)

        first = await ledger.task(source, target, slot=False)
        second = await ledger.note(source, target)

        assert (first.position, second.position) == (1, 2)
        assert [await ledger.state(receipt.message.id) for receipt in (first, second)] == [MessageState.QUEUED] * 2
        assert (await ledger.places(target)).messages == 2

    @pytest.mark.guarantee("I14")
    async def test_the_same_key_sends_once_and_also_after_a_restart(self, ledger: Ledger) -> None:
        """Whoever did not hear the answer may ask again and never doubles the work."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        command = replace(ledger.message(await ledger.sender(source), target), key=Key("person", "k", "f"), slot=False)
        first = await ledger.store.run(send_message, command)

        again = await ledger.store.run(send_message, command)
        await ledger.restart()
        later = await ledger.store.run(send_message, command)

        assert (again.message.id, again.replayed, first.replayed) == (first.message.id, True, False)
        assert (later.message.id, later.replayed) == (first.message.id, True)
        assert (await ledger.places(target)).messages == 1

    @pytest.mark.guarantee("I14")
    async def test_the_same_key_with_other_parameters_is_a_conflict(self, ledger: Ledger) -> None:
        """A mistake in a client's keys must not pass for an answer; the same key of somebody else is no mistake."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        command = replace(ledger.message(await ledger.sender(source), target), key=Key("one", "k", "f"), slot=False)
        await ledger.store.run(send_message, command)

        with pytest.raises(IdempotencyConflictError):
            await ledger.store.run(send_message, replace(command, key=Key("one", "k", "other")))
        other = await ledger.store.run(send_message, replace(command, key=Key("two", "k", "other")))

        assert not other.replayed

    @pytest.mark.guarantee("I14")
    async def test_a_refusal_does_not_use_up_its_key(self, ledger: Ledger) -> None:
        """What did not happen may be tried again."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(inbox_max=1)
        await ledger.task(source, target, slot=False)
        command = replace(ledger.message(await ledger.sender(source), target), key=Key("one", "k", "f"))

        await refused(ledger.store.run(send_message, command), Code.AGENT_BUSY)
        ledger.limit(inbox_max=2)
        receipt = await ledger.store.run(send_message, command)

        assert not receipt.replayed

    @pytest.mark.parametrize("content", ["", " \n\t", "\u200b\ufeff", "a\x00b", "a\ud800b"])
    async def test_content_that_says_nothing_or_cannot_be_stored_is_refused(self, ledger: Ledger, content: str) -> None:
        """A turn without anything to read is a cost without a use."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        before = await ledger.last_change()
        command = replace(ledger.message(await ledger.sender(source), target), content=content)

        with pytest.raises(InvalidArgumentError):
            await ledger.store.run(send_message, command)

        assert await ledger.last_change() == before

    async def test_content_counts_code_points_after_trimming(self, ledger: Ledger) -> None:
        """One way to count, so that a refusal can be understood."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(content_chars_max=3)
        command = ledger.message(await ledger.sender(source), target)

        receipt = await ledger.store.run(send_message, replace(command, content="  👩🏽‍💻  "[:5]))
        reason = await refused(ledger.store.run(send_message, replace(command, content="abcd")), Code.LIMIT_EXCEEDED)

        assert receipt.message.content == "👩🏽‍"
        assert (reason.limit, reason.value) == ("content_chars_max", 3)

    async def test_a_session_cannot_send_to_itself(self, ledger: Ledger) -> None:
        """It would wait for its own end."""
        source = await ledger.session()
        await ledger.begin(source)
        with pytest.raises(InvalidArgumentError):
            await ledger.task(source, source)

    async def test_an_unknown_target_is_told_with_near_names(self, ledger: Ledger) -> None:
        """A model that mistypes an id can repair it in its next call."""
        source, near = await ledger.session("planner"), await ledger.session("reviewer")
        await ledger.begin(source)

        with pytest.raises(NotFoundError):
            await ledger.task(source, SessionId("reviwer"))
        caught = await ledger.store.read(find.near_sessions, "reviwer")
        mistyped = await ledger.store.read(find.near_sessions, near[:-1])

        assert caught == (f"{near} (reviewer)",)
        assert mistyped[0] == near
        assert len(mistyped) <= 3

    @pytest.mark.guarantee("I10")
    async def test_a_message_is_its_running_turns(self, ledger: Ledger) -> None:
        """An ended turn, a turn of another session or one that nobody knows speaks for nobody."""
        source, target, other = await ledger.sessions("ABC")
        ended = await ledger.begin(source)
        await ledger.settle(ended)
        foreign = await ledger.begin(other)
        before = await ledger.last_change()

        for turn_id in (ended, foreign, TurnId("turn_unknown")):
            with pytest.raises(ConflictError):
                await ledger.store.run(send_message, ledger.message(Sender(source, turn_id), target))

        assert await ledger.last_change() == before

    async def test_a_cancelled_turn_sends_nothing_more(self, ledger: Ledger) -> None:
        """Between the fence and the end of its worker nothing may begin."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.cancel(source)
        with pytest.raises(ConflictError):
            await ledger.task(source, target)
        with pytest.raises(ConflictError):
            await ledger.spawn(source)

    @pytest.mark.guarantee("I10")
    async def test_a_person_who_speaks_for_a_session_is_marked_and_starts_a_chain(self, ledger: Ledger) -> None:
        """Case 162: the receiver sees that no turn of the session said so."""
        source, target = await ledger.sessions("AB")

        receipt = await ledger.task(source, target)

        message = receipt.message
        assert (message.via, message.source_turn_id, message.hops) == (Via.PERSON, None, 8)
        used = await ledger.look(lambda tx: tx.chains.get(message.chain_id))
        assert used is not None
        assert used.messages == 1

    async def test_a_speaker_for_an_unknown_session_is_told_so(self, ledger: Ledger) -> None:
        """The source is looked up like the target."""
        target = await ledger.session()
        with pytest.raises(NotFoundError):
            await ledger.store.run(send_message, ledger.message(Sender(SessionId("ses_none"), None), target))

    async def test_eight_places_are_for_messages_and_completions_need_none(self, ledger: Ledger) -> None:
        """A sender learns that the target is busy; an answer that was asked for is never refused."""
        source, target, *workers = await ledger.sessions("ABCDEF")
        await ledger.begin(source)
        await ledger.begin(target)
        for worker in workers:
            await ledger.task(target, worker)
        for _ in range(8):
            await ledger.note(source, target)

        reason = await refused(ledger.note(source, target), Code.AGENT_BUSY)
        for worker in workers:
            turn = await ledger.running(worker)
            await ledger.settle(turn and turn.id)

        assert (reason.limit, reason.value) == ("inbox_max", 8)
        places = await ledger.places(target)
        assert (places.messages, places.completions) == (8, 4)

    async def test_a_refused_send_leaves_no_trace(self, ledger: Ledger) -> None:
        """Neither the chain nor the queue nor the feed knows of it."""
        source, target = await ledger.sessions("AB")
        turn = await ledger.turn(await ledger.begin(source))
        ledger.limit(chain_messages_max=1)
        await ledger.task(source, target)
        before, ledger.feed.topics = await ledger.last_change(), []

        reason = await refused(ledger.task(source, target), Code.LIMIT_EXCEEDED)

        assert (reason.limit, reason.value) == ("chain_messages_max", 1)
        assert await ledger.last_change() == before
        assert ledger.feed.topics == []
        used = await ledger.look(lambda tx: tx.chains.get(turn.chain_id))
        assert used is not None
        assert used.messages == 1


class ChainContract(LedgerContract):
    """What one person's input may cause."""

    async def test_a_line_has_eight_deliveries_and_the_ninth_send_is_refused(self, ledger: Ledger) -> None:
        """Each hop is one less, and the receipt shows what remains."""
        line = await ledger.sessions("abcdefghij")
        await ledger.begin(line[0])

        receipts = [await ledger.task(one, next_) for one, next_ in pairwise(line[:9])]
        reason = await refused(ledger.task(line[8], line[9]), Code.LIMIT_EXCEEDED)

        assert [receipt.message.hops for receipt in receipts] == [8, 7, 6, 5, 4, 3, 2, 1]
        assert (reason.limit, reason.value) == ("hops_max", 8)

    @pytest.mark.parametrize("length", [2, 3, 5])
    async def test_a_ring_stops_where_a_line_stops(self, ledger: Ledger, length: int) -> None:
        """Case 80: two sessions that answer each other are the common runaway."""
        ring = await ledger.sessions("abcde"[:length])
        turn_id: TurnId | None = await ledger.begin(ring[0])
        hops: list[int] = []
        for step in range(8):
            receipt = await ledger.note(ring[step % length], ring[(step + 1) % length])
            hops.append(receipt.message.hops)
            await ledger.settle(turn_id, slot=False)
            turn_id = receipt.turn_id

        reason = await refused(ledger.note(ring[8 % length], ring[9 % length]), Code.LIMIT_EXCEEDED)

        assert hops == [8, 7, 6, 5, 4, 3, 2, 1]
        assert reason.limit == "hops_max"

    async def test_a_loop_of_tasks_and_completions_has_four_rounds(self, ledger: Ledger) -> None:
        """A completion is a hop too, so work that is given out again and again comes to an end."""
        lead, worker = await ledger.sessions("AB")
        turn_id: TurnId | None = await ledger.begin(lead)
        hops: list[int] = []
        for _ in range(4):
            receipt = await ledger.task(lead, worker)
            hops.append(receipt.message.hops)
            await ledger.settle(turn_id, slot=False)
            done = await ledger.settle(receipt.turn_id)
            assert done.next is not None
            turn_id = done.next.id

        await refused(ledger.task(lead, worker), Code.LIMIT_EXCEEDED)

        assert hops == [8, 6, 4, 2]

    async def test_an_absorbed_completion_lowers_the_hops_of_its_turn(self, ledger: Ledger) -> None:
        """Reading instead of being told must not win depth."""
        lead, worker, other = await ledger.sessions("ABC")
        turn_id = await ledger.begin(lead)
        task = await ledger.task(lead, worker)
        await ledger.settle(task.turn_id, slot=False)
        await ledger.append(turn_id, task.message.id)

        assert (await ledger.turn(turn_id)).hops == 7
        assert (await ledger.task(lead, other)).message.hops == 6

    async def test_an_absorbed_completion_gives_no_hops(self, ledger: Ledger) -> None:
        """A deep turn that reads an old answer stays as deep as it was."""
        lead, worker, other = await ledger.sessions("ABC")
        turn_id = await ledger.begin(lead)
        task = await ledger.task(lead, worker)
        await ledger.settle(turn_id, slot=False)
        ledger.limit(hops_max=2)
        await ledger.begin(other)
        deep = await ledger.note(other, lead)
        await ledger.settle(task.turn_id)
        assert deep.turn_id is not None

        await ledger.append(deep.turn_id, task.message.id)

        completion = await ledger.completion(task.message.id)
        assert completion is not None
        assert (completion.turn_id, completion.hops) == (deep.turn_id, 7)
        assert (await ledger.turn(deep.turn_id)).hops == 2

    @pytest.mark.parametrize(
        ("source", "target", "expected"),
        [
            (StoredMode.AUTO, StoredMode.ASK, Mode.ASK),
            (StoredMode.ASK, StoredMode.AUTO, Mode.ASK),
            (StoredMode.ACCEPT_EDITS, StoredMode.AUTO, Mode.ACCEPT_EDITS),
            (StoredMode.AUTO, StoredMode.AUTO, Mode.AUTO),
            (StoredMode.AUTO, StoredMode.INHERIT, Mode.ASK),
            (StoredMode.INHERIT, StoredMode.AUTO, Mode.ASK),
        ],
    )
    async def test_a_turn_has_the_weaker_of_session_and_ceiling(
        self, ledger: Ledger, source: StoredMode, target: StoredMode, expected: Mode
    ) -> None:
        """Case 174: a stronger target is clamped for this turn, a weaker one stays weak, and no stored mode changes."""
        one, other = await ledger.session("A", source), await ledger.session("B", target)
        await ledger.begin(one)

        receipt = await ledger.task(one, other)

        assert (await ledger.turn(receipt.turn_id)).permission is expected
        assert (await ledger.known(other)).permission_mode is target

    async def test_the_weakest_session_on_the_way_bounds_all_behind_it(self, ledger: Ledger) -> None:
        """Asking a strong session through a weak one wins nothing, and neither does the way back."""
        strong, weak, last = [
            await ledger.session(mode.value, mode) for mode in (StoredMode.AUTO, StoredMode.ASK, StoredMode.AUTO)
        ]
        turn_id = await ledger.begin(strong)
        first = await ledger.task(strong, weak)
        second = await ledger.task(weak, last)
        await ledger.settle(turn_id, slot=False)
        done = await ledger.settle(first.turn_id)

        assert (first.message.ceiling, second.message.ceiling) == ("auto", "ask")
        assert (await ledger.turn(second.turn_id)).permission is Mode.ASK
        completion = await ledger.completion(first.message.id)
        assert completion is not None
        assert completion.ceiling == "auto"
        assert done.next is not None
        assert done.next.permission is Mode.AUTO

    async def test_a_clamped_turn_hands_on_its_own_permission(self, ledger: Ledger) -> None:
        """A strong session that works for a weak one does not lend its strength to a third."""
        weak, strong, last = [
            await ledger.session(mode.value, mode) for mode in (StoredMode.ASK, StoredMode.AUTO, StoredMode.AUTO)
        ]
        await ledger.begin(weak)
        await ledger.task(weak, strong)

        receipt = await ledger.task(strong, last)

        assert receipt.message.ceiling == "ask"
        assert (await ledger.turn(receipt.turn_id)).permission is Mode.ASK

    async def test_a_spawned_session_inherits_and_is_linked(self, ledger: Ledger) -> None:
        """Project and stored permission mode go on; the transcript does not."""
        lead = await ledger.session("lead", StoredMode.ACCEPT_EDITS)
        await ledger.configure(lead, thinking=Thinking.HIGH)
        await ledger.begin(lead)

        receipt = await ledger.spawn(lead)

        worker = await ledger.known(receipt.message.target_session_id)
        assert worker.thinking is Thinking.HIGH
        assert (worker.title, worker.permission_mode, worker.created_by) == ("work", StoredMode.ACCEPT_EDITS, lead)
        assert receipt.message.kind is Kind.TASK
        assert len(await ledger.transcript(worker.id)) == 1
        assert await ledger.look(lambda tx: tx.directory.created_by(lead, 8)) == (
            Reference(worker.id, "work", available=True),
        )

    async def test_four_workers_may_be_active_and_idle_ones_are_not_counted(self, ledger: Ledger) -> None:
        """The bound is on work under way, not on history."""
        lead = await ledger.session()
        await ledger.begin(lead)
        receipts = [await ledger.spawn(lead, slot=number % 2 == 0) for number in range(4)]

        reason = await refused(ledger.spawn(lead), Code.LIMIT_EXCEEDED)
        await ledger.settle(receipts[0].turn_id, slot=False)
        await ledger.spawn(lead)
        await refused(ledger.spawn(lead), Code.LIMIT_EXCEEDED)

        assert (reason.limit, reason.value) == ("workers_active_max", 4)

    async def test_a_person_is_not_counted_as_a_spawner(self, ledger: Ledger) -> None:
        """The bound is for agents."""
        lead = await ledger.session()
        for _ in range(6):
            await ledger.spawn(lead, slot=False)
        assert await ledger.look(lambda tx: tx.directory.workers_active(lead)) == 6

    async def test_a_worker_cannot_spawn(self, ledger: Ledger) -> None:
        """Trees of sessions grow by people only."""
        lead = await ledger.session()
        await ledger.begin(lead)
        worker = (await ledger.spawn(lead)).message.target_session_id
        with pytest.raises(HostError) as caught:
            await ledger.spawn(worker)
        assert caught.value.code is Code.PERMISSION_DENIED

    async def test_a_refused_spawn_creates_no_session(self, ledger: Ledger) -> None:
        """All or nothing: no session without its task, whichever check refuses."""
        lead = await ledger.session()
        await ledger.begin(lead)
        await ledger.spawn(lead)
        before = await ledger.last_change()

        for limit in ("chain_sessions_max", "chain_messages_max", "workers_active_max"):
            ledger.limit(**{limit: 1})
            reason = await refused(ledger.spawn(lead), Code.LIMIT_EXCEEDED)
            assert reason.limit == limit
            ledger.limit(**{limit: 9})
        with pytest.raises(InvalidArgumentError):
            await ledger.spawn(lead, title="a\x00b")

        assert await ledger.last_change() == before
        assert len(await ledger.look(lambda tx: tx.directory.page(None, 10))) == 2

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_spawn_makes_one_session(self, ledger: Ledger) -> None:
        """A lost answer must not leave a second worker."""
        lead = await ledger.session()
        await ledger.begin(lead)
        key = Key("session", "k", "f")

        first, again = await ledger.spawn(lead, key=key), await ledger.spawn(lead, key=key)

        assert again.message.target_session_id == first.message.target_session_id
        assert again.replayed
        assert len(await ledger.look(lambda tx: tx.directory.page(None, 10))) == 2
