"""Messages that a running turn takes in between two of its model requests."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import pytest

from coterie.app import describe
from coterie.app.describe import WhichResult
from coterie.app.idempotency import Key
from coterie.app.receipt import Receipt
from coterie.core.codes import Code
from coterie.core.errors import ConflictError
from coterie.core.ids import SessionId, TurnId
from coterie.core.inbound import Inbound
from coterie.core.ledger.message import Deliver, Joined, Kind, Message
from coterie.core.ledger.states import MessageState
from coterie.core.permission import StoredMode
from coterie.core.session.session import Held
from coterie.core.turn.items import Origin, PersonText, SessionText
from coterie.core.turn.states import TurnState
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.contract.steering import ANSWERED, STOPPED, End, items
from coterie.testing.ledger import Ledger

Prepare: TypeAlias = Callable[[Ledger, SessionId], Awaitable[object]]

NOT_OFFERED: Final[dict[str, tuple[Prepare, dict[str, object]]]] = {
    "the setting is off": (lambda ledger, target: ledger.configure(target, current_turn=False), {}),
    "it is a task": (lambda ledger, target: ledger.known(target), {"kind": Kind.TASK}),
    "it is not asked for": (lambda ledger, target: ledger.known(target), {"deliver": Deliver.NEXT_TURN}),
    "the turn is being cancelled": (lambda ledger, target: ledger.interrupt(target), {}),
    "it waits for a person": (lambda ledger, target: ledger.admit(target, Inbound.HOLD), {}),
}
"""What keeps a message from a running turn, and how it is sent."""


async def open_turn(
    ledger: Ledger, mode: StoredMode = StoredMode.INHERIT, *, sender: StoredMode = StoredMode.INHERIT
) -> tuple[SessionId, SessionId, TurnId]:
    """A session that runs, another one whose running turn takes messages in, and that turn."""
    source, target = await ledger.session("source", sender), await ledger.session("target", mode)
    await ledger.begin(source)
    await ledger.configure(target, current_turn=True)
    return source, target, await ledger.begin(target)


async def offer(ledger: Ledger, source: SessionId, target: SessionId, **changes: Any) -> Receipt:
    """Send a message for the running turn of *target*."""
    wanted = {"kind": Kind.MESSAGE, "notify": False, "deliver": Deliver.CURRENT_TURN}
    return await ledger.send(source, target, **wanted | changes)


async def accepted(ledger: Ledger, **changes: Any) -> tuple[SessionId, SessionId, Message]:
    """A sender, its target, and a message that the target's running turn has taken in."""
    source, target, turn_id = await open_turn(ledger)
    receipt = await offer(ledger, source, target, **changes)
    assert await ledger.take_news(turn_id)
    return source, target, await ledger.read(receipt.message.id)


async def told(ledger: Ledger, session: SessionId) -> list[str]:
    """What other sessions have said, in the order of the transcript."""
    return [item.content for item in await items(ledger, session) if isinstance(item, SessionText)]


class CurrentTurnContract(LedgerContract):
    """Off by default; where it is on, a message joins at the next request of the turn that runs when it is sent."""

    async def test_it_is_off_unless_a_person_turns_it_on(self, ledger: Ledger) -> None:
        """A message in the middle of a turn may turn it, so nobody gets that unasked."""
        assert not (await ledger.known(await ledger.session())).current_turn

    @pytest.mark.parametrize(("prepare", "changes"), NOT_OFFERED.values(), ids=NOT_OFFERED)
    async def test_what_cannot_join_waits_for_a_turn_of_its_own(
        self, ledger: Ledger, prepare: Prepare, changes: dict[str, object]
    ) -> None:
        """The receipt says so: the sender must not count on the running turn."""
        source, target, turn_id = await open_turn(ledger)
        await prepare(ledger, target)

        receipt = await offer(ledger, source, target, **changes)

        assert (receipt.deliver, receipt.position) == (Deliver.NEXT_TURN, 1)
        assert [waiting.turn_id for waiting in await ledger.queue(target)] == [None]
        assert not await ledger.take_news(turn_id)
        assert await ledger.state(receipt.message.id) is MessageState.QUEUED

    @pytest.mark.parametrize("slot", [True, False])
    async def test_an_idle_session_has_no_turn_to_join(self, ledger: Ledger, *, slot: bool) -> None:
        """It starts one for the message, and a turn that comes before that one does not take it in."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.configure(target, current_turn=True)
        receipt = await offer(ledger, source, target, slot=slot)
        assert (receipt.deliver, receipt.turn_id is not None) == (Deliver.NEXT_TURN, slot)
        if not slot:
            await ledger.prompt(target)
            turn = await ledger.claim()
            assert turn is not None
            assert turn.kind == "prompt"
            assert not await ledger.take_news(turn.id)

    @pytest.mark.guarantee("I2")
    async def test_a_message_joins_the_running_turn(self, ledger: Ledger) -> None:
        """It leaves the queue for that turn, with its origin, and starts none."""
        source, target, turn_id = await open_turn(ledger)
        await ledger.append(turn_id)
        receipt = await offer(ledger, source, target, content="by the way")
        before = await ledger.state(receipt.message.id)

        took = await ledger.take_news(turn_id)

        assert (receipt.deliver, receipt.turn_id, before, took) == (
            Deliver.CURRENT_TURN,
            None,
            MessageState.QUEUED,
            True,
        )
        message = await ledger.read(receipt.message.id)
        assert (message.state, message.joined, message.turn_id) == (MessageState.RUNNING, Joined.ACCEPTED, turn_id)
        last = (await ledger.transcript(target))[-1]
        assert isinstance(last.item, SessionText)
        origin = Origin(message.id, source, "source", target, kind="message")
        assert (last.turn_id, last.item.content, last.item.origin) == (turn_id, "by the way", origin)
        assert (await ledger.places(target)).waiting == 0
        running = await ledger.running(target)
        assert running is not None
        assert (running.id, running.news) == (turn_id, False)
        assert not await ledger.take_news(turn_id)

    async def test_who_turns_it_off_keeps_out_what_was_offered_before(self, ledger: Ledger) -> None:
        """The setting counts when the message would join; then it waits for a turn of its own, and says so."""
        source, target, turn_id = await open_turn(ledger)
        receipt = await offer(ledger, source, target)
        await ledger.configure(target, current_turn=False)
        await ledger.steer(target)
        took = await ledger.take_news(turn_id)
        kept = await ledger.state(receipt.message.id)
        await ledger.configure(target, current_turn=True)
        running = await ledger.running(target)
        assert took
        assert kept is MessageState.QUEUED
        assert running is not None
        assert not running.news
        assert not await ledger.take_news(turn_id)
        settled = await ledger.settle(turn_id)
        assert settled.next is not None
        assert settled.next.message_id == receipt.message.id

    async def test_what_waited_before_is_not_offered_later(self, ledger: Ledger) -> None:
        """Neither when the setting is turned on, nor when the send is repeated with its key."""
        source, target, turn_id = await open_turn(ledger)
        await ledger.configure(target, current_turn=False)
        key = Key(source, "k", "f")
        first = await offer(ledger, source, target, key=key)
        await ledger.configure(target, current_turn=True)

        again = await offer(ledger, source, target, key=key)

        assert (again.message.id, again.replayed) == (first.message.id, True)
        assert not await ledger.take_news(turn_id)

    @pytest.mark.guarantee("I14")
    async def test_an_offer_that_is_repeated_with_its_key_joins_once(self, ledger: Ledger) -> None:
        """And the second receipt tells what has become of it."""
        source, target, turn_id = await open_turn(ledger)
        key = Key(source, "k", "f")
        first = await offer(ledger, source, target, key=key, content="once")
        waiting = await offer(ledger, source, target, key=key, content="once")
        await ledger.take_news(turn_id)
        joined = await offer(ledger, source, target, key=key, content="once")
        await ledger.take_news(turn_id)

        assert {one.message.id for one in (first, waiting, joined)} == {first.message.id}
        assert (waiting.message.state, joined.message.state) == (MessageState.QUEUED, MessageState.RUNNING)
        assert await told(ledger, target) == ["once"]

    async def test_one_request_takes_in_so_many_and_the_next_the_rest(self, ledger: Ledger) -> None:
        """In the order in which they came, and a person's words among them are not kept waiting."""
        source, target, turn_id = await open_turn(ledger)
        ledger.limit(accepted_per_request_max=2)
        for content in "abc":
            await offer(ledger, source, target, content=content)
        await ledger.steer(target, "left")
        await offer(ledger, source, target, content="d")

        await ledger.take_news(turn_id)
        first, words = await told(ledger, target), (await items(ledger, target))[-1]
        await ledger.take_news(turn_id)

        assert first == ["a", "b"]
        assert words == PersonText("left")
        assert await told(ledger, target) == ["a", "b", "c", "d"]
        assert not await ledger.take_news(turn_id)

    async def test_eight_join_at_one_request_unless_a_person_says_otherwise(self, ledger: Ledger) -> None:
        """The bounds that the documentation names."""
        limits = ledger.host.limits
        assert (limits.accepted_per_request_max, limits.accepted_per_turn_max) == (8, 128)

    async def test_a_turn_takes_in_so_many_and_no_more(self, ledger: Ledger) -> None:
        """What is beyond gets a turn of its own, so nobody can keep a turn from ending."""
        source, target, turn_id = await open_turn(ledger)
        ledger.limit(accepted_per_turn_max=2)
        receipts = [await offer(ledger, source, target, content=content) for content in "abc"]

        await ledger.take_news(turn_id)
        again = await ledger.take_news(turn_id)
        following = (await ledger.settle(turn_id)).next

        assert not again
        assert following is not None
        assert following.message_id == receipts[2].message.id
        assert await told(ledger, target) == ["a", "b", "c"]

    @pytest.mark.guarantee("I7")
    async def test_a_completion_joins_the_turn_that_waits_for_it_or_not(self, ledger: Ledger) -> None:
        """It is one row as ever, tells what it answers, and asks for no answer itself."""
        source, worker = await ledger.sessions("AB")
        await ledger.configure(source, current_turn=True)
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, worker)
        await ledger.settle(receipt.turn_id, "42")

        took = await ledger.take_news(turn_id)
        completion = await ledger.completion(receipt.message.id)
        settled = await ledger.settle(turn_id)

        assert took
        assert completion is not None
        assert (completion.joined, completion.turn_id) == (Joined.ACCEPTED, turn_id)
        last = (await items(ledger, source))[-2]
        assert isinstance(last, SessionText)
        assert (last.origin.kind, last.origin.reply_to_message_id) == ("completion", receipt.message.id)
        assert settled.next is None
        assert await ledger.state(completion.id) is MessageState.COMPLETED
        assert await ledger.completion(completion.id) is None
        assert [(await ledger.places(session)).waiting for session in (source, worker)] == [0, 0]

    @pytest.mark.parametrize(
        ("sender", "mode", "joins"),
        [
            (StoredMode.ASK, StoredMode.AUTO, False),
            (StoredMode.ASK, StoredMode.ACCEPT_EDITS, False),
            (StoredMode.ACCEPT_EDITS, StoredMode.AUTO, False),
            (StoredMode.AUTO, StoredMode.AUTO, True),
            (StoredMode.AUTO, StoredMode.ASK, True),
        ],
    )
    async def test_a_message_joins_no_turn_that_may_do_more_than_its_sender(
        self, ledger: Ledger, sender: StoredMode, mode: StoredMode, *, joins: bool
    ) -> None:
        """Else a weak session would speak in the middle of what a strong one may do; its own turn is clamped."""
        source, target, turn_id = await open_turn(ledger, mode, sender=sender)
        receipt = await offer(ledger, source, target)

        took = await ledger.take_news(turn_id)
        offers = [waiting.turn_id for waiting in await ledger.queue(target)]
        following = (await ledger.settle(turn_id)).next

        assert (took, offers) == ((True, []) if joins else (False, [None]))
        assert (following is None) is joins
        if following is not None:
            assert (following.message_id, following.permission.value) == (receipt.message.id, sender.value)


class AcceptedContract(LedgerContract):
    """What has joined a turn ends with it, bounds it, and is not taken out of it."""

    @pytest.mark.guarantee("I6")
    @pytest.mark.guarantee("I7")
    @pytest.mark.parametrize("end", [*ANSWERED.values(), *STOPPED.values()], ids=[*ANSWERED, *STOPPED])
    async def test_it_ends_as_its_turn_ends_and_its_sender_is_told(self, ledger: Ledger, end: End) -> None:
        """Result and error are the turn's; whoever asked for a completion gets it, whatever the end was."""
        source, target, message = await accepted(ledger, notify=True)
        assert message.turn_id is not None

        await end(ledger, message.turn_id)

        turn, ended = await ledger.turn(message.turn_id), await ledger.read(message.id)
        assert turn.state is not TurnState.RUNNING
        assert (ended.state.value, ended.result) == (turn.state.value, turn.result)
        assert ended.error == (f"{turn.error_code}: {turn.error}" if turn.error_code else None)
        completion = await ledger.completion(message.id)
        assert completion is not None
        assert completion.target_session_id == source
        assert completion.hops == message.hops - 1
        assert await ledger.running(target) is None

    async def test_one_that_asks_for_no_completion_gets_none(self, ledger: Ledger) -> None:
        """As for a message with a turn of its own."""
        _, _, message = await accepted(ledger)
        await ledger.settle(message.turn_id)
        assert await ledger.completion(message.id) is None

    async def test_it_lowers_the_hops_of_the_turn(self, ledger: Ledger) -> None:
        """Else two sessions could go on for ever in the middle of each other's turns."""
        ledger.limit(hops_max=2)
        source, target, turn_id = await open_turn(ledger)
        further = await ledger.session()
        middle = await ledger.task(source, further)
        assert middle.message.hops == 2
        await offer(ledger, further, target)
        before = await ledger.turn(turn_id)

        await ledger.take_news(turn_id)
        after = await ledger.turn(turn_id)

        assert (before.hops, after.hops) == (3, 1)
        reason = await refused(ledger.task(target, source), Code.LIMIT_EXCEEDED)
        assert (reason.limit, reason.value) == ("hops_max", 2)
        assert (await ledger.turn(turn_id)).state is TurnState.RUNNING

    @pytest.mark.parametrize("agent", [True, False])
    async def test_it_is_not_cancelled_by_its_name(self, ledger: Ledger, *, agent: bool) -> None:
        """It is part of work that is not its sender's: nobody's turn is stopped for it."""
        source, target, message = await accepted(ledger)
        with pytest.raises(ConflictError, match="part of a running turn"):
            await ledger.cancel(target, message.id, by=source if agent else None)
        turn = await ledger.turn(message.turn_id)
        assert (turn.state, turn.fenced) == (TurnState.RUNNING, False)

    async def test_it_is_passed_over_where_its_sender_cancels_all_that_it_has_sent(self, ledger: Ledger) -> None:
        """The rest is stopped."""
        source, target, message = await accepted(ledger)
        waiting = await ledger.task(source, target)
        stopped = await ledger.cancel(target, by=source)
        assert (stopped.message_ids, stopped.turn_ids) == ([waiting.message.id], [])
        assert not (await ledger.turn(message.turn_id)).fenced

    async def test_it_is_passed_over_where_the_turn_that_sent_it_is_cancelled(self, ledger: Ledger) -> None:
        """A cascade goes down into work that was given, and this was a word in another's."""
        source, _, message = await accepted(ledger, notify=True)
        stopped = await ledger.interrupt(source)
        assert stopped.message_ids == []
        assert not (await ledger.turn(message.turn_id)).fenced
        assert await ledger.state(message.id) is MessageState.RUNNING

    async def test_a_person_who_stops_the_turn_stops_it_too(self, ledger: Ledger) -> None:
        """Its outcome is the turn's, once the worker has let go."""
        _, target, message = await accepted(ledger)
        stopped = await ledger.cancel(target)
        before = await ledger.state(message.id)
        await ledger.settle(message.turn_id, "late")
        assert (stopped.message_ids, stopped.turn_ids) == ([], [message.turn_id])
        assert before is MessageState.RUNNING
        assert await ledger.state(message.id) is MessageState.CANCELLED

    async def test_its_outcome_is_found_by_the_turn_that_took_it_in(self, ledger: Ledger) -> None:
        """As for one that the turn was created for."""
        _, target, message = await accepted(ledger)
        found = await ledger.store.read(describe.result, WhichResult(target, None, message.turn_id, None))
        assert found == (False, message)

    async def test_a_completion_that_was_taken_in_is_not_absorbed_as_well(self, ledger: Ledger) -> None:
        """Reading the outcome afterwards changes nothing: it has left the queue once."""
        source, worker = await ledger.sessions("AB")
        await ledger.configure(source, current_turn=True)
        turn_id = await ledger.begin(source)
        receipt = await ledger.task(source, worker)
        await ledger.settle(receipt.turn_id)
        await ledger.take_news(turn_id)
        before = await ledger.completion(receipt.message.id)

        await ledger.append(turn_id, receipt.message.id)

        assert await ledger.completion(receipt.message.id) == before

    @pytest.mark.guarantee("I9")
    async def test_after_a_crash_it_is_interrupted_and_in_the_transcript_once(self, ledger: Ledger) -> None:
        """Item and move were one commit, so there is nothing to repair; a second start changes nothing."""
        _, target, message = await accepted(ledger, content="once")
        for _ in range(2):
            await ledger.restart()
            assert await ledger.state(message.id) is MessageState.INTERRUPTED
            assert await told(ledger, target) == ["once"]
            assert (await ledger.places(target)).waiting == 0

    @pytest.mark.guarantee("I9")
    async def test_after_a_crash_what_was_only_offered_waits_in_a_held_queue(self, ledger: Ledger) -> None:
        """No model has seen it; it has one place, and runs once when a person lets it."""
        source, target, _ = await open_turn(ledger)
        receipt = await offer(ledger, source, target, content="once")
        for _ in range(2):
            await ledger.restart()
            (waiting,) = await ledger.queue(target)
            assert (waiting.message_id, waiting.turn_id) == (receipt.message.id, None)
            assert (await ledger.known(target)).held is Held.RESTART
        await ledger.release(target)
        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == receipt.message.id
        assert await told(ledger, target) == ["once"]
