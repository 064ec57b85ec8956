"""What a session does with what others send: it accepts, holds or refuses."""

from dataclasses import replace

import pytest

from coterie.app.idempotency import Key
from coterie.app.release import Release, release
from coterie.core.codes import Code
from coterie.core.ids import SessionId
from coterie.core.inbound import Across, Inbound, Waiting
from coterie.core.ledger.states import MessageState
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


async def near_and_far(ledger: Ledger) -> tuple[SessionId, SessionId]:
    """A running session of one project and an idle one of another."""
    source = await ledger.session("near", project="/near")
    await ledger.begin(source)
    return source, await ledger.session("far", project="/far")


async def marks(ledger: Ledger, session: SessionId) -> list[Waiting | None]:
    """Why each input of a queue waits, in order."""
    return [waiting.waiting for waiting in await ledger.queue(session)]


class InboundContract(LedgerContract):
    """A session accepts, holds or refuses what other sessions send; completions and people are not judged."""

    @pytest.mark.guarantee("I16")
    async def test_what_a_session_holds_waits_marked_until_a_person_releases_it(self, ledger: Ledger) -> None:
        """The sender is told, no slot finds it, and yet the session is free for everything else."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.admit(target, Inbound.HOLD)

        receipt = await ledger.task(source, target)
        nothing, known = await ledger.claim(), await ledger.known(target)
        freed = await ledger.release(target)
        turn = await ledger.claim()

        assert (receipt.waiting, receipt.turn_id, receipt.position, receipt.held) == (Waiting.POLICY, None, 1, False)
        assert nothing is None
        assert (known.held, known.ready) == (None, None)
        assert freed == 1
        assert turn is not None
        assert turn.message_id == receipt.message.id

    async def test_what_a_session_refuses_leaves_no_trace(self, ledger: Ledger) -> None:
        """Nothing is charged and nobody is woken; a session that is asked to take messages again does."""
        source, target = await ledger.sessions("AB")
        turn = await ledger.turn(await ledger.begin(source))
        await ledger.admit(target, Inbound.REFUSE)
        before, ledger.feed.topics = await ledger.last_change(), []

        for send in (ledger.task, ledger.note):
            await refused(send(source, target), Code.PERMISSION_DENIED)

        assert await ledger.last_change() == before
        assert ledger.feed.topics == []
        assert (await ledger.chain(turn.chain_id)).messages == 0
        await ledger.admit(target, Inbound.ACCEPT)
        assert (await ledger.task(source, target)).turn_id is not None

    @pytest.mark.parametrize("inbound", list(Inbound))
    @pytest.mark.parametrize("across", list(Across))
    async def test_an_answer_passes_every_policy(self, ledger: Ledger, inbound: Inbound, across: Across) -> None:
        """Whoever has asked wants to know, and the answer brings no rights of its own."""
        source, target = await near_and_far(ledger)
        asking = await ledger.running(source)
        ledger.become(replace(ledger.host, across=Across.ALLOW))
        task = await ledger.task(source, target)
        ledger.become(replace(ledger.host, across=across))
        await ledger.admit(source, inbound)
        await ledger.settle(asking and asking.id, slot=False)

        done = await ledger.settle(task.turn_id)

        assert done.next is not None
        assert (done.next.session_id, done.next.kind) == (source, "completion")
        assert await ledger.asked() == ()

    @pytest.mark.parametrize("inbound", list(Inbound))
    @pytest.mark.parametrize("across", list(Across))
    async def test_a_person_who_speaks_for_a_session_asks_nobody(
        self, ledger: Ledger, inbound: Inbound, across: Across
    ) -> None:
        """The policies are questions to a person, and a person has just said what to do."""
        source = await ledger.session("near", project="/near")
        target = await ledger.session("far", project="/far")
        ledger.become(replace(ledger.host, across=across))
        await ledger.admit(target, inbound)

        receipt = await ledger.task(source, target)

        assert (receipt.waiting, receipt.turn_id is not None) == (None, True)
        assert await ledger.asked() == ()

    async def test_a_claim_passes_by_what_waits_and_runs_what_is_behind_it(self, ledger: Ledger) -> None:
        """The mark is on the input, not on the queue; and the place of what waits is kept."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.admit(target, Inbound.HOLD)
        first = await ledger.task(source, target)
        await ledger.admit(target, Inbound.ACCEPT)
        second, third = [await ledger.task(source, target, slot=False) for _ in range(2)]

        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == second.message.id
        assert (await ledger.known(target)).held is None
        await ledger.release(target)
        await ledger.settle(turn.id, slot=False)
        turn = await ledger.claim()

        assert turn is not None
        assert turn.message_id == first.message.id
        assert await ledger.state(third.message.id) is MessageState.QUEUED

    async def test_a_prompt_runs_before_what_waits_for_a_person(self, ledger: Ledger) -> None:
        """Whoever speaks to a session is not kept out by what others have sent."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.admit(target, Inbound.HOLD)
        await ledger.task(source, target)

        prompted = await ledger.prompt(target, slot=False)
        turn = await ledger.claim()

        assert turn is not None
        assert turn.input_id == prompted.input_id
        settled = await ledger.settle(turn.id)
        assert settled.next is None
        assert await marks(ledger, target) == [Waiting.POLICY]

    async def test_what_waits_for_a_person_takes_a_place(self, ledger: Ledger) -> None:
        """A session that holds everything must not fill up without end."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(inbox_max=1)
        await ledger.admit(target, Inbound.HOLD)
        await ledger.task(source, target)
        await refused(ledger.task(source, target), Code.AGENT_BUSY)

    async def test_a_promoted_input_that_waits_for_a_person_waits_on(self, ledger: Ledger) -> None:
        """Order is one thing and leave another; once it may start, it starts first."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.admit(target, Inbound.HOLD)
        receipt = await ledger.task(source, target)
        (waiting,) = await ledger.queue(target)
        prompts = [await ledger.prompt(target, slot=False) for _ in range(2)]

        await ledger.promote(target, waiting.id)
        first = await ledger.claim()
        await ledger.release(target)
        assert first is not None
        await ledger.settle(first.id, slot=False)
        second = await ledger.claim()

        assert first.input_id == prompts[0].input_id
        assert second is not None
        assert second.message_id == receipt.message.id

    async def test_a_release_frees_the_named_session_or_all(self, ledger: Ledger) -> None:
        """Each session that had something to free is counted once."""
        source, *targets = await ledger.sessions("ABCD")
        await ledger.begin(source)
        for target in targets:
            await ledger.admit(target, Inbound.HOLD)
            for _ in range(2):
                await ledger.task(source, target)

        freed = [await ledger.release(session) for session in (targets[0], targets[0], source, None, None)]

        assert freed == [1, 0, 0, 2, 0]
        assert [await marks(ledger, target) for target in targets] == [[None, None]] * 3

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_release_frees_nothing_that_came_later(self, ledger: Ledger) -> None:
        """The person has seen what was there then."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.admit(target, Inbound.HOLD)
        await ledger.task(source, target)
        command = Release(target, Key("person", "k", "f"))
        first = await ledger.store.run(release, command)
        await ledger.task(source, target)

        again = await ledger.store.run(release, command)

        assert (first, again) == ((1, False), (1, True))
        assert await marks(ledger, target) == [None, Waiting.POLICY]

    @pytest.mark.guarantee("I9")
    async def test_what_waits_for_a_person_waits_over_a_restart(self, ledger: Ledger) -> None:
        """A prompt that frees the held session frees nothing that the session's policy keeps."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        await ledger.admit(target, Inbound.HOLD)
        await ledger.task(source, target)
        await ledger.restart()

        prompted = await ledger.prompt(target)

        assert prompted.status == "queued"
        turn = await ledger.claim()
        assert turn is not None
        await ledger.settle(turn.id)
        assert await ledger.claim() is None
        assert await marks(ledger, target) == [Waiting.POLICY]
