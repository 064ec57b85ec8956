"""What tools have answered at length or in pictures, kept beside the ledger."""

from collections.abc import Iterable, Sequence
from typing import Protocol


class Outputs(Protocol):
    """Texts by reference: the same text has the same one, so keeping it twice keeps it once.

    The verbs block and are called in a thread; they raise `OSError` where the disk refuses.
    """

    def keep(self, text: str) -> str:
        """Keep *text* for good, and return its reference once it would outlive a crash."""
        ...

    def old(self) -> Sequence[str]:
        """References of all that was last kept so long ago that its row is written by now, if it ever will be."""
        ...

    def forget(self, refs: Iterable[str]) -> None:
        """Remove what nobody names any more."""
        ...

    def piece(self, ref: str, offset: int, limit: int) -> tuple[str, bool]:
        """Up to *limit* characters after the first *offset*, and whether more follow."""
        ...


class Images(Protocol):
    """Pictures by reference, in the same place and by the same rules."""

    def keep_image(self, data: bytes) -> str:
        """Keep *data* for good, and return its reference once it would outlive a crash."""
        ...

    def image(self, ref: str) -> bytes:
        """All of what was kept."""
        ...
