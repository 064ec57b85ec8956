"""What every part of the contract stands on: a fresh ledger, checked whole when the test is over."""

from collections.abc import AsyncGenerator, Awaitable
from pathlib import Path

import pytest
import pytest_asyncio

from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.refusal import Refusal
from coterie.testing.ledger import Ledger, OpenStore


class LedgerContract:
    """A suite whose tests get a started ledger."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """How to open the store under test; a subclass says so."""
        raise NotImplementedError("override the fixture open_store")

    @pytest_asyncio.fixture
    async def ledger(self, open_store: OpenStore, tmp_path: Path) -> AsyncGenerator[Ledger]:
        """A started host on an empty store; whatever the test did, no promise may be broken in the end."""
        ledger = Ledger(open_store, tmp_path / "coterie.db")
        await ledger.start()
        yield ledger
        broken = await ledger.violations()
        await ledger.store.close()
        assert not broken


async def refused(attempt: Awaitable[object], code: Code) -> Refusal:
    """Assert that *attempt* is refused with *code*; returns why."""
    with pytest.raises(RefusedError) as caught:
        await attempt
    assert caught.value.code is code
    return caught.value.refusal
