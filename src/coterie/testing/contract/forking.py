"""A new session that begins with the transcript of another one."""

import pytest

from coterie.app import describe
from coterie.app.describe import WhichResult
from coterie.app.fork_session import ForkSession, fork_session
from coterie.core.errors import NotFoundError
from coterie.core.ids import GrantId, SessionId
from coterie.core.inbound import Waiting
from coterie.core.permission import StoredMode
from coterie.core.session.session import Held
from coterie.core.thinking import Thinking
from coterie.core.turn.context import INTERRUPTED, UserPart, shown
from coterie.core.turn.items import PersonText, Reply, SessionText, ToolCall, ToolResult
from coterie.ports.rows import PairGrant
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.contract.steering import items
from coterie.testing.ledger import Ledger


async def fork(ledger: Ledger, session: SessionId, *, title: str | None = None, up_to: int | None = None) -> SessionId:
    """Begin a new session from another one."""
    found, _ = await ledger.store.run(fork_session, ForkSession(session, title, up_to, None))
    return found.id


class ForkContract(LedgerContract):
    """A fork knows what the old session has heard and said, and is none of its business partners."""

    async def test_a_fork_has_the_transcript_with_its_origins(self, ledger: Ledger) -> None:
        """Numbers, frames and all, so that a model reads what it read before."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        for text in ("42", "43"):
            await ledger.settle((await ledger.task(source, target)).turn_id, text)
        copy = await fork(ledger, target)
        assert await ledger.transcript(copy) == await ledger.transcript(target)
        assert [type(item) for item in await items(ledger, copy)] == [SessionText, Reply] * 2

    @pytest.mark.parametrize(("up_to", "texts"), [(1, ["go"]), (3, ["go", "a", "go"]), (99, ["go", "a", "go", "b"])])
    async def test_a_fork_may_begin_earlier(self, ledger: Ledger, up_to: int, texts: list[str]) -> None:
        """A person goes back to where it went wrong; both go on for themselves."""
        session = await ledger.session()
        for text in "ab":
            await ledger.settle(await ledger.begin(session), text)
        copy = await fork(ledger, session, up_to=up_to)
        await ledger.begin(copy)
        said = [item.text for item in await items(ledger, copy) if isinstance(item, PersonText | Reply)]
        assert said == [*texts, "go"]
        assert [numbered.number for numbered in await ledger.transcript(copy)] == list(range(1, len(texts) + 2))
        assert await items(ledger, session) == [PersonText("go"), Reply("a"), PersonText("go"), Reply("b")]

    async def test_a_fork_takes_over_place_and_rights_and_a_title(self, ledger: Ledger) -> None:
        """It works where the old one worked, and with no more than that."""
        session = await ledger.session("old", StoredMode.ACCEPT_EDITS, project="/project")
        await ledger.configure(session, model="local/other", thinking=Thinking.LOW)
        copies = [await ledger.known(await fork(ledger, session, title=title)) for title in (None, "new")]
        assert [copy.title for copy in copies] == ["old (fork)", "new"]
        for copy in copies:
            taken = (copy.project_path, copy.model, copy.permission_mode, copy.thinking)
            assert taken == ("/project", "local/other", StoredMode.ACCEPT_EDITS, Thinking.LOW)
        with pytest.raises(NotFoundError):
            await fork(ledger, SessionId("ses_none"))

    async def test_a_fork_takes_over_nothing_that_lives(self, ledger: Ledger) -> None:
        """No queue, turn, hold, link or message; what was delivered to the old one was not delivered to it."""
        lead = await ledger.session()
        await ledger.begin(lead)
        worker = (await ledger.spawn(lead)).message.target_session_id
        await ledger.task(lead, worker)
        await ledger.prompt(worker)
        await ledger.steer(worker)
        await ledger.change(lambda tx: tx.sessions.hold(worker, Held.RESTART))

        copy = await fork(ledger, worker)

        status = await ledger.store.read(describe.status, copy)
        assert (status.status, status.waiting, status.turn, status.creator) == ("idle", 0, None, None)
        assert (status.current, status.delivered, status.exchanges, status.created) == (None, None, (), ())
        assert (status.session.held, status.session.ready, status.session.streak) == (None, None, 0)
        assert await ledger.store.read(describe.result, WhichResult(copy, None, None, None)) == (False, None)
        turn = await ledger.turn(await ledger.begin(copy))
        assert (turn.kind, turn.hops) == ("prompt", ledger.host.limits.hops_max + 1)
        assert (await ledger.spawn(copy)).turn_id is not None

    async def test_a_fork_may_not_write_where_only_the_old_session_may(self, ledger: Ledger) -> None:
        """A grant is for a pair of sessions, and the fork is another one."""
        near, far = await ledger.session("A", project="/near"), await ledger.session("B", project="/far")
        grant = PairGrant(GrantId("grt_old"), near, far, 0, ledger.clock.now_ms() + 1_000)
        await ledger.change(lambda tx: tx.pairs.add_grant(grant))
        copy = await fork(ledger, near)
        for session in (near, copy):
            await ledger.begin(session)
        waits = [(await ledger.note(session, far)).waiting for session in (near, copy)]
        assert waits == [None, Waiting.ACROSS_PROJECTS]

    async def test_a_fork_of_a_running_turn_closes_what_is_open(self, ledger: Ledger) -> None:
        """The result of the call will come in the old session only, and no vendor takes a call without one."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        call = Reply("", (ToolCall("call", "bash", "{}"),))
        await ledger.change(lambda tx: tx.items.append(session, turn_id, [call], 0))
        copy = await fork(ledger, session)
        await ledger.append(turn_id)
        await ledger.begin(copy)
        assert shown(await items(ledger, copy)) == (
            UserPart("go"),
            call,
            ToolResult("call", "bash", INTERRUPTED, error=True),
            UserPart("go"),
        )
        assert await ledger.running(session) is not None

    @pytest.mark.guarantee("I8")
    @pytest.mark.parametrize("busy", [True, False])
    async def test_answers_go_to_the_session_that_asked(self, ledger: Ledger, *, busy: bool) -> None:
        """Case 31: the old one's to the old one, the fork's to the fork, whichever is at work."""
        old, worker = await ledger.sessions("AB")
        turn_id = await ledger.begin(old)
        first = await ledger.task(old, worker)
        copy = await fork(ledger, old)
        await ledger.begin(copy)
        spawned = await ledger.spawn(copy)
        if not busy:
            await ledger.settle(turn_id, slot=False)
        for receipt in (first, spawned):
            await ledger.settle(receipt.turn_id, slot=False)
        told = [await ledger.completion(receipt.message.id) for receipt in (first, spawned)]
        assert [one and one.target_session_id for one in told] == [old, copy]
        assert [(await ledger.places(session)).completions for session in (old, copy)] == [1, 1]
