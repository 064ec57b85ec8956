"""Faults that hosts of agents are known for, of queues, names, clocks and lists; each test names its case.

All cases and their numbers are in `tests/test_cases.py`.
"""
# ruff: noqa: PLR2004 - the numbers of a test are its cases

import asyncio
import random
from typing import Final

import pytest

from coterie.app import describe
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.configure_session import ArchiveSession, archive_session
from coterie.app.delete_session import DeleteSession, delete_session
from coterie.app.describe import Page
from coterie.app.find import near_sessions
from coterie.app.receipt import Receipt
from coterie.app.release import Answer, Revoke, revoke
from coterie.core.codes import Code
from coterie.core.errors import HostError, NotFoundError, RefusedError
from coterie.core.ids import InputId, MessageId, SessionId
from coterie.core.inbound import Inbound, Waiting
from coterie.core.ledger.states import SETTLED, MessageState
from coterie.core.turn.items import PersonText, Reply, ToolCall, ToolResult
from coterie.core.turn.states import TurnState
from coterie.ports.store import Tx
from coterie.testing.contract.cases import answers, drain
from coterie.testing.contract.ground import LedgerContract, refused
from coterie.testing.contract.settling import OUTCOMES, end
from coterie.testing.ledger import Ledger

HOUR_S: Final = 3600
ANY_TEXT: Final = "".join(map(chr, (9, 0x7F, 0x85, 0xE9, 0x2028, 0x5D0, 0x202E, 0xFEFF, 0xFFFD, 0x1F600, 0x10FFFF)))
"""Something of each plane, written to the right and to the left, with what some readers take for the end of a line."""


class QueueCasesContract(LedgerContract):
    """What waits starts in its order, and nothing waits without end or unseen."""

    async def _anything(self, ledger: Ledger, chance: random.Random, sessions: list[SessionId]) -> None:
        """One act of somebody; it may come at the wrong moment."""
        one, other = chance.sample(sessions, 2)
        slot = chance.random() < 0.3
        try:
            match chance.randrange(6):
                case 0:
                    await ledger.prompt(one, slot=slot)
                case 1 | 2:
                    await ledger.task(one, other, slot=slot)
                case 3:
                    await ledger.cancel(one)
                case 4:
                    await ledger.claim()
                case _:
                    turn = await ledger.running(one)
                    code = Code.PROVIDER_ERROR if chance.random() < 0.3 else None
                    await ledger.settle(turn.id if turn else None, code=code, slot=slot) if turn else None
        except (HostError, RefusedError):
            return

    @pytest.mark.parametrize("seed", range(4))
    async def test_whatever_has_happened_free_slots_empty_every_queue(self, ledger: Ledger, seed: int) -> None:
        """Case 14: in any order of acts an idle session that has something to do says so, and is then given a slot."""
        chance = random.Random(seed)  # noqa: S311 - it guards nothing
        sessions = await ledger.sessions("ABCD")

        def asleep(tx: Tx) -> list[SessionId]:
            places = {one: tx.inputs.places(one) for one in sessions}
            found = [tx.sessions.get(one) for one in sessions if places[one].waiting and not places[one].running]
            return [one.id for one in found if one is not None and one.ready is None]

        for _ in range(40):
            await asyncio.gather(*(self._anything(ledger, chance, sessions) for _ in range(3)))
            assert await ledger.look(asleep) == []
        await drain(ledger, *sessions)

        places = [await ledger.places(one) for one in sessions]
        assert [(one.waiting, one.running) for one in places] == [(0, False)] * 4

    async def test_what_comes_while_a_turn_ends_is_started_by_one_of_the_two(self, ledger: Ledger) -> None:
        """Case 63: there is no moment between the last look at the queue and the end of the turn."""
        source, target = await ledger.sessions("AB")
        ledger.limit(chain_messages_max=99)
        for number in range(12):
            turn_id = await ledger.begin(target)
            enqueue, settle = ledger.task(source, target), ledger.settle(turn_id)

            await asyncio.gather(*((enqueue, settle) if number % 2 else (settle, enqueue)))

            running = await ledger.running(target)
            assert running is not None
            assert running.id != turn_id
            await drain(ledger, target)

    async def test_prompts_that_come_at_once_run_in_the_order_of_their_places(self, ledger: Ledger) -> None:
        """Case 54: one runs, the others are told their places, and the places are kept."""
        session = await ledger.session()
        ledger.limit(prompts_max=30)

        prompted = await asyncio.gather(*(ledger.prompt(session, f"{number}") for number in range(30)))
        ran: list[InputId] = []
        turn = await ledger.running(session)
        while turn is not None:
            ran.append(turn.input_id)
            turn = (await ledger.settle(turn.id)).next

        assert [one.position for one in prompted].count(None) == 1
        in_order = sorted(prompted, key=lambda one: one.position or 0)
        assert ran == [one.input_id for one in in_order]

    async def test_more_than_there_are_places_for_is_told_to_each_sender(self, ledger: Ledger) -> None:
        """Case 61: of eighteen at once eight wait and run, ten are told that the target is busy, and none is lost."""
        target, *sources = await ledger.sessions("T" + "s" * 18)
        await ledger.begin(target)

        sent = await asyncio.gather(*(ledger.task(one, target) for one in sources), return_exceptions=True)
        await drain(ledger, target)

        accepted = [one for one in sent if isinstance(one, Receipt)]
        busy = [one for one in sent if isinstance(one, RefusedError) and one.code is Code.AGENT_BUSY]
        assert (len(accepted), len(busy)) == (8, 10)
        for source, one in zip(sources, sent, strict=True):
            told = [(one.message.id, "done")] if isinstance(one, Receipt) else []
            assert await answers(ledger, source) == told

    async def test_an_open_question_of_one_session_stops_no_other(self, ledger: Ledger) -> None:
        """Case 62: each session's questions are its own, answered in any order, and what needs no answer goes on."""
        source = await ledger.session("source", project="/a")
        first, second = [await ledger.session(title, project="/b") for title in ("first", "second")]
        await ledger.begin(source)
        waiting = [await ledger.task(source, one) for one in (first, second)]
        asked = await ledger.asked()
        (answered,) = await ledger.queue(second)

        prompted = await ledger.prompt(first)
        await ledger.answer(asked[1].id, Answer.ONCE)
        started = [await ledger.claim() for _ in range(3)]

        assert [one.waiting for one in waiting] == [Waiting.ACROSS_PROJECTS] * 2
        assert {one.input_id: one.message_id for one in started if one} == {
            prompted.input_id: None,
            answered.id: waiting[1].message.id,
        }
        assert await ledger.asked() == asked[:1]

    @pytest.mark.parametrize("outcome", OUTCOMES)
    async def test_a_session_that_has_ended_its_work_works_again(self, ledger: Ledger, outcome: str) -> None:
        """Cases 70 and 98: however it ended and however long ago; the answer names the session to go on with."""
        source, target = await ledger.sessions("AB")
        first = await ledger.task(source, target)
        await end(ledger, first.turn_id, outcome)
        await ledger.release()
        await drain(ledger)
        ledger.clock.advance(30 * 24 * HOUR_S)

        completion = await ledger.completion(first.message.id)
        again = await ledger.task(source, target)

        assert completion is not None
        for named in (target, first.message.id, str(first.turn_id)):
            assert f'"{named}"' in completion.content
        assert (await ledger.turn(again.turn_id)).session_id == target

    async def test_an_archived_session_takes_nothing_and_says_so(self, ledger: Ledger) -> None:
        """Case 70: what was put away is not woken by accident, and its sender does not wait for it."""
        source, target = await ledger.sessions("AB")
        await ledger.store.run(archive_session, ArchiveSession(target, None))
        reason = await refused(ledger.task(source, target), Code.CONFLICT)
        assert "archived" in reason.message
        await ledger.release(target)
        assert (await ledger.task(source, target)).turn_id is not None

    async def test_a_message_is_accepted_at_once_and_each_step_is_seen(self, ledger: Ledger) -> None:
        """Case 71: to accept, to start and to answer are three states, each with its time."""
        source, target = await ledger.sessions("AB")
        busy = await ledger.begin(target)
        receipt = await ledger.task(source, target)
        seen = [await ledger.read(receipt.message.id)]
        ledger.clock.advance(HOUR_S)
        await ledger.settle(busy)
        seen.append(await ledger.read(receipt.message.id))
        ledger.clock.advance(HOUR_S)
        await ledger.settle(seen[1].turn_id, slot=False)
        seen.append(await ledger.read(receipt.message.id))

        assert receipt.position == 1
        assert [one.state.value for one in seen] == ["queued", "running", "completed"]
        times = [one.updated_at - seen[0].created_at for one in seen]
        assert times == [0, HOUR_S * 1000, 2 * HOUR_S * 1000]

    async def test_workers_that_have_ended_leave_their_places(self, ledger: Ledger) -> None:
        """Case 87: fifty one after the other under a limit of four, and a fifth at once is told which limit it is."""
        lead = await ledger.session()
        await ledger.begin(lead)
        for _ in range(50):
            await ledger.settle((await ledger.spawn(lead)).turn_id, slot=False)
        for _ in range(4):
            await ledger.spawn(lead)
        reason = await refused(ledger.spawn(lead), Code.LIMIT_EXCEEDED)
        assert (reason.limit, reason.value) == ("workers_active_max", 4)

    @pytest.mark.parametrize("how", ["running", "fenced", "queued", "held", "archived", "policy", "across", "deleted"])
    async def test_a_person_can_end_whatever_there_is(self, ledger: Ledger, how: str) -> None:
        """Case 105: from every state a message and its session are in there is a way out, by the one word `cancel`."""
        source = await ledger.session("source", project="/a")
        target = await ledger.session("target", project="/b" if how == "across" else "/a")
        await ledger.begin(source)
        if how == "policy":
            await ledger.admit(target, Inbound.HOLD)
        receipt = await ledger.task(source, target, slot=how in {"running", "fenced", "deleted"})
        if how == "held":
            await ledger.restart()
        if how == "archived":
            await ledger.store.run(archive_session, ArchiveSession(target, None))
        if how == "fenced":
            await ledger.cancel(target)

        if how == "deleted":
            await ledger.store.run(delete_session, DeleteSession(target, None))
        else:
            await ledger.cancel(target, receipt.message.id)

        assert await ledger.state(receipt.message.id) is MessageState.CANCELLED
        assert await ledger.completion(receipt.message.id) is not None
        if (turn := await ledger.running(target)) is not None:
            assert turn.fenced
            assert (await ledger.settle(turn.id)).state is TurnState.CANCELLED
        assert (await ledger.places(target)).waiting == 0

    async def test_old_work_is_shown_after_a_start_and_none_of_it_begins(self, ledger: Ledger) -> None:
        """Case 120: a hundred and ten messages of fifteen hours ago wait for a person, in their order."""
        sources = await ledger.sessions("s" * 14)
        targets = await ledger.sessions("t" * 14)
        for number in range(110):
            await ledger.note(sources[number % 14], targets[number % 14], slot=False)
        ledger.clock.advance(15 * HOUR_S)

        await ledger.restart()

        assert await ledger.claim() is None
        assert [await ledger.running(one) for one in targets] == [None] * 14
        waiting = [one for target in targets for one in await ledger.queue(target)]
        assert len(waiting) == 110
        assert await ledger.release(targets[0]) == 1
        turn = await ledger.claim()
        assert turn is not None
        assert turn.message_id == waiting[0].message_id


class NameCasesContract(LedgerContract):
    """An id is the only address; names, texts and clocks of others decide nothing."""

    async def test_sessions_of_one_title_are_different_sessions(self, ledger: Ledger) -> None:
        """Cases 45 and 46: a title is a label that may be taken often; twenty are twenty, and none is renamed."""
        sessions = await asyncio.gather(*(ledger.session("team-lead") for _ in range(20)))
        lead = await ledger.session("lead")
        spawned = await ledger.spawn(lead, title="team-lead", slot=False)
        await ledger.note(lead, sessions[7], slot=False)

        titles = {(await ledger.known(one)).title for one in (*sessions, spawned.message.target_session_id)}
        waiting = [len(await ledger.queue(one)) for one in sessions]
        assert titles == {"team-lead"}
        assert len({*sessions, spawned.message.target_session_id}) == 21
        assert waiting == [0] * 7 + [1] + [0] * 12

    async def test_one_title_in_two_projects_leaks_nothing(self, ledger: Ledger) -> None:
        """Case 47: a folder whose path begins like another's is another project, and its mail is its own."""
        lead = await ledger.session("lead", project="/work/shop")
        here, there = [await ledger.session("dev", project=path) for path in ("/work/shop", "/work/shop-2")]

        sent, crossing = await ledger.task(lead, here), None
        await ledger.begin(lead)
        crossing = await ledger.task(lead, there)

        assert [one.turn_id for one in await ledger.transcript(here)] == [sent.turn_id]
        assert await ledger.transcript(there) == ()
        assert crossing.waiting is Waiting.ACROSS_PROJECTS
        assert [(one.source_session_id, one.target_session_id) for one in await ledger.asked()] == [(lead, there)]

    async def test_a_misspelt_target_is_no_new_one(self, ledger: Ledger) -> None:
        """Case 42: an unknown id is told with what is near, and nothing is written for it."""
        source, near = await ledger.session("lead"), await ledger.session("engineer")
        before = await ledger.last_change()

        for name in ("enginer", near[:-1]):
            with pytest.raises(NotFoundError):
                await ledger.task(source, SessionId(name))
            assert near in (await ledger.store.read(near_sessions, name))[0]

        assert await ledger.last_change() == before
        assert await ledger.queue(near) == ()

    async def test_what_replaced_a_session_is_not_taken_for_it(self, ledger: Ledger) -> None:
        """Case 51: between looking up and sending the target went: that is told with who has its name now."""
        source, old = await ledger.sessions("AB")
        title = (await ledger.known(old)).title
        await ledger.store.run(delete_session, DeleteSession(old, None))
        new = await ledger.session(title)

        with pytest.raises(NotFoundError):
            await ledger.task(source, old)
        near = await ledger.store.read(near_sessions, title)
        receipt = await ledger.task(source, new)

        assert f"{new} ({title})" in near
        assert not [name for name in near if name.startswith(old)]
        assert [one.turn_id for one in await ledger.transcript(new)] == [receipt.turn_id]

    async def test_the_answer_to_what_waited_over_a_restart_goes_to_who_asked(self, ledger: Ledger) -> None:
        """Case 49: the way back stands in the ledger with the message, and in nobody's memory."""
        one, other, target = await ledger.sessions("ABC")
        sent = {source: await ledger.task(source, target, slot=False) for source in (one, other)}

        await ledger.restart()
        await ledger.release()
        await drain(ledger)

        for source, receipt in sent.items():
            assert await answers(ledger, source) == [(receipt.message.id, "done")]

    async def test_list_status_and_receipt_say_the_same(self, ledger: Ledger) -> None:
        """Cases 53 and 218: whether a session is free is known before one sends, and `queued` is said of rows only."""
        source, idle, busy, full = await ledger.sessions("SIBF")
        await ledger.begin(busy)
        await ledger.prompt(full, slot=False)
        listed = {one.id: state for one, _, state in await ledger.store.read(describe.sessions, (None, 100))}
        seen = {one: await ledger.store.read(describe.status, one) for one in (idle, busy, full)}

        receipts = {one: await ledger.task(source, one) for one in (idle, busy, full)}

        assert [listed[one] for one in (idle, busy, full)] == ["idle", "running", "queued"]
        assert [(seen[one].status, seen[one].waiting) for one in (idle, busy, full)] == [
            ("idle", 0),
            ("running", 0),
            ("queued", 1),
        ]
        assert [receipts[one].state.value for one in (idle, busy, full)] == ["running", "queued", "queued"]
        for one in (busy, full):
            assert receipts[one].message.id in [waiting.message_id for waiting in await ledger.queue(one)]

    async def test_text_of_any_script_is_kept_as_it_came(self, ledger: Ledger) -> None:
        """Case 137: in titles, messages, results and the arguments of tools, also after a restart."""
        source, target = await ledger.session(f"s{ANY_TEXT}"), await ledger.session()
        receipt = await ledger.send(source, target, content=f"a{ANY_TEXT}z")
        call = ToolCall("1", "tool", f'{{"text": "{ANY_TEXT}"}}')
        items = (Reply("", (call,)), ToolResult("1", "tool", ANY_TEXT))
        assert receipt.turn_id is not None
        await ledger.store.run(append_items, AppendToTurn(receipt.turn_id, items))
        await ledger.settle(receipt.turn_id, ANY_TEXT, slot=False)

        await ledger.restart()

        message = await ledger.read(receipt.message.id)
        assert (message.content, message.result) == (f"a{ANY_TEXT}z", ANY_TEXT)
        assert tuple(one.item for one in await ledger.transcript(target))[1:] == (*items, Reply(ANY_TEXT))
        assert (await ledger.known(source)).title == " ".join(f"s{ANY_TEXT}".split())

    async def test_clocks_that_leap_change_no_order(self, ledger: Ledger) -> None:
        """Case 144: a day on and a day back while things happen: order is by number, and nothing is there twice."""
        session, texts = await ledger.session(), [f"{number}" for number in range(6)]
        for text in texts:
            await ledger.prompt(session, text, slot=False)
            (ledger.clock.advance if int(text) % 2 else ledger.clock.set_back)(24 * HOUR_S)
        await drain(ledger)
        found = await ledger.transcript(session)
        changes = await ledger.look(lambda tx: tx.journal.changes(0, session, 500))

        assert [one.item.text for one in found if isinstance(one.item, PersonText)] == texts
        assert [one.number for one in found] == list(range(1, 13))
        assert [one.revision for one in changes] == list(range(1, len(changes) + 1))
        assert [one.at for one in changes] == sorted(one.at for one in changes)

    async def test_pages_of_one_time_leave_nothing_out(self, ledger: Ledger) -> None:
        """Case 143: a page ends at a number; a thousand things of one moment are read in any pieces."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        for _ in range(10):
            items = tuple(ToolResult(f"{number}", "tool", "x") for number in range(100))
            await ledger.store.run(append_items, AppendToTurn(turn_id, items))

        for size in (1, 7, 512):
            found: list[int] = []
            while page := await ledger.store.read(describe.items, Page(len(found), size, session)):
                found += [one.number for one in page]
            assert found == list(range(1, 1002))

    async def test_a_grant_lasts_as_long_as_was_said_and_no_longer(self, ledger: Ledger) -> None:
        """Cases 207 and 213: no question while it lasts; its end is told to who sends; the next takes its place."""
        source, target = await ledger.session("A", project="/a"), await ledger.session("B", project="/b")
        await ledger.begin(source)
        await ledger.note(source, target)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.GRANT, seconds=HOUR_S)
        waiting: list[Waiting | None] = []
        for seconds in (50 * 60, 10 * 60 - 1, 1):
            ledger.clock.advance(seconds)
            waiting.append((await ledger.note(source, target, slot=False)).waiting)
        (asked,) = await ledger.asked()
        await ledger.answer(asked.id, Answer.GRANT, seconds=HOUR_S)
        live = await ledger.look(lambda tx: tx.pairs.grants(ledger.clock.now_ms(), 10))
        granted = await ledger.note(source, target, slot=False)
        await ledger.store.run(revoke, Revoke(live[0].id, None))
        after = await ledger.note(source, target, slot=False)

        assert waiting == [None, None, Waiting.ACROSS_PROJECTS]
        assert len(live) == 1
        assert (granted.waiting, after.waiting) == (None, Waiting.ACROSS_PROJECTS)

    async def test_what_a_session_held_is_free_when_it_is_gone(self, ledger: Ledger) -> None:
        """Case 209: neither a dead host's turn nor a deleted session's grant keeps anything from anybody."""
        source, target = await ledger.session("A", project="/a"), await ledger.session("B", project="/b")
        await ledger.begin(source)
        await ledger.note(source, target)
        await ledger.answer((await ledger.asked())[0].id, Answer.GRANT, seconds=HOUR_S)
        await ledger.claim()
        await ledger.restart()
        again = await ledger.begin(target)

        await ledger.store.run(delete_session, DeleteSession(source, None))

        assert (await ledger.turn(again)).state is TurnState.RUNNING
        assert await ledger.look(lambda tx: tx.pairs.grants(ledger.clock.now_ms(), 10)) == ()

    async def test_a_long_chain_is_listed_in_pages_with_the_state_of_each(self, ledger: Ledger) -> None:
        """Case 217: what runs, waits or has ended is found however much there is."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(chain_messages_max=9_999, inbox_max=9_999)
        sent = [await ledger.note(source, target) for _ in range(describe.PAGE_MAX + 88)]

        states: dict[MessageId, MessageState] = {}
        after = 0
        while page := (await ledger.store.read(describe.chain, (None, sent[0].message.id, None, after)))[1]:
            states |= {message.id: message.state for _, message in page}
            after = page[-1][0]

        assert list(states) == [one.message.id for one in sent]
        assert [id_ for id_, state in states.items() if state is MessageState.RUNNING] == [sent[0].message.id]
        assert not SETTLED & set(states.values())
