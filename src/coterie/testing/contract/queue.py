"""What waits, in which order it starts, and what a held session does."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

import asyncio
from dataclasses import replace

import pytest

from coterie.app.idempotency import KEPT_DAYS, Key, anything_old, forget_old
from coterie.app.release import Release, release
from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError, NotFoundError
from coterie.core.ids import InputId, SessionId, TurnId
from coterie.core.session.session import Held
from coterie.ports.feed import READY
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


class QueueContract(LedgerContract):
    """One queue for each session; people first, but not for ever."""

    @pytest.mark.guarantee("I1")
    async def test_thirty_prompts_at_once_start_one_turn(self, ledger: Ledger) -> None:
        """The database holds the promise, not the manners of its callers."""
        session = await ledger.session()
        ledger.limit(prompts_max=30)

        prompted = await asyncio.gather(*(ledger.prompt(session, f"{number}") for number in range(30)))

        assert len([one for one in prompted if one.turn_id]) == 1
        assert sorted(one.position for one in prompted if one.position) == list(range(1, 30))

    @pytest.mark.guarantee("I1")
    async def test_a_second_running_turn_is_refused_by_the_database(self, ledger: Ledger) -> None:
        """Even a use case that forgot to look cannot write one."""
        session = await ledger.session()
        turn = await ledger.turn(await ledger.begin(session))
        twin = replace(turn, id=TurnId("turn_twin"), input_id=InputId("inp_twin"))

        added = await ledger.change(lambda tx: tx.turns.add(twin))

        assert not added
        assert await ledger.running(session) == turn

    @pytest.mark.guarantee("I2")
    async def test_claims_at_once_start_each_input_once(self, ledger: Ledger) -> None:
        """Ten free slots and four inputs make four turns."""
        sessions = await ledger.sessions("ABCD")
        for session in sessions:
            await ledger.prompt(session, slot=False)

        claimed = [turn for turn in await asyncio.gather(*(ledger.claim() for _ in range(10))) if turn]

        assert sorted(turn.session_id for turn in claimed) == sorted(sessions)
        assert len({turn.input_id for turn in claimed}) == 4

    async def test_people_have_eight_places_of_their_own(self, ledger: Ledger) -> None:
        """Messages of sessions do not keep a person out, nor the other way round."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        for _ in range(8):
            await ledger.note(source, target, slot=False)
        for _ in range(8):
            await ledger.prompt(target, slot=False)

        reason = await refused(ledger.prompt(target), Code.QUEUE_FULL)

        assert (reason.limit, reason.value) == ("prompts_max", 8)

    async def test_prompts_go_first_and_the_fourth_in_a_row_lets_a_message_pass(self, ledger: Ledger) -> None:
        """A busy person cannot starve the sessions that wait for an answer."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        for _ in range(2):
            await ledger.note(source, target, slot=False)
        for _ in range(5):
            await ledger.prompt(target, slot=False)

        kinds: list[str] = []
        while (turn := await ledger.claim()) is not None:
            kinds.append(turn.kind)
            await ledger.settle(turn.id, slot=False)

        assert kinds == ["prompt", "prompt", "prompt", "message", "prompt", "prompt", "message"]

    async def test_order_is_by_number_when_the_clock_steps_back(self, ledger: Ledger) -> None:
        """Clocks step back; a queue does not, and neither does the time of rows."""
        session = await ledger.session()
        first = await ledger.prompt(session, slot=False)
        before = (await ledger.known(session)).updated_at
        ledger.clock.set_back(3600)
        await ledger.prompt(session, slot=False)
        await ledger.restart()
        await ledger.release()

        turn = await ledger.claim()

        assert turn is not None
        assert turn.input_id == first.input_id
        assert (await ledger.known(session)).updated_at >= before

    async def test_a_free_slot_goes_to_what_has_waited_longest(self, ledger: Ledger) -> None:
        """Over all sessions, whatever ids and titles say."""
        sessions = (await ledger.sessions("CAB"))[::-1]
        for session in sessions:
            await ledger.prompt(session, slot=False)
        assert [turn.session_id for turn in [await ledger.claim() for _ in range(3)] if turn] == sessions
        assert await ledger.claim() is None

    async def test_settling_gives_the_slot_to_another_session_that_waits(self, ledger: Ledger) -> None:
        """A session with a long queue does not keep the slot from the others."""
        busy, other = await ledger.sessions("AB")
        turn_id = await ledger.begin(busy)
        await ledger.prompt(busy)
        await ledger.prompt(other, slot=False)

        handed = await ledger.settle(turn_id)
        assert handed.next is not None
        back = await ledger.settle(handed.next.id)

        assert handed.next.session_id == other
        assert back.next is not None
        assert back.next.session_id == busy

    async def test_settling_without_a_slot_starts_nothing(self, ledger: Ledger) -> None:
        """A host that stops lets its turns end and begins none."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        await ledger.prompt(session)

        settled = await ledger.settle(turn_id, slot=False)

        assert settled.next is None
        assert READY in ledger.feed.topics
        assert (await ledger.known(session)).ready is not None

    async def test_a_running_session_queues_even_with_a_slot(self, ledger: Ledger) -> None:
        """A slot is the host's, the queue is the session's."""
        session = await ledger.session()
        await ledger.begin(session)
        prompted = await ledger.prompt(session)
        assert (prompted.turn_id, prompted.position) == (None, 1)

    async def test_who_waits_behind_others_does_not_overtake_them(self, ledger: Ledger) -> None:
        """A prompt with a slot does not start before an input that was there."""
        session = await ledger.session()
        first = await ledger.prompt(session, slot=False)
        second = await ledger.prompt(session)
        turn = await ledger.claim()
        assert second.turn_id is None
        assert turn is not None
        assert turn.input_id == first.input_id

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_prompt_is_one_input(self, ledger: Ledger) -> None:
        """The replay tells the turn that has begun meanwhile."""
        session, key = await ledger.session(), Key("person", "k", "f")
        first = await ledger.prompt(session, slot=False, key=key)
        turn = await ledger.claim()

        again = await ledger.prompt(session, key=key)

        assert turn is not None
        assert (again.input_id, again.turn_id, again.replayed) == (first.input_id, turn.id, True)
        assert (await ledger.places(session)).waiting == 0

    async def test_a_prompt_to_nobody_or_of_nothing_is_told_so(self, ledger: Ledger) -> None:
        """Shape first, then the name."""
        with pytest.raises(NotFoundError):
            await ledger.prompt(SessionId("ses_none"))
        with pytest.raises(InvalidArgumentError):
            await ledger.prompt(SessionId("ses_none"), " ")


class HeldContract(LedgerContract):
    """A held queue moves when a person says so, and shows that it is held."""

    async def _held(self, ledger: Ledger, *, prompts: int = 1) -> SessionId:
        session = await ledger.session("held")
        for number in range(prompts):
            await ledger.prompt(session, f"{number}", slot=False)
        await ledger.restart()
        return session

    @pytest.mark.guarantee("I16")
    async def test_a_held_session_waits_and_says_why(self, ledger: Ledger) -> None:
        """It is not ready, a slot finds nothing, and a sender is told."""
        session, source = await self._held(ledger), await ledger.session()
        await ledger.begin(source)

        receipt = await ledger.task(source, session)

        assert (await ledger.known(session)).held is Held.RESTART
        assert await ledger.claim() is None
        assert (receipt.turn_id, receipt.position, receipt.held) == (None, 1, True)

    @pytest.mark.guarantee("I16")
    async def test_an_idle_session_with_a_queue_is_ready_or_held(self, ledger: Ledger) -> None:
        """The two reasons that there are, each in the session's own row."""
        session = await ledger.session()
        await ledger.prompt(session, slot=False)
        free = await ledger.known(session)
        await ledger.restart()
        held = await ledger.known(session)
        await ledger.release(session)
        released = await ledger.known(session)

        assert [(one.held, one.ready is not None) for one in (free, held, released)] == [
            (None, True),
            (Held.RESTART, False),
            (None, True),
        ]

    @pytest.mark.guarantee("I16")
    async def test_a_free_slot_is_called_for_whenever_an_input_can_use_it(self, ledger: Ledger) -> None:
        """The wake-up follows from the rows, so no path into the queue can forget it."""
        session = await ledger.session()
        ledger.feed.topics = []
        await ledger.prompt(session, slot=False)
        called_by_prompt = READY in ledger.feed.topics
        await ledger.restart()
        ledger.feed.topics = []
        await ledger.release()
        assert called_by_prompt
        assert READY in ledger.feed.topics

    async def test_release_frees_one_or_all_and_none_is_no_fault(self, ledger: Ledger) -> None:
        """It may be pressed twice."""
        first, second = await ledger.sessions("AB")
        for session in (first, second):
            await ledger.prompt(session, slot=False)
        await ledger.restart()

        assert await ledger.release(first) == 1
        assert await ledger.release(first) == 0
        assert await ledger.release() == 1
        assert await ledger.release() == 0
        with pytest.raises(NotFoundError):
            await ledger.release(SessionId("ses_none"))

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_release_answers_as_before(self, ledger: Ledger) -> None:
        """A session that was held again meanwhile stays held."""
        session = await self._held(ledger)
        command = Release(None, Key("person", "k", "f"))
        first = await ledger.store.run(release, command)
        await ledger.restart()

        again = await ledger.store.run(release, command)

        assert (first, again) == ((1, False), (1, True))
        assert (await ledger.known(session)).held is Held.RESTART

    @pytest.mark.parametrize("prompts", [0, 1, 3])
    async def test_a_prompt_frees_a_held_session_and_runs_first(self, ledger: Ledger, prompts: int) -> None:
        """What the person says now is about what is there now, so it goes before what waited."""
        session, source = await self._held(ledger, prompts=prompts), await ledger.session()
        await ledger.change(lambda tx: tx.sessions.hold(session, Held.RESTART))
        await ledger.change(lambda tx: tx.sessions.set_streak(session, 3))
        await ledger.begin(source)
        await ledger.note(source, session)

        prompted = await ledger.prompt(session, "now", slot=False)
        turn = await ledger.claim()

        assert prompted.position == 1
        assert turn is not None
        assert turn.input_id == prompted.input_id
        assert (await ledger.known(session)).held is None

    async def test_a_prompt_to_a_held_session_without_a_queue_starts_at_once(self, ledger: Ledger) -> None:
        """Nothing waits before it, so it needs no way through the queue."""
        session = await ledger.session()
        await ledger.change(lambda tx: tx.sessions.hold(session, Held.RESTART))
        started: TurnId | None = (await ledger.prompt(session)).turn_id
        assert started is not None

    async def test_a_prompt_that_frees_a_session_begins_a_new_row_of_human_turns(self, ledger: Ledger) -> None:
        """What happened before the hold must not let a message overtake the next prompts."""
        session = await ledger.session()
        await ledger.change(lambda tx: tx.sessions.set_streak(session, 3))
        await ledger.change(lambda tx: tx.sessions.hold(session, Held.RESTART))
        await ledger.begin(session)
        assert (await ledger.known(session)).streak == 1

    @pytest.mark.guarantee("I16")
    async def test_a_turn_that_ends_in_a_held_session_starts_nothing_of_its_queue(self, ledger: Ledger) -> None:
        """The hold is on the queue, whoever asks for its next input."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        await ledger.prompt(session)
        await ledger.change(lambda tx: tx.sessions.hold(session, Held.RESTART))

        settled = await ledger.settle(turn_id)

        assert settled.next is None
        assert (await ledger.places(session)).prompts == 1

    @pytest.mark.guarantee("I14")
    async def test_the_key_of_an_act_is_forgotten_in_time_and_that_of_a_row_never(self, ledger: Ledger) -> None:
        """What made a row answers as long as the row is there; a release is worth thirty days."""
        session = await ledger.session()
        command, key = Release(None, Key("person", "act", "f")), Key("person", "row", "f")
        await ledger.store.run(release, command)
        prompted = await ledger.prompt(session, key=key)
        ledger.clock.advance(KEPT_DAYS * 86_400 - 1)
        assert not await ledger.store.read(anything_old, ledger.clock.now_ms())
        ledger.clock.advance(1)

        assert await ledger.store.read(anything_old, ledger.clock.now_ms())
        assert await ledger.store.run(forget_old, None) == 1
        assert (await ledger.store.run(release, command))[1] is False
        assert (await ledger.prompt(session, key=key)).input_id == prompted.input_id
