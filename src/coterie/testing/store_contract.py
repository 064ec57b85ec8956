"""What every store of the ledger must do, as a suite to subclass.

A subclass overrides the fixture `open_store` and is collected by pytest, with pytest-asyncio; every test gets a fresh
store, goes through real use cases and ends with a check of the whole ledger.
"""

from coterie.testing.contract.cancelling import CancellingContract
from coterie.testing.contract.commits import BudgetContract, CommitContract
from coterie.testing.contract.queue import HeldContract, QueueContract
from coterie.testing.contract.reading import ReadingContract
from coterie.testing.contract.recovery import RecoveryContract
from coterie.testing.contract.sending import ChainContract, SendingContract
from coterie.testing.contract.settling import AbsorbingContract, CompletionContract, SettlingContract

__all__ = ["StoreContract"]


class StoreContract(
    SendingContract,
    ChainContract,
    QueueContract,
    HeldContract,
    SettlingContract,
    CompletionContract,
    AbsorbingContract,
    CancellingContract,
    RecoveryContract,
    ReadingContract,
    CommitContract,
    BudgetContract,
):
    """The whole contract."""
