"""Randomness, as the host needs it."""

from typing import Protocol

from coterie.core.ids import Prefix


class IdSource(Protocol):
    """Makes ids."""

    def new(self, prefix: Prefix) -> str:
        """A fresh id (`core.ids.make_id`)."""
        ...
