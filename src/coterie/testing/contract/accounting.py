"""What a session has used, over all of its turns."""

from coterie.app import describe
from coterie.core.codes import Code
from coterie.core.turn.items import Reply, Usage
from coterie.ports.rows import Used
from coterie.testing.contract.forking import fork
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger


class AccountingContract(LedgerContract):
    """Sums of what is known, and how much is not."""

    async def test_turns_are_summed_and_what_is_unknown_is_counted(self, ledger: Ledger) -> None:
        """An unknown price that passed for nothing would be a promise that nobody made."""
        session, other = await ledger.sessions("AB")
        await ledger.spend(await ledger.begin(session), cost=5, tokens=7)
        await ledger.spend(await ledger.begin(session), tokens=2)
        await ledger.settle(await ledger.begin(session), code=Code.PROVIDER_ERROR)
        await ledger.spend(await ledger.begin(other), cost=100, tokens=100)
        found, used = await ledger.store.read(describe.session_used, session)
        assert (found.id, used) == (session, Used(3, 9, None, 5, uncounted=3, unpriced=2))

    async def test_a_running_turn_and_those_of_the_origin_of_a_fork_are_not_in_the_sum(self, ledger: Ledger) -> None:
        """The one is not over; the others were paid for once."""
        session = await ledger.session()
        await ledger.spend(await ledger.begin(session), cost=5)
        copy = await fork(ledger, session)
        await ledger.begin(copy)
        _, used = await ledger.store.read(describe.session_used, copy)
        assert used == Used(0, None, None, None, uncounted=0, unpriced=0)

    async def test_a_turn_that_a_restart_has_ended_counts_with_what_it_had_written(self, ledger: Ledger) -> None:
        """The vendor does not forget it either; and sums may be larger than a number of 32 bits."""
        session = await ledger.session()
        turn_id = await ledger.begin(session)
        many = 3_000_000_000
        await ledger.change(lambda tx: tx.items.append(session, turn_id, [Reply("a", usage=Usage(many, 2, many))], 0))
        await ledger.restart()
        await ledger.release()
        await ledger.spend(await ledger.begin(session), cost=many, tokens=many)
        _, used = await ledger.store.read(describe.session_used, session)
        assert used == Used(2, 2 * many, 2, 2 * many, uncounted=1, unpriced=0)
