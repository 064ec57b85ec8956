"""What a turn is charged for that messages of several chains have joined."""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.chain import MICRO, Chain
from coterie.core.codes import Code
from coterie.core.ids import ChainId, SessionId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.turn.items import Reply
from coterie.testing.contract.admitting import marks
from coterie.testing.contract.current_turn import offer
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Pair:
    """A running turn that a message of another chain has joined."""

    session: SessionId
    turn: TurnId
    own: ChainId
    other: ChainId
    waits: SessionId
    """An idle session in which a message of the other chain waits."""

    async def chains(self, ledger: Ledger) -> tuple[Chain, Chain]:
        """Its own chain and the other one, as they are now."""
        return await ledger.chain(self.own), await ledger.chain(self.other)


async def absorbed(ledger: Ledger) -> Pair:
    """A lead gives out work, is prompted anew, and reads the outcome of the old work in the new turn."""
    lead, waits = await ledger.sessions("AB")
    old = await ledger.turn(await ledger.begin(lead))
    task = await ledger.spawn(lead)
    await ledger.note(lead, waits, slot=False)
    await ledger.settle(old.id, slot=False)
    new = await ledger.turn(await ledger.begin(lead))
    await ledger.settle(task.turn_id, slot=False)
    await ledger.append(new.id, task.message.id)
    return Pair(lead, new.id, new.chain_id, old.chain_id, waits)


async def accepted(ledger: Ledger) -> Pair:
    """A session takes in, between two of its model requests, what another one has sent."""
    busy, other, waits = await ledger.sessions("ABC")
    await ledger.configure(busy, current_turn=True)
    own = await ledger.turn(await ledger.begin(busy))
    theirs = await ledger.turn(await ledger.begin(other))
    await ledger.spawn(other)
    await ledger.note(other, waits, slot=False)
    await offer(ledger, other, busy)
    assert await ledger.take_news(own.id)
    return Pair(busy, own.id, own.chain_id, theirs.chain_id, waits)


Join: TypeAlias = Callable[[Ledger], Awaitable[Pair]]
each_way = pytest.mark.parametrize("join", [absorbed, accepted])


class JoinedChainsContract(LedgerContract):
    """A turn that messages of other chains have joined sends on its own chain and charges all of them."""

    @pytest.mark.guarantee("I12")
    @each_way
    async def test_what_it_sends_is_charged_to_every_chain(self, ledger: Ledger, join: Join) -> None:
        """Two chains that feed each other's turns must not go on for ever on half the count."""
        pair = await join(ledger)
        before = await pair.chains(ledger)

        sent, spawned = await ledger.task(pair.session, await ledger.session("C")), await ledger.spawn(pair.session)

        assert {receipt.message.chain_id for receipt in (sent, spawned)} == {pair.own}
        assert [(chain.messages, chain.sessions) for chain in await pair.chains(ledger)] == [
            (chain.messages + 2, chain.sessions + 1) for chain in before
        ]

    @each_way
    async def test_what_it_costs_is_charged_to_every_chain(self, ledger: Ledger, join: Join) -> None:
        """And what waits of any of them waits for a person when that one is spent."""
        pair = await join(ledger)
        mine = await ledger.session("C")
        await ledger.task(pair.session, mine, slot=False)
        ledger.limit(chain_cost_max=1)

        await ledger.spend(pair.turn, cost=MICRO)

        assert [chain.cost for chain in await pair.chains(ledger)] == [MICRO, MICRO]
        assert (await marks(ledger, mine), await marks(ledger, pair.waits)) == ([Waiting.BUDGET], [Waiting.BUDGET])

    async def test_an_outcome_that_is_shown_in_the_last_item_is_charged_too(self, ledger: Ledger) -> None:
        """The turn has read it, whether its model was asked once more or not."""
        lead, worker = await ledger.sessions("AB")
        old = await ledger.turn(await ledger.begin(lead))
        task = await ledger.task(lead, worker)
        await ledger.settle(old.id, slot=False)
        new = await ledger.turn(await ledger.begin(lead))
        await ledger.settle(task.turn_id, slot=False)

        last = SettleTurn(new.id, (Reply("read"),), shows=(task.message.id,), cost=7)
        await ledger.store.run(settle_turn, last)

        assert [(await ledger.chain(turn.chain_id)).cost for turn in (old, new)] == [7, 7]
        assert (await ledger.turn(new.id)).more_chains == (old.chain_id,)

    @each_way
    @pytest.mark.parametrize("limit", ["chain_messages_max", "chain_sessions_max"])
    async def test_a_chain_that_is_used_up_refuses_for_all_and_none_is_charged(
        self, ledger: Ledger, join: Join, limit: str
    ) -> None:
        """Whichever of them it is; the refusal names the limit and its value."""
        pair = await join(ledger)
        _, other = before = await pair.chains(ledger)
        value = other.messages if limit == "chain_messages_max" else other.sessions
        ledger.limit(**{limit: value})
        changed = await ledger.last_change()

        reason = await refused(ledger.spawn(pair.session), Code.LIMIT_EXCEEDED)

        assert (reason.limit, reason.value) == (limit, value)
        assert await pair.chains(ledger) == before
        assert await ledger.last_change() == changed

    async def test_the_least_hops_of_all_that_joined_count(self, ledger: Ledger) -> None:
        """A deep message that is taken in makes its turn deep, and a shallow one does not lift it again."""
        first, second, deep, busy, shallow = await ledger.sessions("ABCDE")
        await ledger.configure(busy, current_turn=True)
        turn_id = await ledger.begin(busy)
        for session in (first, shallow):
            await ledger.begin(session)
        await ledger.note(first, second)
        await ledger.note(second, deep)
        hops = [(await ledger.turn(turn_id)).hops]
        for source in (deep, shallow):
            await offer(ledger, source, busy)
            await ledger.take_news(turn_id)
            hops.append((await ledger.turn(turn_id)).hops)

        assert hops == [9, 6, 6]
        assert (await ledger.task(busy, await ledger.session("F"))).message.hops == 5

    async def test_a_refusal_of_depth_names_it_and_charges_nothing(self, ledger: Ledger) -> None:
        """Depth is looked at before what the chain has left."""
        source, target = await ledger.sessions("AB")
        turn = await ledger.turn(await ledger.begin(source))
        ledger.limit(hops_max=0, chain_messages_max=1)
        await ledger.change(lambda tx: tx.turns.join(turn.joined_by(1, turn.chain_id)))
        before = await ledger.last_change()

        reasons = [
            await refused(attempt, Code.LIMIT_EXCEEDED)
            for attempt in (ledger.task(source, target), ledger.spawn(source))
        ]

        assert [(reason.limit, reason.value) for reason in reasons] == [("hops_max", 0)] * 2
        assert (await ledger.chain(turn.chain_id)).messages == 0
        assert await ledger.last_change() == before
