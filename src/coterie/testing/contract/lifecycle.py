"""What a person does to sessions besides speaking to them: settings, putting away, interrupting, and their keys."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pytest

from coterie.app import describe
from coterie.app.accept_result import AcceptResult, accept_result
from coterie.app.configure_session import ArchiveSession, ConfigureSession, archive_session, configure_session
from coterie.app.delete_session import DeleteSession, delete_session
from coterie.app.fork_session import ForkSession, fork_session
from coterie.app.idempotency import Key
from coterie.app.open_session import OpenSession, open_session
from coterie.app.sender import Sender
from coterie.core.codes import Code
from coterie.core.errors import (
    ConflictError,
    IdempotencyConflictError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from coterie.core.ids import MessageId, SessionId
from coterie.core.inbound import Inbound
from coterie.core.ledger.message import Kind
from coterie.core.ledger.states import MessageState
from coterie.core.permission import Mode, StoredMode
from coterie.core.session.session import Held, Session
from coterie.core.thinking import Thinking
from coterie.core.turn.states import TurnState
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.ledger import Ledger


async def archive(ledger: Ledger, session: SessionId, key: Key | None = None) -> bool:
    """Put a session away; returns whether the key had done it."""
    return (await ledger.store.run(archive_session, ArchiveSession(session, key)))[1]


async def accept(
    ledger: Ledger, sender: Sender, message_id: MessageId, note: str = "good", *, key: Key | None = None
) -> bool:
    """Note that a result is good; returns whether the key had done it."""
    return await ledger.store.run(accept_result, AcceptResult(sender, message_id, note, key))


async def _answered(ledger: Ledger) -> tuple[SessionId, SessionId, MessageId]:
    """A running sender, its worker, and a task that has completed."""
    source, worker = await ledger.sessions("AB")
    await ledger.begin(source)
    receipt = await ledger.task(source, worker)
    await ledger.settle(receipt.turn_id, "42")
    return source, worker, receipt.message.id


class ConfigureContract(LedgerContract):
    """Settings are a person's; a lower permission acts at once, a higher one from the next turn on."""

    @pytest.mark.parametrize(
        "change",
        [
            {"title": "B"},
            {"model": "local/other"},
            {"permission_mode": StoredMode.AUTO},
            {"inbound": Inbound.REFUSE},
            {"current_turn": True},
            {"thinking": Thinking.HIGH},
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_one_setting_changes_and_the_others_stay(self, ledger: Ledger, change: dict[str, Any]) -> None:
        """What a person does not name is not reset; and whoever follows the session is told."""
        session = await ledger.session()
        before = await ledger.known(session)
        await ledger.configure(session, **change)
        after = await ledger.known(session)
        assert after == replace(before, **change, revision=before.revision + 1)
        await ledger.configure(session, current_turn=False, title="C")
        await ledger.configure(session)
        assert await ledger.known(session) == replace(after, title="C", current_turn=False, revision=after.revision + 1)

    async def test_a_title_is_one_line_of_eighty_and_says_something(self, ledger: Ledger) -> None:
        """It stands in lists; the id is what sessions are found by."""
        session = await ledger.session()
        await ledger.configure(session, title=" two\n words " + "x" * 100)
        assert (await ledger.known(session)).title == "two words " + "x" * 70
        for title in ("", " \u200b\n", "\x00"):
            with pytest.raises(InvalidArgumentError):
                await ledger.configure(session, title=title)
        with pytest.raises(NotFoundError):
            await ledger.configure(SessionId("ses_none"), title="A")

    @pytest.mark.parametrize(
        ("before", "after", "ceiling"),
        [
            (StoredMode.AUTO, StoredMode.ASK, Mode.ASK),
            (StoredMode.AUTO, StoredMode.INHERIT, Mode.ASK),
            (StoredMode.ASK, StoredMode.AUTO, Mode.ASK),
            (StoredMode.ACCEPT_EDITS, StoredMode.AUTO, Mode.ACCEPT_EDITS),
        ],
    )
    async def test_a_running_turn_gains_nothing_and_loses_at_once(
        self, ledger: Ledger, before: StoredMode, after: StoredMode, ceiling: Mode
    ) -> None:
        """What it sends carries the lesser of what it began with and what the session has now."""
        source, target = await ledger.session("A", before), await ledger.session("B")
        turn_id = await ledger.begin(source)
        began = await ledger.turn(turn_id)
        await ledger.configure(source, permission_mode=after)
        receipt = await ledger.task(source, target)
        assert receipt.message.ceiling == ceiling.value
        assert (await ledger.turn(turn_id)).permission is began.permission


class ArchiveContract(LedgerContract):
    """An archived session rests: it takes nothing new, loses nothing, and comes back when a person wants it."""

    async def test_a_session_that_runs_is_not_put_away(self, ledger: Ledger) -> None:
        """Nobody would see what it does."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        await refused(archive(ledger, session), Code.CONFLICT)
        assert (await ledger.known(session)).held is None
        await ledger.settle(turn_id)
        await archive(ledger, session)
        await archive(ledger, session)
        assert (await ledger.known(session)).held is Held.ARCHIVED

    async def test_new_messages_are_refused(self, ledger: Ledger) -> None:
        """Whoever sends them, and as a conflict: a person can bring it back, so it is there."""
        source, _, message_id = await _answered(ledger)
        target = (await ledger.read(message_id)).target_session_id
        await archive(ledger, target)
        before = await ledger.last_change()
        person = Sender(source, None)
        for attempt in (
            ledger.task(source, target),
            ledger.note(source, target),
            ledger.send(source, target, sender=person),
            ledger.retry(message_id),
        ):
            reason = await refused(attempt, Code.CONFLICT)
            assert "archived" in reason.message
        assert await ledger.last_change() == before

    async def test_its_queue_rests_and_answers_still_come(self, ledger: Ledger) -> None:
        """What it had asked for is not lost, and starts nothing."""
        session, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        receipt = await ledger.task(session, worker)
        await ledger.settle(turn_id, slot=False)
        await ledger.prompt(session, slot=False)
        await archive(ledger, session)

        settled = await ledger.settle(receipt.turn_id)

        places = await ledger.places(session)
        assert (places.prompts, places.completions, settled.next) == (1, 1, None)
        assert await ledger.claim() is None

    async def test_it_comes_back_by_its_name_and_not_with_all_the_others(self, ledger: Ledger) -> None:
        """Releasing what a restart has held is not about what a person has put away."""
        session = await ledger.session()
        prompted = await ledger.prompt(session, slot=False)
        await archive(ledger, session)
        assert await ledger.release() == 0
        assert (await ledger.known(session)).held is Held.ARCHIVED
        assert await ledger.release(session) == 1
        turn = await ledger.claim()
        assert turn is not None
        assert turn.input_id == prompted.input_id

    @pytest.mark.parametrize("steers", [True, False])
    async def test_it_comes_back_when_a_person_speaks_to_it(self, ledger: Ledger, *, steers: bool) -> None:
        """And what they say runs before what had waited."""
        session = await ledger.session()
        await ledger.prompt(session, "old", slot=False)
        await archive(ledger, session)
        said = await (ledger.steer if steers else ledger.prompt)(session, "new", slot=False)
        turn = await ledger.claim()
        assert turn is not None
        assert (turn.input_id, (await ledger.known(session)).held) == (said.input_id, None)

    @pytest.mark.guarantee("I9")
    @pytest.mark.parametrize("waits", [True, False])
    async def test_a_restart_leaves_it_archived(self, ledger: Ledger, *, waits: bool) -> None:
        """With or without a queue, also when an answer comes in by the start itself."""
        session, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(session)
        await ledger.task(session, worker)
        await ledger.settle(turn_id, slot=False)
        if waits:
            await ledger.prompt(session, slot=False)
        await archive(ledger, session)
        await ledger.restart()
        assert (await ledger.places(session)).completions == 1
        assert (await ledger.known(session)).held is Held.ARCHIVED

    async def test_what_a_restart_has_held_can_be_put_away(self, ledger: Ledger) -> None:
        """Then the release of everything does not start it either."""
        session = await ledger.session()
        await ledger.prompt(session, slot=False)
        await ledger.restart()
        await archive(ledger, session)
        assert await ledger.release() == 0
        with pytest.raises(NotFoundError):
            await archive(ledger, SessionId("ses_none"))


class InterruptContract(LedgerContract):
    """A person stops what a session runs; everything else of it goes on."""

    async def test_it_stops_the_running_turn_and_the_queue_goes_on(self, ledger: Ledger) -> None:
        """Unlike a cancel of the session, which ends what waits too."""
        source, session = await ledger.sessions("AB")
        await ledger.begin(source)
        turn_id = await ledger.begin(session)
        receipt, prompted = await ledger.task(source, session), await ledger.prompt(session)

        stopped = await ledger.interrupt(session)
        fenced = await ledger.turn(turn_id)
        settled = await ledger.settle(turn_id, "late")

        assert (stopped.message_ids, stopped.turn_ids) == ([], [turn_id])
        assert (fenced.state, fenced.fenced) == (TurnState.RUNNING, True)
        assert (settled.state, settled.next and settled.next.input_id) == (TurnState.CANCELLED, prompted.input_id)
        assert await ledger.state(receipt.message.id) is MessageState.QUEUED

    @pytest.mark.guarantee("I7")
    @pytest.mark.parametrize("cascade", [True, False])
    async def test_the_message_that_it_ran_is_cancelled_and_what_it_had_sent_too(
        self, ledger: Ledger, *, cascade: bool
    ) -> None:
        """At once, so that its sender does not wait for a worker that hangs; without a cascade work below goes on."""
        top, middle, worker = await ledger.sessions("ABC")
        await ledger.begin(top)
        first = await ledger.task(top, middle)
        second = await ledger.task(middle, worker)

        stopped = await ledger.interrupt(middle, cascade=cascade)

        both = [first, second] if cascade else [first]
        assert stopped.message_ids == [receipt.message.id for receipt in both]
        assert stopped.turn_ids == [receipt.turn_id for receipt in both]
        completion = await ledger.completion(first.message.id)
        assert completion is not None
        assert (completion.target_session_id, completion.state) == (top, MessageState.QUEUED)
        assert (await ledger.state(second.message.id) is MessageState.CANCELLED) is cascade

    async def test_there_may_be_nothing_to_stop(self, ledger: Ledger) -> None:
        """Whoever is not sure presses twice."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        await ledger.interrupt(session)
        again = await ledger.interrupt(session)
        await ledger.settle(turn_id)
        after = await ledger.interrupt(session)
        assert [(one.message_ids, one.turn_ids) for one in (again, after)] == [([], []), ([], [])]
        with pytest.raises(NotFoundError):
            await ledger.interrupt(SessionId("ses_none"))

    @pytest.mark.guarantee("I14")
    async def test_a_repeated_interrupt_stops_nothing_that_began_since(self, ledger: Ledger) -> None:
        """It tells what the first one has stopped."""
        session, key = await ledger.session(), Key("person", "k", "f")
        turn_id = await ledger.begin(session)
        await ledger.interrupt(session, key=key)
        await ledger.settle(turn_id)
        later = await ledger.begin(session)
        again = await ledger.interrupt(session, key=key)
        assert (again.turn_ids, again.replayed) == ([turn_id], True)
        assert not (await ledger.turn(later)).fenced


class AcceptanceContract(LedgerContract):
    """A sender notes that it is content with a result; that changes nothing else."""

    async def test_a_result_is_accepted_with_a_note(self, ledger: Ledger) -> None:
        """A second note takes the place of the first; message, queue and stream stay as they are."""
        source, _, message_id = await _answered(ledger)
        before, change = await ledger.read(message_id), await ledger.last_change()
        for sender, note in ((await ledger.sender(source), "good"), (Sender(source, None), "")):
            await accept(ledger, sender, message_id, note)
            message, noted = await ledger.store.read(describe.message, (message_id, source))
            assert message == before
            assert noted is not None
            assert (noted.session_id, noted.note) == (source, note)
        assert await ledger.last_change() == change

    @pytest.mark.parametrize("how", ["queued", "running", "failed", "cancelled", "blank"])
    async def test_what_has_no_result_is_not_ready(self, ledger: Ledger, how: str) -> None:
        """There is nothing yet, or nothing ever, to be content with."""
        source, worker = await ledger.sessions("AB")
        await ledger.begin(source)
        receipt = await ledger.task(source, worker, slot=how != "queued")
        if how in {"failed", "blank"}:
            await ledger.settle(receipt.turn_id, " \u200b", code=Code.PROVIDER_ERROR if how == "failed" else None)
        elif how == "cancelled":
            await ledger.cancel(worker, receipt.message.id)
        await refused(accept(ledger, await ledger.sender(source), receipt.message.id), Code.WORKER_NOT_READY)
        assert (await ledger.store.read(describe.message, (receipt.message.id, None)))[1] is None

    async def test_only_its_sender_accepts_it_and_only_in_a_turn_that_runs(self, ledger: Ledger) -> None:
        """Not who has done it, nor a third who may not even know of it, nor a turn that is over."""
        source, worker, message_id = await _answered(ledger)
        ended = await ledger.sender(source)
        with pytest.raises(PermissionDeniedError):
            await accept(ledger, Sender(worker, None), message_id)
        with pytest.raises(NotFoundError):
            await accept(ledger, Sender(await ledger.session(), None), message_id)
        await ledger.interrupt(source)
        with pytest.raises(ConflictError):
            await accept(ledger, ended, message_id)


Verb: TypeAlias = Callable[[Ledger, SessionId, Key], Awaitable[bool]]


async def _noted(ledger: Ledger, session: SessionId, key: Key) -> bool:
    sent = (await ledger.store.read(describe.status, session)).exchanges
    task = next(message for message in sent if message.kind is Kind.TASK)
    return await accept(ledger, Sender(session, None), task.id, key=key)


async def _forked(ledger: Ledger, session: SessionId, key: Key) -> bool:
    return (await ledger.store.run(fork_session, ForkSession(session, None, None, key)))[1]


async def _deleted(ledger: Ledger, session: SessionId, key: Key) -> bool:
    return (await ledger.store.run(delete_session, DeleteSession(session, key))).replayed


async def _stopped(ledger: Ledger, session: SessionId, key: Key) -> bool:
    return (await ledger.interrupt(session, key=key)).replayed


async def _idle(ledger: Ledger) -> SessionId:
    source, _, _ = await _answered(ledger)
    running = await ledger.running(source)
    assert running is not None
    await ledger.settle(running.id, slot=False)
    return source


KEYED: Final[dict[str, Verb]] = {
    "configure": lambda ledger, session, key: ledger.configure(session, key=key, title="B"),
    "archive": archive,
    "delete": _deleted,
    "fork": _forked,
    "interrupt": _stopped,
    "accept": _noted,
}
"""Each says whether its key was known."""


Act: TypeAlias = Callable[[Ledger, SessionId, Key], Awaitable[tuple[Session, bool]]]


async def _created(ledger: Ledger, session: SessionId, key: Key) -> tuple[Session, bool]:
    del session
    opening = OpenSession("A", None, None, permission_mode=StoredMode.AUTO, key=key)
    return await ledger.store.run(open_session, opening)


TOLD: Final[dict[str, Act]] = {
    "create": _created,
    "fork": lambda ledger, session, key: ledger.store.run(fork_session, ForkSession(session, "A", None, key)),
    "configure": lambda ledger, session, key: ledger.store.run(
        configure_session, ConfigureSession(session, key, title="A", permission_mode=StoredMode.AUTO)
    ),
    "archive": lambda ledger, session, key: ledger.store.run(archive_session, ArchiveSession(session, key)),
}
"""Each tells a session, and whether its key was known."""


class LifecycleKeysContract(LedgerContract):
    """What a person or an agent repeats with its key happens once (I14)."""

    @pytest.mark.guarantee("I14")
    @pytest.mark.parametrize("verb", KEYED.values(), ids=KEYED)
    async def test_a_repeated_act_does_nothing(self, ledger: Ledger, verb: Verb) -> None:
        """Also after a restart."""
        session, key = await _idle(ledger), Key("person", "k", "f")
        first = await verb(ledger, session, key)
        change = await ledger.last_change()
        again = await verb(ledger, session, key)
        await ledger.store.close()
        await ledger.start()
        later = await verb(ledger, session, key)
        assert [first, again, later] == [False, True, True]
        assert await ledger.last_change() == change

    @pytest.mark.guarantee("I14")
    @pytest.mark.parametrize("act", TOLD.values(), ids=TOLD)
    async def test_a_repeated_act_is_told_although_the_session_is_gone(self, ledger: Ledger, act: Act) -> None:
        """What the first one made or changed, as it is by now; nothing comes back to life."""
        key = Key("person", "k", "f")
        made, first = await act(ledger, await _idle(ledger), key)
        await _deleted(ledger, made.id, Key("person", "other", "f"))
        change = await ledger.last_change()
        told, again = await act(ledger, made.id, key)
        assert (made.deleted, first, again) == (False, False, True)
        assert (told.id, told.title, told.permission_mode) == (made.id, made.title, made.permission_mode)
        assert (told.deleted, told.held) == (True, None)
        assert await ledger.last_change() == change

    @pytest.mark.guarantee("I14")
    @pytest.mark.parametrize("verb", KEYED.values(), ids=KEYED)
    async def test_another_act_under_the_key_is_a_conflict(self, ledger: Ledger, verb: Verb) -> None:
        """Whatever it was: one namespace for all, and the second one does nothing."""
        session = await _idle(ledger)
        await ledger.prompt(await ledger.session(), key=Key("person", "k", "f"))
        change = await ledger.last_change()
        with pytest.raises(IdempotencyConflictError):
            await verb(ledger, session, Key("person", "k", "g"))
        assert await ledger.last_change() == change
