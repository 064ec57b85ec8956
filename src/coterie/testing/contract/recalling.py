"""What a worker reads of a transcript: its end, from the newest checkpoint on, as far as it may."""

from collections.abc import Sequence

import pytest

from coterie.app.delete_session import DeleteSession, delete_session, purge_deleted
from coterie.app.recall import SIZES_MAX, Recall, Recalled, recall
from coterie.core.ids import SessionId, TurnId
from coterie.core.turn.items import Checkpoint, Image, Item, PersonText, Reply, ToolResult, Usage
from coterie.testing.contract.forking import fork
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


async def _heard(ledger: Ledger, items: Sequence[Item]) -> tuple[SessionId, TurnId]:
    """A session with a running turn that wrote *items* behind its prompt."""
    session = await ledger.session()
    turn_id = await ledger.begin(session)
    await ledger.change(lambda tx: tx.items.append(session, turn_id, items, 0))
    return session, turn_id


async def _recalled(ledger: Ledger, session: SessionId, chars_max: int = 1 << 20) -> Recalled:
    return await ledger.store.read(recall, Recall(session, chars_max))


def _numbers(recalled: Recalled) -> list[int]:
    return [one.number for one in recalled.numbered]


class RecallContract(LedgerContract):
    """However long a transcript is, its end is read and no more."""

    async def test_the_end_is_read_as_far_as_there_is_room(self, ledger: Ledger) -> None:
        """By length as it is stored; the newest item whatever its length."""
        session, _ = await _heard(ledger, [Reply("x" * 1_000), Reply("y" * 1_000), Reply("z" * 1_000)])
        found = [await _recalled(ledger, session, room) for room in (1, 3_000, 3_390)]
        assert [(_numbers(one), one.left_out, one.last) for one in found] == [
            ([4], 3, 4),
            ([3, 4], 2, 4),
            ([2, 3, 4], 1, 4),
        ]
        assert await _recalled(ledger, await ledger.session()) == Recalled()

    async def test_what_only_people_are_shown_takes_no_room(self, ledger: Ledger) -> None:
        """Else a session that edits much would remember less for it."""
        result = ToolResult("1", "edit", "Replaced.", diff="+" * 8_000)
        session, _ = await _heard(ledger, [Reply("x"), result])
        found = await _recalled(ledger, session, 1_000)
        assert (_numbers(found), found.items[-1]) == ([1, 2, 3], result)

    async def test_lengths_are_looked_at_beyond_one_page(self, ledger: Ledger) -> None:
        """All of a transcript of many short items may fit."""
        session, _ = await _heard(ledger, [Reply(".")] * (SIZES_MAX + 1))
        found = await _recalled(ledger, session)
        assert (_numbers(found), found.left_out) == (list(range(1, SIZES_MAX + 3)), 0)

    async def test_reading_begins_with_the_newest_checkpoint(self, ledger: Ledger) -> None:
        """What it covers is not read, but for what was asked there; what it left stays."""
        newest = Checkpoint("new", 5, asked=1)
        items = [Reply("a"), Checkpoint("old", 2), Reply("b"), Reply("c"), Reply("kept"), newest, Reply("d")]
        session, _ = await _heard(ledger, items)
        found = await _recalled(ledger, session)
        assert (_numbers(found), found.covered, found.left_out, found.last) == ([1, 6, 7, 8], 5, 0, 8)
        assert found.items == [PersonText("go"), Reply("kept"), newest, Reply("d")]

    async def test_a_checkpoint_stands_also_where_reading_ends_after_it(self, ledger: Ledger) -> None:
        """Else everything before it would be forgotten."""
        session, _ = await _heard(ledger, [Reply("a"), Checkpoint("sum", 2), Reply("x" * 900), Reply("y" * 900)])
        found = await _recalled(ledger, session, 1_000)
        assert (_numbers(found), found.covered, found.left_out) == ([3, 5], 2, 2)

    @pytest.mark.parametrize(("up_to", "numbers"), [(None, [3, 4]), (3, [1, 2, 3])])
    async def test_a_fork_begins_where_its_own_transcript_lets_it(
        self, ledger: Ledger, up_to: int | None, numbers: list[int]
    ) -> None:
        """With the checkpoint, or before it with what it covers."""
        session, _ = await _heard(ledger, [Reply("a"), Reply("b"), Checkpoint("sum", 2)])
        assert _numbers(await _recalled(ledger, await fork(ledger, session, up_to=up_to))) == numbers

    async def test_what_a_checkpoint_has_used_is_used_by_its_turn(self, ledger: Ledger) -> None:
        """For an end that no worker reports."""
        session, turn_id = await _heard(
            ledger, [Reply("a", usage=Usage(1, 2, 3)), Checkpoint("s", 1, None, Usage(4, 5, 6))]
        )
        turn = await ledger.store.read(lambda tx, command: tx.turns.get(command), turn_id)
        assert turn is not None
        used = await ledger.store.read(lambda tx, command: tx.items.usage(command), turn)
        assert (turn.session_id, used) == (session, (Usage(1, 2, 3), Usage(4, 5, 6)))

    async def test_a_transcript_names_the_outputs_that_its_results_were_cut_from(self, ledger: Ledger) -> None:
        """So does a fork of it, and no other."""
        session, _ = await _heard(ledger, [ToolResult("1", "bash", "x", ref="ab"), ToolResult("2", "bash", "ab")])
        copy, early, other = await fork(ledger, session), await fork(ledger, session, up_to=1), await ledger.session()

        async def names(session_id: SessionId, ref: str) -> bool:
            return await ledger.store.read(lambda tx, command: tx.items.names(*command), (session_id, ref))

        assert [await names(one, "ab") for one in (session, copy, early, other)] == [True, True, False, False]
        assert not await names(session, "x")

    async def test_an_output_is_named_as_long_as_some_transcript_names_it(self, ledger: Ledger) -> None:
        """An image too; what nobody names may go."""
        image = Image("ef", "image/png", 3)
        results = [ToolResult("1", "bash", "x", ref="ab"), ToolResult("2", "read", "y", image=image)]
        session, _ = await _heard(ledger, results)
        copy = await fork(ledger, session)

        async def named() -> frozenset[str]:
            return await ledger.store.read(lambda tx, command: tx.items.named(command), ["ab", "cd", "ef"])

        found = [await named()]
        for one in (session, copy):
            await ledger.store.run(delete_session, DeleteSession(one, None))
            assert await ledger.store.run(purge_deleted, 100)
            found.append(await named())
        assert found == [{"ab", "ef"}, {"ab", "ef"}, frozenset()]
