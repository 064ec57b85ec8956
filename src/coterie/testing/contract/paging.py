"""What takes a bound keeps to it, so that what is shown costs the same in an old ledger (I15)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import pytest

from coterie.app import describe
from coterie.core.ids import ChainId, MessageId, SessionId
from coterie.ports.store import Tx
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger

LIMIT: Final = 3
MORE: Final = 5
"""Of everything there is more than what is asked for."""
NEWER: Final = 120
"""Messages behind which nothing is sought for a summary."""

Look: TypeAlias = Callable[[Tx, SessionId, ChainId], Sequence[object]]

LOOKS: Final[dict[str, Look]] = {
    "sessions": lambda tx, _session, _chain: tx.directory.page(None, LIMIT),
    "workers": lambda tx, session, _chain: tx.directory.created_by(session, LIMIT),
    "items": lambda tx, session, _chain: tx.items.page(session, 0, LIMIT),
    "queue": lambda tx, session, _chain: tx.inputs.page(session, LIMIT),
    "chain": lambda tx, _session, chain: tx.exchanges.of_chain(chain, 0, LIMIT),
    "messages": lambda tx, session, _chain: tx.exchanges.recent(session, LIMIT),
    "changes": lambda tx, _session, _chain: tx.journal.changes(0, None, LIMIT),
    "changes of one session": lambda tx, session, _chain: tx.journal.changes(0, session, LIMIT),
}


class PagingContract(LedgerContract):
    """A page is a page."""

    @pytest.mark.guarantee("I15")
    @pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
    async def test_a_page_has_what_was_asked_for_and_no_more(self, ledger: Ledger, look: Look) -> None:
        """Who follows the numbers sees all of it either way, so only the size of a page tells."""
        source, target = await ledger.sessions("AB")
        turn = await ledger.begin(source)
        ledger.limit(workers_active_max=2 * MORE)
        for _ in range(MORE):
            await ledger.spawn(source, title="A")
            await ledger.append(turn)
            await ledger.prompt(source)
        sent = await ledger.note(source, target)

        found = await ledger.look(lambda tx: look(tx, source, sent.message.chain_id))

        assert len(found) == LIMIT

    @pytest.mark.guarantee("I15")
    async def test_a_summary_looks_for_an_outcome_among_the_newest_messages_only(self, ledger: Ledger) -> None:
        """Else it would read all that a session was ever sent, if none of it has settled."""
        source, target = await ledger.sessions("AB")
        await ledger.begin(source)
        ledger.limit(inbox_max=NEWER, chain_messages_max=2 * NEWER)
        task = await ledger.task(source, target)
        await ledger.settle(task.turn_id, slot=False)
        await ledger.begin(target)

        delivered: list[MessageId | None] = []
        for messages in (1, NEWER - 1):
            for _ in range(messages):
                await ledger.note(source, target)
            found = (await ledger.store.read(describe.status, target)).delivered
            delivered.append(found.id if found else None)

        assert delivered == [task.message.id, None]
