"""What tools have answered at length or in pictures, kept beside the ledger."""

from typing import Protocol


class Outputs(Protocol):
    """Texts by reference: the same text has the same one, so keeping it twice keeps it once.

    Both verbs block and are called in a thread; both raise `OSError` where the disk refuses.
    """

    def keep(self, text: str) -> str:
        """Keep *text* for good, and return its reference once it would outlive a crash."""
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
