"""What a person adds to a running turn, and what becomes of it when no model is shown it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeAlias

import pytest

from coterie.app.idempotency import Key
from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.errors import IdempotencyConflictError, InvalidArgumentError, NotFoundError
from coterie.core.ids import SessionId, TurnId
from coterie.core.session.session import Held
from coterie.core.turn.items import Item, PersonText, Reply
from coterie.core.turn.states import TurnState
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger

End: TypeAlias = Callable[[Ledger, TurnId], Awaitable[object]]


async def _cancelled(ledger: Ledger, turn_id: TurnId) -> object:
    return await ledger.store.run(settle_turn, SettleTurn(turn_id, (Reply("so far"),), cancelled=True))


async def _interrupted(ledger: Ledger, turn_id: TurnId) -> object:
    await ledger.interrupt((await ledger.turn(turn_id)).session_id)
    return await ledger.settle(turn_id)


ANSWERED: Final[dict[str, End]] = {
    "completed": lambda ledger, turn_id: ledger.settle(turn_id, slot=False),
    "failed": lambda ledger, turn_id: ledger.settle(turn_id, code=Code.PROVIDER_ERROR, slot=False),
}
"""Ends by which the session goes on with what the person wanted."""
STOPPED: Final[dict[str, End]] = {
    "cancelled": _cancelled,
    "interrupted by a person": _interrupted,
    "crashed": lambda ledger, _: ledger.restart(),
}
"""Ends after which nothing goes on by itself."""
LATER: Final[dict[str, End]] = {
    "waits": lambda ledger, turn_id: ledger.turn(turn_id),
    "joined": lambda ledger, turn_id: ledger.take_news(turn_id),
    **ANSWERED,
    **STOPPED,
}
"""What may have become of accepted steering."""


async def items(ledger: Ledger, session: SessionId) -> list[Item]:
    """The transcript of a session."""
    return [numbered.item for numbered in await ledger.transcript(session)]


async def a_turn_of(ledger: Ledger, kind: str) -> tuple[SessionId, TurnId]:
    """A session that runs a turn of *kind*, and the turn."""
    session, other = await ledger.sessions("AB")
    if kind == "prompt":
        return session, await ledger.begin(session)
    if kind == "completion":
        first = await ledger.begin(session)
        receipt = await ledger.task(session, other)
        await ledger.settle(first, slot=False)
        await ledger.settle(receipt.turn_id)
    else:
        await ledger.begin(other)
        await ledger.task(other, session)
    turn = await ledger.running(session)
    assert turn is not None
    assert turn.kind == kind
    return session, turn.id


class SteeringContract(LedgerContract):
    """Steering joins a running turn between two model requests, and is a prompt where there is no such turn."""

    @pytest.mark.parametrize("kind", ["prompt", "task", "completion"])
    async def test_steering_joins_the_running_turn_as_a_persons_words(self, ledger: Ledger, kind: str) -> None:
        """Whatever started the turn: it has no origin, starts nothing, and neither refills nor charges a chain."""
        session, turn_id = await a_turn_of(ledger, kind)
        await ledger.append(turn_id)
        before = await ledger.turn(turn_id)

        steered = await ledger.steer(session, "left")
        waiting = await ledger.turn(turn_id)
        took = await ledger.take_news(turn_id)

        assert (steered.status, steered.turn_id, steered.position) == ("accepted", turn_id, None)
        assert (waiting, took) == (replace(before, news=True), True)
        last = (await ledger.transcript(session))[-1]
        assert (last.item, last.turn_id) == (PersonText("left"), turn_id)
        assert await ledger.turn(turn_id) == before
        assert (await ledger.places(session)).waiting == 0

    async def test_steering_joins_once(self, ledger: Ledger) -> None:
        """A second look before a request finds nothing and writes nothing."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.steer(session)
        await ledger.take_news(turn_id)
        change, commits = await ledger.last_change(), ledger.store.commits

        assert not await ledger.take_news(turn_id)

        assert (await ledger.last_change(), ledger.store.commits) == (change, commits)
        assert await items(ledger, session) == [PersonText("go"), PersonText("left")]

    async def test_steering_is_on_disk_before_a_model_is_shown_it(self, ledger: Ledger) -> None:
        """It waits in its place, where a person sees it, and joins nothing by itself."""
        session, _ = await a_turn_of(ledger, "prompt")
        steered = await ledger.steer(session)
        (waiting,) = await ledger.queue(session)
        assert (waiting.id, waiting.kind, waiting.turn_id) == (steered.input_id, "steer", steered.turn_id)
        assert await items(ledger, session) == [PersonText("go")]

    async def test_several_keep_their_order(self, ledger: Ledger) -> None:
        """At one request or at two: what was said later may take back what was said before."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        for text in ("left", "no, right"):
            await ledger.steer(session, text)
        await ledger.take_news(turn_id)
        await ledger.steer(session, "stop there")
        await ledger.take_news(turn_id)
        said = [PersonText(text) for text in ("go", "left", "no, right", "stop there")]
        assert await items(ledger, session) == said

    @pytest.mark.parametrize("slot", [True, False])
    async def test_without_a_running_turn_it_is_a_prompt(self, ledger: Ledger, *, slot: bool) -> None:
        """In the same transaction: what a person says is never refused because a turn has just ended."""
        session = await ledger.session()
        steered = await ledger.steer(session, "go on", slot=slot)
        turn = await ledger.running(session) or await ledger.claim()
        assert steered.status == ("running" if slot else "queued")
        assert (steered.turn_id is not None, steered.position) == (slot, None if slot else 1)
        assert turn is not None
        assert (turn.input_id, turn.kind, turn.hops) == (steered.input_id, "prompt", ledger.host.limits.hops_max + 1)
        assert await items(ledger, session) == [PersonText("go on")]

    async def test_a_held_session_is_freed_by_it_as_by_a_prompt(self, ledger: Ledger) -> None:
        """A person is there, whichever way they speak."""
        session = await ledger.session()
        await ledger.prompt(session, "old", slot=False)
        await ledger.restart()
        steered = await ledger.steer(session, "new", slot=False)
        turn = await ledger.claim()
        assert turn is not None
        assert (turn.input_id, (await ledger.known(session)).held) == (steered.input_id, None)

    async def test_a_turn_that_is_being_cancelled_takes_nothing_more(self, ledger: Ledger) -> None:
        """What is said by then is said to the session, which goes on with it."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.interrupt(session)

        steered = await ledger.steer(session, "again, please")
        took = await ledger.take_news(turn_id)
        following = (await ledger.settle(turn_id)).next

        assert (steered.status, steered.position, took) == ("queued", 1, False)
        assert following is not None
        assert following.input_id == steered.input_id

    async def test_a_fence_keeps_out_what_was_accepted_before_it(self, ledger: Ledger) -> None:
        """No request follows, so nothing could be shown."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.steer(session)
        await ledger.interrupt(session)
        assert not await ledger.take_news(turn_id)
        assert await items(ledger, session) == [PersonText("go")]

    async def test_who_does_not_run_the_turn_takes_nothing_in(self, ledger: Ledger) -> None:
        """Not after its end, not in a later life of the host, and not for a turn that never was."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.steer(session)
        await ledger.store.close()
        await ledger.start()
        of_an_earlier_life = await ledger.take_news(turn_id)
        await ledger.recover()
        after_its_end = await ledger.take_news(turn_id)
        assert not of_an_earlier_life
        assert not after_its_end
        assert not await ledger.take_news(TurnId("turn_none"))

    async def test_a_hold_is_on_the_queue_and_not_on_what_runs(self, ledger: Ledger) -> None:
        """A queue may be held while a turn runs; what is said to the turn does not wait in it."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.change(lambda tx: tx.sessions.hold(session, Held.RESTART))
        await ledger.steer(session)
        assert await ledger.take_news(turn_id)
        assert (await ledger.known(session)).held is Held.RESTART

    async def test_steering_takes_a_persons_places_until_it_has_joined(self, ledger: Ledger) -> None:
        """It becomes a prompt if the turn ends, so there must be a place for it."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        ledger.limit(prompts_max=3)
        await ledger.prompt(session)
        await ledger.steer(session)
        await ledger.steer(session)

        reason = await refused(ledger.steer(session), Code.QUEUE_FULL)
        await refused(ledger.prompt(session), Code.QUEUE_FULL)
        await ledger.take_news(turn_id)

        assert (reason.limit, reason.value) == ("prompts_max", 3)
        assert (await ledger.steer(session)).status == "accepted"

    async def test_what_is_not_fit_to_be_said_is_refused(self, ledger: Ledger) -> None:
        """The same bounds as for a prompt."""
        session, _ = await a_turn_of(ledger, "prompt")
        ledger.limit(content_chars_max=4)
        with pytest.raises(InvalidArgumentError):
            await ledger.steer(session, " \u200b")
        with pytest.raises(NotFoundError):
            await ledger.steer(SessionId("ses_none"))
        reason = await refused(ledger.steer(session, "right"), Code.LIMIT_EXCEEDED)
        assert (reason.limit, reason.value) == ("content_chars_max", 4)
        assert (await ledger.places(session)).waiting == 0


class UnreadSteeringContract(LedgerContract):
    """Steering that no model was shown is not lost."""

    @pytest.mark.parametrize("end", ANSWERED.values(), ids=ANSWERED)
    async def test_unread_at_the_end_it_is_what_the_person_says_next(self, ledger: Ledger, end: End) -> None:
        """In its order, before older prompts, those that were promoted too."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.prompt(session, "old")
        await ledger.promote(session, (await ledger.prompt(session, "promoted")).input_id)
        for text in ("left", "no, right"):
            await ledger.steer(session, text)

        await end(ledger, turn_id)
        while (turn := await ledger.claim()) is not None:
            await ledger.settle(turn.id, slot=False)

        said = [item for item in await items(ledger, session) if isinstance(item, PersonText)]
        assert said == [PersonText(text) for text in ("go", "left", "no, right", "promoted", "old")]

    @pytest.mark.parametrize("kind", ["prompt", "task", "completion"])
    async def test_it_starts_a_chain_of_its_own(self, ledger: Ledger, kind: str) -> None:
        """A person has spoken anew; that refills nothing for what went before."""
        session, turn_id = await a_turn_of(ledger, kind)
        old = await ledger.turn(turn_id)
        await ledger.steer(session)

        following = (await ledger.settle(turn_id)).next

        assert following is not None
        assert following.session_id == session
        assert (following.kind, following.hops) == ("prompt", ledger.host.limits.hops_max + 1)
        assert following.chain_id != old.chain_id
        assert (await ledger.turn(turn_id)).hops == old.hops
        assert (await ledger.chain(following.chain_id)).messages == 0

    @pytest.mark.parametrize("end", STOPPED.values(), ids=STOPPED)
    async def test_unread_when_the_turn_is_stopped_it_stays_in_the_history(self, ledger: Ledger, end: End) -> None:
        """Marked as unread: it was about work that is not done, so it starts nothing."""
        session, turn_id = await a_turn_of(ledger, "task")
        for text in ("left", "no, right"):
            await ledger.steer(session, text)

        await end(ledger, turn_id)

        found = [numbered for numbered in await ledger.transcript(session) if isinstance(numbered.item, PersonText)]
        assert [(one.item, one.turn_id) for one in found] == [
            (PersonText("left", unread=True), turn_id),
            (PersonText("no, right", unread=True), turn_id),
        ]
        assert (await ledger.turn(turn_id)).state is not TurnState.RUNNING
        assert (await ledger.places(session)).waiting == 0
        await ledger.release()
        turn = await ledger.claim()
        assert turn is None or turn.session_id != session

    async def test_a_crash_does_not_hold_a_session_for_words_that_start_nothing(self, ledger: Ledger) -> None:
        """There is nothing to release, and what is sent to it later must not wait for that."""
        session, _ = await a_turn_of(ledger, "prompt")
        await ledger.steer(session)
        await ledger.restart()
        assert (await ledger.known(session)).held is None

    async def test_what_had_joined_is_no_longer_unread(self, ledger: Ledger) -> None:
        """Only the rest becomes a prompt."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        await ledger.steer(session, "seen")
        await ledger.take_news(turn_id)
        rest = await ledger.steer(session, "unseen")
        following = (await ledger.settle(turn_id)).next
        assert following is not None
        assert following.input_id == rest.input_id
        assert (await ledger.places(session)).waiting == 0


class RepeatedSteeringContract(LedgerContract):
    """The same key says it once, whatever has become of it (I14)."""

    @pytest.mark.guarantee("I14")
    @pytest.mark.parametrize("later", LATER)
    async def test_accepted_steering_is_told_as_what_it_has_become(self, ledger: Ledger, later: str) -> None:
        """By then its turn may have shown it, ended, or gone with the host; unread it is a prompt by now."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        key = Key("person", "k", "f")
        first = await ledger.steer(session, key=key)
        await LATER[later](ledger, turn_id)
        change = await ledger.last_change()

        again = await ledger.steer(session, key=key)

        assert (again.input_id, again.replayed) == (first.input_id, True)
        if later in {"completed", "failed"}:
            assert (again.status in {"queued", "running"}, again.turn_id != turn_id) == (True, True)
        else:
            assert again == replace(first, replayed=True)
        assert await ledger.last_change() == change

    @pytest.mark.guarantee("I14")
    async def test_steering_that_was_a_prompt_is_told_as_one(self, ledger: Ledger) -> None:
        """With its present state: waiting, removed, running or ended."""
        session, key = await ledger.session(), Key("person", "k", "f")
        first = await ledger.steer(session, slot=False, key=key)
        queued = await ledger.steer(session, key=key)
        turn = await ledger.claim()
        assert turn is not None
        running = await ledger.steer(session, key=key)
        await ledger.settle(turn.id)
        ended = await ledger.steer(session, key=key)
        seen = [(one.input_id, one.status, one.turn_id, one.replayed) for one in (queued, running, ended)]
        assert seen == [
            (first.input_id, "queued", None, True),
            (first.input_id, "running", turn.id, True),
            (first.input_id, "completed", turn.id, True),
        ]
        other = await ledger.steer(session, slot=False, key=Key("person", "other", "f"))
        await ledger.remove(session, other.input_id)
        assert (await ledger.steer(session, key=Key("person", "other", "f"))).status == "removed"

    @pytest.mark.guarantee("I14")
    async def test_another_body_under_the_key_is_a_conflict(self, ledger: Ledger) -> None:
        """And nothing is said."""
        session, _ = await a_turn_of(ledger, "prompt")
        await ledger.steer(session, key=Key("person", "k", "f"))
        with pytest.raises(IdempotencyConflictError):
            await ledger.steer(session, "right", key=Key("person", "k", "g"))
        assert (await ledger.places(session)).prompts == 1

    @pytest.mark.guarantee("I14")
    async def test_a_full_queue_may_be_tried_again_with_the_key(self, ledger: Ledger) -> None:
        """A refusal is no answer that is kept."""
        session, turn_id = await a_turn_of(ledger, "prompt")
        ledger.limit(prompts_max=1)
        key = Key("person", "k", "f")
        await ledger.steer(session)
        await refused(ledger.steer(session, key=key), Code.QUEUE_FULL)
        await ledger.take_news(turn_id)
        assert not (await ledger.steer(session, key=key)).replayed
