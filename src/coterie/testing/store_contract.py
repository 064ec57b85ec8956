"""What every store of the ledger must do, as a suite to subclass.

A subclass overrides the fixture `open_store` and is collected by pytest, with pytest-asyncio and Hypothesis; every test
gets a fresh store, goes through real use cases and ends with a check of the whole ledger.
"""

from coterie.testing.contract.accounting import AccountingContract
from coterie.testing.contract.admitting import InboundContract
from coterie.testing.contract.aftermath import AftermathContract
from coterie.testing.contract.approving import ApprovingContract, CallGrantContract
from coterie.testing.contract.arranging import ArrangingContract, EachArrangementContract
from coterie.testing.contract.bounding import DepthContract, SpendingContract
from coterie.testing.contract.cancelling import CancellingContract
from coterie.testing.contract.cases import AnsweredOnceContract, HalfDoneContract
from coterie.testing.contract.commits import BudgetContract, CommitContract
from coterie.testing.contract.crossing import CrossingContract, PairAnswerContract
from coterie.testing.contract.current_turn import AcceptedContract, CurrentTurnContract
from coterie.testing.contract.deleting import DeletingContract, PurgingContract
from coterie.testing.contract.expiring import ExpiringContract
from coterie.testing.contract.forking import ForkContract
from coterie.testing.contract.joining import JoinedChainsContract
from coterie.testing.contract.lifecycle import (
    AcceptanceContract,
    ArchiveContract,
    ConfigureContract,
    InterruptContract,
    LifecycleKeysContract,
)
from coterie.testing.contract.offering import OfferContract
from coterie.testing.contract.paging import PagingContract
from coterie.testing.contract.questioning import QuestioningContract
from coterie.testing.contract.queue import HeldContract, QueueContract
from coterie.testing.contract.queue_cases import NameCasesContract, QueueCasesContract
from coterie.testing.contract.reading import ReadingContract
from coterie.testing.contract.recalling import RecallContract
from coterie.testing.contract.recovery import RecoveryContract
from coterie.testing.contract.repeating import RepeatingContract
from coterie.testing.contract.resuming import ResumingContract
from coterie.testing.contract.retrying import RetryingContract
from coterie.testing.contract.sending import ChainContract, SendingContract
from coterie.testing.contract.settling import AbsorbingContract, CompletionContract, SettlingContract
from coterie.testing.contract.steering import RepeatedSteeringContract, SteeringContract, UnreadSteeringContract

__all__ = ["StoreContract"]


class StoreContract(
    SendingContract,
    ChainContract,
    QueueContract,
    HeldContract,
    ArrangingContract,
    EachArrangementContract,
    SettlingContract,
    CompletionContract,
    AbsorbingContract,
    SteeringContract,
    UnreadSteeringContract,
    RepeatedSteeringContract,
    CurrentTurnContract,
    AcceptedContract,
    OfferContract,
    CancellingContract,
    InterruptContract,
    InboundContract,
    CrossingContract,
    PairAnswerContract,
    ApprovingContract,
    CallGrantContract,
    QuestioningContract,
    SpendingContract,
    JoinedChainsContract,
    DepthContract,
    RetryingContract,
    ExpiringContract,
    AcceptanceContract,
    ConfigureContract,
    ArchiveContract,
    DeletingContract,
    PurgingContract,
    ForkContract,
    RecallContract,
    AccountingContract,
    LifecycleKeysContract,
    RecoveryContract,
    AftermathContract,
    ResumingContract,
    ReadingContract,
    PagingContract,
    RepeatingContract,
    CommitContract,
    BudgetContract,
    AnsweredOnceContract,
    HalfDoneContract,
    QueueCasesContract,
    NameCasesContract,
):
    """The whole contract."""
