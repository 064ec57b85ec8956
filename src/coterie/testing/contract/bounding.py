"""What one person's input may cost, and what its messages are charged to."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coterie.app.idempotency import Key
from coterie.app.release import Answer, Release, release
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.chain import MICRO
from coterie.core.codes import Code
from coterie.core.ids import ChainId, SessionId, TurnId
from coterie.core.inbound import Inbound, Waiting
from coterie.core.ledger.message import Deliver
from coterie.core.ledger.states import MessageState
from coterie.core.turn.items import Reply
from coterie.core.turn.states import TurnState
from coterie.testing.contract.admitting import marks
from coterie.testing.contract.arranging import orders
from coterie.testing.contract.current_turn import offer
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger

BUDGET: Final = Waiting.BUDGET


async def cheap(ledger: Ledger) -> tuple[SessionId, TurnId, ChainId]:
    """A lead that runs a prompt, on a host where a chain may cost one dollar, or a hundred tokens."""
    ledger.limit(chain_cost_max=1, chain_tokens_max=100)
    lead = await ledger.session("lead")
    turn = await ledger.turn(await ledger.begin(lead))
    return lead, turn.id, turn.chain_id


class SpendingContract(LedgerContract):
    """At its bound in money or tokens a chain waits for a person, and nothing else does."""

    @pytest.mark.guarantee("I12")
    @pytest.mark.parametrize(
        ("cost", "tokens", "spent"),
        [
            (MICRO - 1, None, False),
            (MICRO, None, True),
            (None, 99, False),
            (None, 100, True),
            (1, 1_000, False),
            (0, 1_000, False),
        ],
    )
    @pytest.mark.guarantee("I16")
    async def test_the_settle_that_spends_a_chain_marks_what_waits_of_it_everywhere(
        self, ledger: Ledger, cost: int | None, tokens: int | None, *, spent: bool
    ) -> None:
        """In idle and in running sessions, in one transaction; tokens count only where no price is known."""
        lead, turn_id, _ = await cheap(ledger)
        idle, other, busy = await ledger.sessions("BCD")
        await ledger.begin(busy)
        for target in (idle, idle, other, busy):
            await ledger.task(lead, target, slot=False)

        await ledger.spend(turn_id, cost=cost, tokens=tokens)

        mark = BUDGET if spent else None
        assert [await marks(ledger, session) for session in (idle, other, busy)] == [[mark, mark], [mark], [mark]]
        assert [(await ledger.known(session)).ready is None for session in (idle, other)] == [spent, spent]
        assert (await ledger.claim() is None) is spent
        assert [(await ledger.known(session)).held for session in (idle, other, busy)] == [None] * 3

    async def test_all_turns_of_a_chain_spend_from_one_purse(self, ledger: Ledger) -> None:
        """Also those whose outcome is bad: the money is gone."""
        lead, turn_id, chain_id = await cheap(ledger)
        workers = await ledger.sessions("BCD")
        tasks = [await ledger.task(lead, worker) for worker in workers]
        waiting = await ledger.task(lead, workers[0])
        await ledger.cancel(workers[1])
        await ledger.spend(turn_id, cost=400_000)
        await ledger.spend(tasks[1].turn_id, cost=300_000)
        assert tasks[2].turn_id is not None
        failed = SettleTurn(tasks[2].turn_id, code=Code.PROVIDER_ERROR, cost=299_999, slot=False)
        await ledger.store.run(settle_turn, failed)
        before = await marks(ledger, workers[0])

        await ledger.spend(tasks[0].turn_id, cost=1)

        assert (before, await marks(ledger, workers[0])) == ([None], [BUDGET])
        assert (await ledger.chain(chain_id)).cost == MICRO
        assert await ledger.state(waiting.message.id) is MessageState.QUEUED

    async def test_what_comes_later_waits_on_arrival_and_what_runs_goes_on(self, ledger: Ledger) -> None:
        """Messages, workers and answers; the sender is told, and a turn that runs is not stopped."""
        lead, turn_id, _ = await cheap(ledger)
        worker, other, third = await ledger.sessions("BCD")
        task, running = await ledger.task(lead, worker), await ledger.task(lead, other)

        await ledger.spend(task.turn_id, cost=MICRO)
        sent, spawned = await ledger.task(lead, third), await ledger.spawn(lead)
        settled = await ledger.settle(running.turn_id)

        assert [(receipt.waiting, receipt.turn_id) for receipt in (sent, spawned)] == [(BUDGET, None)] * 2
        assert await marks(ledger, lead) == [BUDGET, BUDGET]
        turn = await ledger.turn(turn_id)
        assert (turn.state, turn.fenced, settled.state) == (TurnState.RUNNING, False, TurnState.COMPLETED)
        assert (await ledger.settle(turn_id)).next is None
        assert await ledger.claim() is None

    async def test_the_answer_of_the_turn_that_spends_the_last_of_it_waits(self, ledger: Ledger) -> None:
        """The same transaction spends and answers: its sender must not start on money that is gone."""
        lead, turn_id, _ = await cheap(ledger)
        (worker,) = await ledger.sessions("B")
        task = await ledger.task(lead, worker)
        await ledger.settle(turn_id, slot=False)
        assert task.turn_id is not None

        settled = await ledger.store.run(settle_turn, SettleTurn(task.turn_id, (Reply("dear"),), cost=MICRO))

        assert settled.next is None
        assert await marks(ledger, lead) == [BUDGET]
        assert await ledger.running(lead) is None

    async def test_a_cancelled_message_of_a_spent_chain_is_answered_and_starts_nothing(self, ledger: Ledger) -> None:
        """An answer is never refused, and never free."""
        lead, turn_id, _ = await cheap(ledger)
        (target,) = await ledger.sessions("B")
        receipt = await ledger.task(lead, target, slot=False)
        await ledger.spend(turn_id, cost=MICRO)
        await ledger.cancel(target, receipt.message.id)
        assert await marks(ledger, lead) == [BUDGET]
        assert await ledger.claim() is None

    async def test_other_chains_and_people_go_on(self, ledger: Ledger) -> None:
        """In the same sessions, past what waits; and what a person says begins a chain of its own."""
        lead, turn_id, _ = await cheap(ledger)
        target, other = await ledger.sessions("BC")
        await ledger.task(lead, target, slot=False)
        await ledger.begin(other)
        theirs = await ledger.task(other, target, slot=False)
        await ledger.spend(turn_id, cost=MICRO)

        assert await marks(ledger, target) == [BUDGET, None]
        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == theirs.message.id
        prompted = await ledger.prompt(target)
        following = (await ledger.settle(turn.id)).next
        assert following is not None
        assert following.input_id == prompted.input_id
        assert (await ledger.task(target, await ledger.session("D"))).turn_id is not None

    async def test_a_release_grants_as_much_again_and_frees_the_chain_everywhere(self, ledger: Ledger) -> None:
        """From whichever session a person does it; and the next time at twice the sum."""
        lead, turn_id, chain_id = await cheap(ledger)
        one, other = await ledger.sessions("BC")
        for target in (one, one, other):
            await ledger.task(lead, target, slot=False)
        await ledger.spend(turn_id, cost=MICRO)

        freed = await ledger.release(one)
        first, second = await ledger.claim(), await ledger.claim()

        assert freed == 2
        assert (await ledger.chain(chain_id)).grants == 1
        assert first is not None
        assert second is not None
        assert {first.session_id, second.session_id} == {one, other}
        await ledger.spend(first.id, cost=MICRO - 1)
        assert await marks(ledger, one) == [None]
        await ledger.spend(second.id, cost=1)
        assert (await marks(ledger, one), await marks(ledger, lead)) == ([BUDGET], [BUDGET, BUDGET])
        assert await ledger.release(lead) == 2
        assert (await ledger.chain(chain_id)).grants == 2

    async def test_a_release_grants_each_chain_once(self, ledger: Ledger) -> None:
        """However many of its inputs wait: as much as lets it go on; a chain that has money left gets none."""
        lead, turn_id, chain_id = await cheap(ledger)
        other, good, *targets = await ledger.sessions("ABCDE")
        turns = [await ledger.turn(await ledger.begin(session)) for session in (other, good)]
        for target in targets:
            for source in (lead, other, lead, good):
                await ledger.task(source, target, slot=False)
        await ledger.spend(turn_id, cost=9 * MICRO)
        await ledger.spend(turns[0].id, tokens=100)

        freed = await ledger.release()

        assert freed == len(targets)
        chains = [await ledger.chain(one) for one in (chain_id, *(turn.chain_id for turn in turns))]
        assert [chain.grants for chain in chains] == [9, 1, 0]
        assert [await marks(ledger, target) for target in targets] == [[None] * 4] * 3

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_release_grants_nothing_more(self, ledger: Ledger) -> None:
        """Money is the last thing to give out twice."""
        lead, turn_id, chain_id = await cheap(ledger)
        (target,) = await ledger.sessions("B")
        for _ in range(2):
            await ledger.task(lead, target, slot=False)
        await ledger.spend(turn_id, cost=MICRO)
        command = Release(target, Key("person", "k", "f"))
        first = await ledger.store.run(release, command)
        turn = await ledger.claim()
        await ledger.spend(turn and turn.id, cost=MICRO)

        again = await ledger.store.run(release, command)

        assert (first, again) == ((1, False), (1, True))
        assert (await ledger.chain(chain_id)).grants == 1
        assert await marks(ledger, target) == [BUDGET]

    async def test_a_release_elsewhere_gives_no_money(self, ledger: Ledger) -> None:
        """A session in which nothing of the chain waits is none of its business."""
        lead, turn_id, chain_id = await cheap(ledger)
        target, other = await ledger.sessions("BC")
        await ledger.task(lead, target, slot=False)
        await ledger.spend(turn_id, cost=MICRO)
        await ledger.prompt(other, slot=False)

        assert await ledger.release(other) == await ledger.release(lead) == 0
        assert (await ledger.chain(chain_id)).grants == 0
        assert await marks(ledger, target) == [BUDGET]

    async def test_a_release_of_held_messages_lets_their_spent_chain_go_on(self, ledger: Ledger) -> None:
        """To let something go that must then wait for money would be half an answer."""
        lead, turn_id, chain_id = await cheap(ledger)
        holds, other = await ledger.sessions("BC")
        await ledger.admit(holds, Inbound.HOLD)
        await ledger.task(lead, holds)
        await ledger.task(lead, other, slot=False)
        await ledger.spend(turn_id, cost=MICRO)
        before = [await marks(ledger, session) for session in (holds, other)]

        freed = await ledger.release(holds)

        assert before == [[Waiting.POLICY], [BUDGET]]
        assert freed == 2
        assert [await marks(ledger, session) for session in (holds, other)] == [[None], [None]]
        assert (await ledger.chain(chain_id)).grants == 1

    @pytest.mark.parametrize("answer", [Answer.ONCE, Answer.GRANT])
    async def test_a_leave_to_cross_is_no_money(self, ledger: Ledger, answer: Answer) -> None:
        """Whoever was asked about the projects has not been asked about the costs; and the other way round."""
        lead, turn_id, chain_id = await cheap(ledger)
        far, near = await ledger.session("far", project="/far"), await ledger.session("near")
        await ledger.task(lead, far)
        await ledger.task(lead, near, slot=False)
        await ledger.spend(turn_id, cost=MICRO)
        (asked,) = await ledger.asked()

        await ledger.answer(asked.id, answer)

        assert await marks(ledger, far) == [BUDGET]
        assert (await ledger.chain(chain_id)).grants == 0
        assert await ledger.claim() is None
        assert await ledger.release(near) == 2
        assert await marks(ledger, far) == [None]

    async def test_what_a_spent_chain_sends_across_is_asked_about_first(self, ledger: Ledger) -> None:
        """A message has one reason to wait at a time, and a question without such a message would be about nothing."""
        lead, _, _ = await cheap(ledger)
        far, near = await ledger.session("far", project="/far"), await ledger.session("near")
        task = await ledger.task(lead, near)
        await ledger.spend(task.turn_id, cost=MICRO)

        receipt = await ledger.note(lead, far)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.ONCE)

        assert receipt.waiting is Waiting.ACROSS_PROJECTS
        assert await marks(ledger, far) == [BUDGET]

    async def test_more_money_is_no_leave_to_cross(self, ledger: Ledger) -> None:
        """What waits for both waits for the other one still."""
        lead, turn_id, _ = await cheap(ledger)
        far, near = await ledger.session("far", project="/far"), await ledger.session("near")
        await ledger.task(lead, far)
        await ledger.task(lead, near, slot=False)
        await ledger.spend(turn_id, cost=MICRO)

        assert await ledger.release(near) == 1

        assert await marks(ledger, far) == [Waiting.ACROSS_PROJECTS]
        assert len(await ledger.asked()) == 1

    async def test_an_offer_of_a_spent_chain_is_not_taken_in(self, ledger: Ledger) -> None:
        """It would cost the money of its chain inside a turn of another one."""
        lead, turn_id, _ = await cheap(ledger)
        (busy,) = await ledger.sessions("B")
        await ledger.configure(busy, current_turn=True)
        running = await ledger.begin(busy)
        offered = await offer(ledger, lead, busy)
        await ledger.spend(turn_id, cost=MICRO)

        took = await ledger.take_news(running)

        assert offered.deliver is Deliver.CURRENT_TURN
        assert took is False
        assert await marks(ledger, busy) == [BUDGET]
        assert (await ledger.turn(running)).more_chains == ()

    async def test_nothing_of_a_spent_chain_is_offered(self, ledger: Ledger) -> None:
        """Neither messages nor answers: what waits for a person is not on its way to a turn."""
        lead, _, _ = await cheap(ledger)
        worker, busy = await ledger.sessions("BC")
        for session in (lead, busy):
            await ledger.configure(session, current_turn=True)
        await ledger.begin(busy)
        task = await ledger.task(lead, worker)

        await ledger.spend(task.turn_id, cost=MICRO)
        late = await offer(ledger, lead, busy)

        assert (late.deliver, late.waiting) == (Deliver.NEXT_TURN, BUDGET)
        waiting = [*await ledger.queue(lead), *await ledger.queue(busy)]
        assert [(one.kind, one.waiting, one.turn_id) for one in waiting] == [
            ("completion", BUDGET, None),
            ("message", BUDGET, None),
        ]

    @pytest.mark.guarantee("I9")
    async def test_a_spent_chain_is_spent_after_a_restart(self, ledger: Ledger) -> None:
        """Starting again is no way to new money."""
        lead, turn_id, _ = await cheap(ledger)
        (target,) = await ledger.sessions("B")
        await ledger.task(lead, target, slot=False)
        await ledger.spend(turn_id, cost=MICRO)
        await ledger.restart()
        await ledger.prompt(target)
        turn = await ledger.claim()
        assert turn is not None
        assert (await ledger.settle(turn.id)).next is None
        assert await marks(ledger, target) == [BUDGET]


class DepthContract(LedgerContract):
    """Nothing that sessions do among themselves lengthens a chain."""

    @pytest.mark.guarantee("I12")
    @orders
    @given(st.lists(st.tuples(st.sampled_from(["pass", "ask"]), st.integers(1, 3)), min_size=9, max_size=9))
    @example([("pass", 1)] * 9)
    @example([("ask", 1)] * 9)
    @example([("pass", 1), ("pass", 3)] * 4 + [("pass", 1)])
    async def test_every_way_through_a_ring_of_sessions_ends_at_the_same_depth(
        self, ledger: Ledger, steps: list[tuple[str, int]]
    ) -> None:
        """Passed on it is eight deliveries, given out and answered it is rounds at 8, 6, 4, 2, and mixed between."""
        ring, at, hops = await ledger.sessions("abcd"), 0, 9
        turn_id: TurnId | None = await ledger.begin(ring[0])
        carried: list[int] = []
        for step, by in steps:
            source, target = ring[at], ring[(at + by) % 4]
            send = ledger.note if step == "pass" else ledger.task
            if hops <= 1:
                reason = await refused(send(source, target), Code.LIMIT_EXCEEDED)
                assert (reason.limit, reason.value) == ("hops_max", 8)
                break
            receipt = await send(source, target)
            carried.append(receipt.message.hops)
            await ledger.settle(turn_id, slot=False)
            turn_id, hops = receipt.turn_id, hops - 1
            if step == "pass":
                at = (at + by) % 4
            else:
                answer = (await ledger.settle(turn_id)).next
                turn_id, hops = answer and answer.id, max(0, hops - 1)
        else:
            pytest.fail("nine sends in a row were let through")
        await ledger.settle(turn_id, slot=False)

        spent = [2 if step == "ask" else 1 for step, _ in steps]
        assert carried == [8 - sum(spent[:number]) for number in range(len(carried))]
        assert sum(spent[: len(carried)]) in (8, 9)

    async def test_a_plugin_has_a_bound_of_its_own_over_all_sessions(self, ledger: Ledger) -> None:
        """A plugin that spawns from many sessions is one plugin; only live work counts, and a person is not counted."""
        one, other, third = await ledger.sessions("ABC")
        turns = [await ledger.turn(await ledger.begin(session)) for session in (one, other)]
        ledger.limit(workers_active_per_plugin_max=2)
        first = await ledger.spawn(one, plugin="p")
        await ledger.spawn(other, plugin="p", slot=False)
        before = await ledger.chain(turns[0].chain_id), await ledger.last_change()

        reason = await refused(ledger.spawn(one, plugin="p"), Code.LIMIT_EXCEEDED)

        assert (reason.limit, reason.value) == ("workers_active_per_plugin_max", 2)
        assert (await ledger.chain(turns[0].chain_id), await ledger.last_change()) == before
        for plugin in ("q", None):
            assert (await ledger.spawn(one, plugin=plugin)).turn_id is not None
        assert (await ledger.spawn(third, plugin="p", slot=False)).turn_id is None
        await refused(ledger.spawn(other, plugin="p"), Code.LIMIT_EXCEEDED)
        ledger.limit(workers_active_per_plugin_max=3)
        await refused(ledger.spawn(other, plugin="p"), Code.LIMIT_EXCEEDED)
        await ledger.settle(first.turn_id, slot=False)
        assert (await ledger.spawn(other, plugin="p")).turn_id is not None

    async def test_a_session_is_asked_for_its_own_bound_first(self, ledger: Ledger) -> None:
        """Both bounds hold at once, and the nearer one is named."""
        (lead,) = await ledger.sessions("A")
        await ledger.begin(lead)
        ledger.limit(workers_active_max=1, workers_active_per_plugin_max=1)
        await ledger.spawn(lead, plugin="p")
        reason = await refused(ledger.spawn(lead, plugin="p"), Code.LIMIT_EXCEEDED)
        assert reason.limit == "workers_active_max"
