"""Whatever is asked of the ledger and of the one on paper, in whatever order: they answer and look the same."""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from tests.guarantees import guarantee
from tests.model.model import MODES, OPEN, Input, Letter, RefusedError
from tests.model.real import NamedLedger
from tests.model.verbs import PaperLedger

from coterie.core.errors import HostError

SEEDS: Final = os.environ.get("COTERIE_SEEDS") or "40"  # noqa: TID251 - `make long` says how many stories
"""How many stories, or which: `100:200` are a hundred others."""
STORIES: Final = range(*map(int, SEEDS.split(":")))
STEPS: Final = 50
SESSIONS_MAX: Final = 6
MEMORY: Final = Path("/dev/shm")
"""Where Linux keeps files that wait for no disk: in these stories the host dies, not the machine."""

SLOTS: Final = st.sampled_from((True, True, False))
"""Whether a slot is free for what may start at once."""
INBOUND: Final = st.sampled_from(("accept", "accept", "hold", "refuse"))
SETTINGS: Final = st.sampled_from(("open", "fork", "configure", "configure"))
LETTERS: Final = st.builds(
    Letter,
    kind=st.sampled_from(("task", "message")),
    notify=st.sampled_from((True, True, False)),
    life=st.sampled_from((None, 1000)),
    now=st.booleans(),
    slot=SLOTS,
)


class Story(RuleBasedStateMachine):
    """Two ledgers that are asked the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.runner = asyncio.Runner()
        self.paper = PaperLedger()
        self.real = NamedLedger(Path(self.folder.name) / "coterie.db")
        self.runner.run(self.real.on.start())
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        """What was asked under a key."""
        self.said = 0
        for name, mode in zip("ABC", ("ask", "ask", "auto"), strict=True):
            self.both("open", name=name, mode=mode)
            self.both("configure", session=name, mode=mode, inbound="accept", current_turn=True)

    def teardown(self) -> None:
        """Let go of the file."""
        self.runner.run(self.real.on.store.close())
        self.runner.close()
        self.folder.cleanup()

    def both(self, verb: str, **said: Any) -> Any:
        """Ask both; they answer the same, and look the same from then on."""
        expected = found = None
        try:
            expected = getattr(self.paper, verb)(**said)
        except RefusedError as no:
            expected = str(no)
        try:
            found = self.runner.run(getattr(self.real, verb)(**said))
        except HostError as no:
            found = no.code.value
        note(f"{verb} {said} -> {expected}")
        assert found == expected
        self.compare()
        return expected

    def compare(self) -> None:
        """Hold what the real one shows against the paper."""
        paper, real = self.paper.view(), self.runner.run(self.real.view())
        for part, seen in real.items():
            assert seen == paper[part], part

    def once(self, verb: str, *, keyed: bool, **said: Any) -> None:
        """Ask both, perhaps under a key."""
        key = f"key {len(self.asked)}" if keyed else None
        if key is not None:
            self.asked.append((verb, key, said))
        self.both("ask", what=verb, key=key, body="this", **said)

    def fresh(self) -> str:
        """Words that were never said."""
        self.said += 1
        return f"words {self.said}"

    def one(self, data: st.DataObject, what: str, those: Iterable[str]) -> str:
        """One of *those*, of which there are some."""
        return data.draw(st.sampled_from(list(those)), what)

    def session(self, data: st.DataObject) -> str:
        """Mostly one that is there; what was deleted is asked too."""
        return self.one(data, "session", [*self.there, *self.there, *self.paper.sessions])

    def speaker(self, data: st.DataObject) -> str:
        """A session that runs something, if there is one."""
        return self.one(data, "speaker", self.busy or self.paper.sessions)

    def turn(self, data: st.DataObject) -> str:
        """A running turn, or one that has ended if there is no other."""
        running = [one.name for one in self.paper.turns.values() if one.state == "running"]
        return self.one(data, "turn", running or self.paper.turns)

    def outcomes(self, data: st.DataObject) -> list[str]:
        """Messages whose outcome a turn reads."""
        told = [name for name, one in self.paper.messages.items() if one.kind == "completion" and one.state == "queued"]
        return [name.removeprefix("re ") for name in told if data.draw(st.booleans(), f"reads {name}")]

    @property
    def there(self) -> list[str]:
        """Sessions that are not deleted."""
        return [name for name, one in self.paper.sessions.items() if not one.gone]

    @property
    def busy(self) -> list[str]:
        """Sessions that run something."""
        return [name for name, one in self.paper.sessions.items() if one.running]

    @property
    def idle(self) -> list[str]:
        """Sessions that are there and run nothing."""
        return [name for name in self.there if name not in self.busy]

    @property
    def waiting(self) -> list[tuple[str, Input]]:
        """Session and input of all that waits."""
        return [(name, one) for name, session in self.paper.sessions.items() for one in session.queue]


class Asking(Story):
    """What people and sessions ask for."""

    @rule(data=st.data(), keyed=st.booleans(), slot=SLOTS)
    def a_person_prompts(self, data: st.DataObject, *, keyed: bool, slot: bool) -> None:
        """It starts, or waits."""
        session = self.one(data, "session", [*self.busy, *self.busy, *self.paper.sessions])
        self.once("prompt", keyed=keyed, session=session, name=self.fresh(), slot=slot)

    @rule(data=st.data(), keyed=st.booleans(), slot=SLOTS)
    def a_person_steers(self, data: st.DataObject, *, keyed: bool, slot: bool) -> None:
        """What runs takes it in."""
        self.once("steer", keyed=keyed, session=self.speaker(data), name=self.fresh(), slot=slot)

    @rule(data=st.data(), letter=LETTERS, keyed=st.booleans())
    def a_session_sends(self, data: st.DataObject, letter: Letter, *, keyed: bool) -> None:
        """A running turn, or a person for an idle session; to any."""
        source, target = self.speaker(data), self.session(data)
        self.once("send", keyed=keyed, source=source, target=target, name=self.fresh(), letter=letter)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), turns=st.integers(1, 3))
    def a_person_goes_on(self, data: st.DataObject, turns: int) -> None:
        """Words wait already whenever what the session runs ends: messages that wait there could starve."""
        session = self.one(data, "session", self.busy)
        for _ in range(turns):
            running = self.paper.sessions[session].running
            self.once("prompt", keyed=False, session=session, name=self.fresh(), slot=True)
            if running is not None:
                self.both("settle", turn=running.name, how="completed", cost=0, outcomes=[], slot=True)

    @precondition(lambda self: self.busy and self.idle)
    @rule(data=st.data(), letter=LETTERS, keyed=st.booleans())
    def a_turn_sends(self, data: st.DataObject, letter: Letter, *, keyed: bool) -> None:
        """To a session that runs nothing."""
        source, target = self.one(data, "speaker", self.busy), self.one(data, "session", self.idle)
        self.once("send", keyed=keyed, source=source, target=target, name=self.fresh(), letter=letter)

    @precondition(lambda self: len(self.busy) > 1)
    @rule(data=st.data(), letter=LETTERS, keyed=st.booleans())
    def a_turn_sends_to_another(self, data: st.DataObject, letter: Letter, *, keyed: bool) -> None:
        """It has to wait there."""
        source = self.one(data, "speaker", self.busy)
        target = self.one(data, "session", [name for name in self.busy if name != source])
        self.once("send", keyed=keyed, source=source, target=target, name=self.fresh(), letter=letter)

    @precondition(lambda self: len(self.paper.sessions) < SESSIONS_MAX)
    @rule(data=st.data(), keyed=st.booleans(), slot=SLOTS)
    def a_session_spawns(self, data: st.DataObject, *, keyed: bool, slot: bool) -> None:
        """It has a worker from then on."""
        session = f"worker {self.said}"
        self.once("spawn", keyed=keyed, source=self.speaker(data), session=session, name=self.fresh(), slot=slot)

    @precondition(lambda self: self.paper.messages)
    @rule(data=st.data(), keyed=st.booleans(), slot=SLOTS)
    def a_person_retries(self, data: st.DataObject, *, keyed: bool, slot: bool) -> None:
        """What has ended is tried once more."""
        settled = [name for name, one in self.paper.messages.items() if one.state not in OPEN]
        message = self.one(data, "message", [*settled, *settled, *self.paper.messages])
        self.once("retry", keyed=keyed, message=message, name=self.fresh(), slot=slot)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), body=st.sampled_from(("this", "this", "other")))
    def somebody_asks_again(self, data: st.DataObject, body: str) -> None:
        """With the same key, for the same or for something else."""
        what, key, said = data.draw(st.sampled_from(self.asked), "request")
        self.both("ask", what=what, key=key, body=body, **said)

    @precondition(lambda self: self.waiting)
    @rule(
        data=st.data(),
        keyed=st.booleans(),
        how=st.sampled_from(("remove", "promote_input", "promote_input", "up", "down")),
    )
    def a_person_arranges_a_queue(self, data: st.DataObject, how: str, *, keyed: bool) -> None:
        """One input goes before others, or goes away."""
        crowded = [one for one in self.waiting if len(self.paper.sessions[one[0]].queue) > 1]
        session, waiting = data.draw(st.sampled_from(crowded or self.waiting), "input")
        if how in ("up", "down"):
            self.once("move", keyed=keyed, session=session, waiting=waiting.name, up=how == "up")
        # No rule says when a turn hears what was promoted and is offered to it too.
        elif how == "remove" or waiting.kind == "steer" or not waiting.offered:
            self.once(how, keyed=keyed, session=session, waiting=waiting.name)


class Ending(Story):
    """How turns, messages and sessions end."""

    @precondition(lambda self: self.waiting)
    @rule(ms=st.sampled_from((0, 0, 1000)))
    def a_slot_is_free(self, ms: int) -> None:
        """The oldest takes it, if it is worth starting by then."""
        self.both("tick", ms=ms)
        self.both("claim")

    @precondition(lambda self: self.paper.turns)
    @rule(
        data=st.data(),
        how=st.sampled_from(("completed", "completed", "failed", "cancelled")),
        cost=st.sampled_from((0, 0, 1_000_000, 2_500_000)),
        slot=SLOTS,
    )
    def a_turn_ends(self, data: st.DataObject, how: str, cost: int, *, slot: bool) -> None:
        """Its worker says how; what it has read last comes with it."""
        turn = self.turn(data)
        self.both("settle", turn=turn, how=how, cost=cost, outcomes=self.outcomes(data), slot=slot)

    @precondition(lambda self: self.paper.turns)
    @rule(data=st.data())
    def a_turn_reads(self, data: st.DataObject) -> None:
        """A tool has shown it outcomes."""
        self.both("append", turn=self.turn(data), outcomes=self.outcomes(data))

    @precondition(lambda self: any(one.offered for _, one in self.waiting))
    @rule(data=st.data())
    def a_turn_asks_its_model(self, data: st.DataObject) -> None:
        """It takes in what a person has said meanwhile."""
        self.both("take_news", turn=self.turn(data))

    @precondition(lambda self: self.paper.messages)
    @rule(data=st.data(), cascade=st.booleans())
    def a_message_is_cancelled(self, data: st.DataObject, *, cascade: bool) -> None:
        """By a person, its sender or somebody else."""
        unsettled = [name for name, one in self.paper.messages.items() if one.state in OPEN]
        name = self.one(data, "message", [*unsettled, *unsettled, *self.paper.messages])
        message = self.paper.messages[name]
        by = data.draw(st.sampled_from((None, message.source, message.source, *self.paper.sessions)), "by")
        self.both("cancel", session=message.target, message=name, by=by, cascade=cascade)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), cascade=st.booleans(), keyed=st.booleans())
    def a_person_interrupts(self, data: st.DataObject, *, cascade: bool, keyed: bool) -> None:
        """What a session runs will end."""
        self.once("interrupt", keyed=keyed, session=self.one(data, "session", self.busy), cascade=cascade)

    @precondition(lambda self: any(one.expires_at and one.state == "queued" for one in self.paper.messages.values()))
    @rule(ms=st.sampled_from((1, 1000)))
    def the_audit_looks(self, ms: int) -> None:
        """What is no longer worth starting ends."""
        self.both("tick", ms=ms)
        self.both("expire")


class Deciding(Story):
    """What people decide about sessions, and what befalls all of them: each now and then, for much ends by it."""

    @precondition(lambda self: any(one.held or any(i.mark for i in one.queue) for one in self.paper.sessions.values()))
    @rule(data=st.data())
    def queues_are_released(self, data: st.DataObject) -> None:
        """One, or all."""
        held = [name for name, one in self.paper.sessions.items() if one.held]
        self.both("release", session=data.draw(st.sampled_from((None, *held, *self.paper.sessions)), "session"))

    @rule(data=st.data(), mode=st.sampled_from(MODES), inbound=INBOUND, current_turn=st.booleans(), how=SETTINGS)
    def a_session_begins_or_changes(self, data: st.DataObject, how: str, mode: str, **settings: Any) -> None:
        """It is empty, or has heard what another one has; or it is the same, and may do something else."""
        if not self.there:
            how = "open"
        if how == "configure":
            self.both("configure", session=self.session(data), mode=mode, **settings)
        elif len(self.paper.sessions) < SESSIONS_MAX:
            origin = {"mode": mode} if how == "open" else {"session": self.one(data, "session", self.there)}
            self.both(how, name=self.fresh(), **origin)

    @precondition(lambda self: self.busy or self.waiting)
    @rule(resume=st.booleans())
    def the_host_starts_again(self, *, resume: bool) -> None:
        """After a crash at any time."""
        self.both("restart", resume=resume)

    @precondition(lambda self: self.paper.turns)
    @rule(data=st.data(), how=st.sampled_from(("cancel", "archive", "delete", "late")))
    def much_ends(self, data: st.DataObject, how: str) -> None:
        """A person stops, puts away or deletes a session, or a worker reports that is dead perhaps."""
        if how == "late":
            turn = self.one(data, "turn", self.paper.turns)
            self.both("settle", turn=turn, how="failed", cost=600_000, outcomes=[], slot=True)
        elif how == "cancel":
            by, cascade = data.draw(st.sampled_from((None, *self.there)), "by"), data.draw(st.booleans(), "cascade")
            self.both("cancel", session=self.session(data), message=None, by=by, cascade=cascade)
        else:
            waited_for = [name for name, _ in self.waiting]
            self.both(how, session=self.one(data, "session", [*waited_for, *self.paper.sessions]))


class LedgerStory(Asking, Deciding, Ending):
    """All that may be asked of a ledger."""


class BrokenStory(LedgerStory):
    """A ledger that loses what waits."""

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def an_input_is_lost(self, data: st.DataObject) -> None:
        """No verb does that."""
        _, waiting = data.draw(st.sampled_from(self.waiting), "input")
        self.runner.run(self.real.lose(waiting.name))
        self.compare()


def tell(story: type[Story], *phases: Phase) -> None:
    """Try many stories; raise what is wrong with one, in the fewest steps that have it."""
    chosen = settings(
        max_examples=len(STORIES),
        stateful_step_count=STEPS,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(seed(STORIES.start)(story), settings=chosen)


@guarantee("I1")
@guarantee("I2")
@guarantee("I3")
@guarantee("I5")
@guarantee("I6")
@guarantee("I7")
@guarantee("I8")
@guarantee("I9")
@guarantee("I11")
@guarantee("I12")
@guarantee("I14")
@guarantee("I16")
@pytest.mark.timeout(600 + 10 * len(STORIES))  # Finding the fewest steps takes up to five minutes.
def test_the_ledger_answers_and_looks_as_on_paper() -> None:
    """Invariants do not see a wrong choice that breaks none: what goes first, who is told, what a repeat is told."""
    tell(LedgerStory, Phase.generate, Phase.shrink)


def test_a_ledger_that_loses_an_input_does_not_look_as_on_paper() -> None:
    """A comparison that never fails says nothing."""
    with pytest.raises(AssertionError):
        tell(BrokenStory, Phase.generate)
