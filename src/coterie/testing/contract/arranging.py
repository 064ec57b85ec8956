"""How a person puts a queue in order."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.app.arrange_queue import Direction
from coterie.app.idempotency import Key
from coterie.core.admission import STREAK_MAX, Heads, head
from coterie.core.codes import Code
from coterie.core.errors import IdempotencyConflictError, NotFoundError
from coterie.core.ids import InputId, SessionId
from coterie.core.ledger.states import MessageState
from coterie.core.session.session import Held
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger

orders: Final = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    database=None,
    # Each example has sessions of its own in one ledger, which is checked whole in the end.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
"""How long random orders are tried, the same in each run."""

Arrange: TypeAlias = Callable[[Ledger, SessionId, InputId, Key | None], Awaitable[tuple[object, bool]]]
"""Arranges one input; returns what it answers, and whether that was told before."""


async def _promote(ledger: Ledger, session: SessionId, one: InputId, key: Key | None) -> tuple[object, bool]:
    return "promoted", await ledger.promote(session, one, key=key)


ACTS: Final[dict[str, Arrange]] = {
    "remove": lambda ledger, session, one, key: ledger.remove(session, one, key=key),
    "promote": _promote,
    "move": lambda ledger, session, one, key: ledger.move(session, one, Direction.DOWN, key=key),
}
"""Everything that a person can do to one input of a queue."""

each_act = pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)


async def fill(ledger: Ledger, session: SessionId, kinds: str) -> list[InputId]:
    """Let inputs wait in a session, a prompt for each `p` and a message for each `m`; returns them as they came."""
    source = await ledger.session("source")
    for kind in kinds:
        if kind == "p":
            await ledger.prompt(session, slot=False)
        else:
            await ledger.note(source, session, slot=False)
    inputs = iter(await ledger.queue(session))
    prompts = [next(inputs).id for _ in range(kinds.count("p"))]
    messages = [waiting.id for waiting in inputs]
    return [prompts.pop(0) if kind == "p" else messages.pop(0) for kind in kinds]


async def ids(ledger: Ledger, session: SessionId) -> list[InputId]:
    """The inputs of a queue in order."""
    return [waiting.id for waiting in await ledger.queue(session)]


async def run_all(ledger: Ledger) -> list[InputId]:
    """Run everything that may start, one after the other; returns what ran."""
    ran: list[InputId] = []
    while (turn := await ledger.claim()) is not None:
        ran.append(turn.input_id)
        await ledger.settle(turn.id, slot=False)
    return ran


class _Model:
    """The queue of one session as three lists."""

    def __init__(self, inputs: list[InputId], kinds: str) -> None:
        self.promoted: list[InputId] = []
        self.prompts = [one for one, kind in zip(inputs, kinds, strict=True) if kind == "p"]
        self.messages = [one for one, kind in zip(inputs, kinds, strict=True) if kind == "m"]
        self.people = frozenset(self.prompts)
        """Prompts, wherever they are by now."""

    @property
    def parts(self) -> tuple[list[InputId], list[InputId], list[InputId]]:
        """In the order in which they are listed."""
        return self.promoted, self.prompts, self.messages

    @property
    def order(self) -> list[InputId]:
        """As it is listed."""
        return [*self.promoted, *self.prompts, *self.messages]

    def part_of(self, one: InputId) -> list[InputId]:
        """The list that has it."""
        return next(part for part in self.parts if one in part)

    def move(self, one: InputId, by: int) -> bool:
        """Exchange it with its neighbour."""
        part = self.part_of(one)
        at = part.index(one)
        if part is self.promoted or not 0 <= at + by < len(part):
            return False
        part[at], part[at + by] = part[at + by], part[at]
        return True

    def run(self) -> list[InputId]:
        """The order in which all of it starts."""
        ran: list[InputId] = []
        streak = 0
        while self.order:
            first = head(Heads(*(part[0] if part else None for part in self.parts)), streak)
            assert first is not None
            streak = streak + 1 if first in self.people else 0
            self.part_of(first).remove(first)
            ran.append(first)
        return ran


class ArrangingContract(LedgerContract):
    """A queue has three parts, promoted, prompts and messages; a person arranges them and starts nothing by it."""

    async def test_a_queue_is_listed_in_the_order_of_its_parts(self, ledger: Ledger) -> None:
        """What was promoted, then people, then sessions; within a part as it came."""
        session = await ledger.session()
        message, prompt, later, last = await fill(ledger, session, "mpmp")
        before = await ids(ledger, session)

        await ledger.promote(session, later)

        assert before == [prompt, last, message, later]
        assert [(one.id, one.promoted) for one in await ledger.queue(session)] == [
            (later, True),
            (prompt, False),
            (last, False),
            (message, False),
        ]

    async def test_what_was_promoted_first_starts_first(self, ledger: Ledger) -> None:
        """Each goes behind those that a person has promoted before it, prompts and messages alike."""
        session = await ledger.session()
        prompt, message, other, last = await fill(ledger, session, "pmmp")

        for one in (other, last, message):
            await ledger.promote(session, one)

        assert await ids(ledger, session) == [other, last, message, prompt]
        assert await run_all(ledger) == [other, last, message, prompt]

    @pytest.mark.parametrize("streak", [0, STREAK_MAX])
    @pytest.mark.parametrize("kind", ["p", "m"])
    async def test_what_is_promoted_goes_before_people_and_before_their_streak(
        self, ledger: Ledger, kind: str, streak: int
    ) -> None:
        """The rule of turns between people and sessions is for what nobody has arranged."""
        session = await ledger.session()
        inputs = await fill(ledger, session, "pm" + kind)
        await ledger.change(lambda tx: tx.sessions.set_streak(session, streak))
        await ledger.promote(session, inputs[-1])
        turn = await ledger.claim()
        assert turn is not None
        assert turn.input_id == inputs[-1]

    async def test_a_second_promotion_is_refused_and_changes_nothing(self, ledger: Ledger) -> None:
        """It would silently lose the place that the input has by now."""
        session = await ledger.session()
        first, second = await fill(ledger, session, "pp")
        await ledger.promote(session, second)
        await ledger.promote(session, first)
        before = await ledger.last_change()

        await refused(ledger.promote(session, second), Code.CONFLICT)

        assert await ids(ledger, session) == [second, first]
        assert await ledger.last_change() == before

    async def test_a_move_exchanges_neighbours_of_one_part(self, ledger: Ledger) -> None:
        """Prompts among prompts, messages among messages, and what stands between them is no neighbour."""
        session = await ledger.session()
        prompt, message, other_prompt, other_message = await fill(ledger, session, "pmpm")

        up = await ledger.move(session, other_prompt, Direction.UP)
        down = await ledger.move(session, message, Direction.DOWN)

        assert (up, down) == ((True, False), (True, False))
        assert await ids(ledger, session) == [other_prompt, prompt, other_message, message]

    async def test_what_is_promoted_or_at_an_edge_does_not_move(self, ledger: Ledger) -> None:
        """No fault: a person pressed once too often. And no prompt leaves its part for the messages."""
        session = await ledger.session()
        first, last, message, promoted, other = await fill(ledger, session, "ppmpp")
        for one in (promoted, other):
            await ledger.promote(session, one)
        before, order = await ledger.last_change(), await ids(ledger, session)

        still = [
            await ledger.move(session, first, Direction.UP),
            await ledger.move(session, last, Direction.DOWN),
            await ledger.move(session, message, Direction.UP),
            await ledger.move(session, message, Direction.DOWN),
            await ledger.move(session, promoted, Direction.DOWN),
            await ledger.move(session, other, Direction.UP),
        ]

        assert still == [(False, False)] * 6
        assert await ids(ledger, session) == order == [promoted, other, first, last, message]
        assert await ledger.last_change() == before

    @pytest.mark.guarantee("I3")
    @pytest.mark.guarantee("I7")
    async def test_a_message_that_is_removed_is_cancelled_and_answered_once(self, ledger: Ledger) -> None:
        """Its sender does not wait for ever, and its place is free for the next one."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(inbox_max=1)
        sent = (await ledger.task(source, target, slot=False)).message
        (waiting,) = await ledger.queue(target)
        await refused(ledger.task(source, target), Code.AGENT_BUSY)

        removed = await ledger.remove(target, waiting.id)

        assert removed == (sent.id, False)
        message, completion = await ledger.read(sent.id), await ledger.completion(sent.id)
        assert (message.state, message.turn_id, message.result) == (MessageState.CANCELLED, None, None)
        assert message.error is not None
        assert message.error.startswith("CANCELLED: ")
        assert completion is not None
        assert (completion.target_session_id, completion.state) == (source, MessageState.QUEUED)
        assert (await ledger.places(source)).completions == 1
        assert await ledger.claim() is None
        with pytest.raises(NotFoundError):
            await ledger.remove(target, waiting.id)
        assert (await ledger.task(source, target)).turn_id is not None

    async def test_what_is_told_of_a_removed_message_waits_for_a_slot(self, ledger: Ledger) -> None:
        """An idle sender is not started by it either: the person's act brings no slot."""
        source, target = await ledger.sessions("AB")
        await ledger.task(source, target, slot=False)
        (waiting,) = await ledger.queue(target)

        await ledger.remove(target, waiting.id)

        assert await ledger.running(source) is None
        assert (await ledger.places(source)).completions == 1
        turn = await ledger.claim()
        assert turn is not None
        assert (turn.session_id, turn.kind) == (source, "completion")

    async def test_a_removed_answer_is_answered_by_nothing(self, ledger: Ledger) -> None:
        """A person who takes a completion out knows that its session is not told."""
        source, worker = await ledger.sessions("AB")
        await ledger.begin(source)
        task = await ledger.task(source, worker)
        await ledger.settle(task.turn_id)
        (waiting,) = await ledger.queue(source)

        message_id, _ = await ledger.remove(source, waiting.id)

        assert message_id is not None
        assert await ledger.state(message_id) is MessageState.CANCELLED
        assert await ledger.completion(message_id) is None
        assert (await ledger.places(source)).waiting == (await ledger.places(worker)).waiting == 0

    @pytest.mark.guarantee("I14")
    async def test_a_removed_prompt_never_runs_and_its_repetition_says_so(self, ledger: Ledger) -> None:
        """A client that asks again must not bring back what a person took out."""
        session, key = await ledger.session(), Key("person", "k", "f")
        prompted = await ledger.prompt(session, slot=False, key=key)

        removed = await ledger.remove(session, prompted.input_id)
        again = await ledger.prompt(session, key=key)

        assert removed == (None, False)
        assert (again.input_id, again.status, again.turn_id, again.replayed) == (
            prompted.input_id,
            "removed",
            None,
            True,
        )
        assert await ledger.claim() is None
        assert await ledger.transcript(session) == ()

    @pytest.mark.guarantee("I16")
    async def test_the_last_input_that_is_removed_leaves_nothing_to_start(self, ledger: Ledger) -> None:
        """A session that says it waits for a slot must have something for it."""
        session = await ledger.session()
        (only,) = await fill(ledger, session, "p")
        await ledger.remove(session, only)
        assert (await ledger.known(session)).ready is None
        assert await ledger.claim() is None

    async def test_steering_that_is_arranged_is_no_steering_any_more(self, ledger: Ledger) -> None:
        """Promoted it waits for a turn of its own, as a prompt; removed it is never shown."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        steered = [await ledger.steer(session, text) for text in "ab"]

        await ledger.promote(session, steered[0].input_id)
        await ledger.remove(session, steered[1].input_id)

        (waiting,) = await ledger.queue(session)
        assert (waiting.id, waiting.kind, waiting.turn_id) == (steered[0].input_id, "prompt", None)
        assert await ledger.look(lambda tx: tx.marks.meant_for(turn_id)) == ()
        following = (await ledger.settle(turn_id)).next
        assert following is not None
        assert following.input_id == steered[0].input_id

    @orders
    @given(
        st.permutations("ppmm").map("".join),
        st.lists(
            st.tuples(st.sampled_from(["promote", "up", "down", "remove"]), st.integers(0, 3)), min_size=3, max_size=10
        ),
    )
    async def test_any_order_of_arrangements_is_the_order_of_three_lists(
        self, ledger: Ledger, kinds: str, acts: list[tuple[str, int]]
    ) -> None:
        """What is shown follows each act, and what runs is what was shown."""
        session = await ledger.session()
        inputs = await fill(ledger, session, kinds)
        model = _Model(inputs, kinds)
        for act, number in acts:
            if model.order:
                await self._arrange(ledger, session, model, act=act, one=inputs[number])
                assert await ids(ledger, session) == model.order

        assert await run_all(ledger) == model.run()

    async def _arrange(self, ledger: Ledger, session: SessionId, model: _Model, *, act: str, one: InputId) -> None:
        if one not in model.order:
            with pytest.raises(NotFoundError):
                await ledger.move(session, one, Direction.UP)
        elif act == "remove":
            await ledger.remove(session, one)
            model.part_of(one).remove(one)
        elif act == "promote" and one in model.promoted:
            await refused(ledger.promote(session, one), Code.CONFLICT)
        elif act == "promote":
            await ledger.promote(session, one)
            model.part_of(one).remove(one)
            model.promoted.append(one)
        else:
            moved, _ = await ledger.move(session, one, Direction(act))
            assert moved is model.move(one, -1 if act == "up" else 1)


class EachArrangementContract(LedgerContract):
    """What holds for each of the three acts."""

    @pytest.mark.guarantee("I9")
    @each_act
    async def test_a_held_queue_that_is_arranged_stays_held(self, ledger: Ledger, act: Arrange) -> None:
        """Putting things in order is what a person does before letting them go."""
        session = await ledger.session()
        inputs = await fill(ledger, session, "ppmm")
        await ledger.restart()

        for one in (inputs[0], inputs[2]):
            await act(ledger, session, one, None)

        assert (await ledger.known(session)).held is Held.RESTART
        assert await ledger.claim() is None
        assert await ledger.running(session) is None

    @each_act
    async def test_an_idle_session_that_waits_for_a_slot_waits_on(self, ledger: Ledger, act: Arrange) -> None:
        """Only a slot starts it, with what is first by then."""
        session = await ledger.session()
        inputs = await fill(ledger, session, "ppmm")

        for one in (inputs[0], inputs[2]):
            await act(ledger, session, one, None)

        assert await ledger.running(session) is None
        first = (await ids(ledger, session))[0]
        turn = await ledger.claim()
        assert turn is not None
        assert turn.input_id == first

    @pytest.mark.guarantee("I14")
    @each_act
    async def test_a_repeated_arrangement_answers_as_before_and_does_nothing(
        self, ledger: Ledger, act: Arrange
    ) -> None:
        """A move that was heard twice would undo itself or go too far; also after a restart."""
        session, key = await ledger.session(), Key("person", "k", "f")
        _, message, _, _ = await fill(ledger, session, "pmmp")
        first = await act(ledger, session, message, key)
        order, before = await ids(ledger, session), await ledger.last_change()

        again = await act(ledger, session, message, key)
        unchanged = await ledger.last_change()
        await ledger.restart()
        later = await act(ledger, session, message, key)

        assert unchanged == before
        assert not first[1]
        assert again == later == (first[0], True)
        assert await ids(ledger, session) == order

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_move_that_found_no_neighbour_finds_none_later(self, ledger: Ledger) -> None:
        """It answers what it answered, though by now there is one."""
        session, key = await ledger.session(), Key("person", "k", "f")
        (first,) = await fill(ledger, session, "p")
        still = await ledger.move(session, first, Direction.DOWN, key=key)
        await ledger.prompt(session, slot=False)

        again = await ledger.move(session, first, Direction.DOWN, key=key)

        assert (still, again) == ((False, False), (False, True))
        assert (await ids(ledger, session))[0] == first

    @pytest.mark.guarantee("I14")
    @each_act
    async def test_the_key_of_another_request_is_a_conflict(self, ledger: Ledger, act: Arrange) -> None:
        """And the input stays where it is."""
        session = await ledger.session()
        first, second = await fill(ledger, session, "pp")
        await ledger.prompt(session, slot=False, key=Key("person", "k", "f"))
        order = await ids(ledger, session)

        with pytest.raises(IdempotencyConflictError):
            await act(ledger, session, first, Key("person", "k", "other"))

        assert await ids(ledger, session) == order
        assert order[:2] == [first, second]

    @each_act
    async def test_what_does_not_wait_there_is_told_so(self, ledger: Ledger, act: Arrange) -> None:
        """An unknown session, an unknown input, and one that waits elsewhere: no way to a third session's queue."""
        session, other = await ledger.sessions("AB")
        (elsewhere,) = await fill(ledger, other, "p")
        started = await ledger.turn(await ledger.begin(session))
        before = await ledger.last_change()

        for where, which in (
            (SessionId("ses_none"), elsewhere),
            (session, InputId("inp_none")),
            (session, elsewhere),
            (session, started.input_id),
        ):
            with pytest.raises(NotFoundError):
                await act(ledger, where, which, None)

        assert await ledger.last_change() == before
