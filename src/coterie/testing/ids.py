"""Ids that come out the same for the same seed."""

import random
import threading

from coterie.core.ids import RANDOM_BITS, Prefix, make_id
from coterie.testing.clock import START_MS


class SeededIds:
    """Implements `ports.ids.IdSource`. Two sources with one seed make the same ids in the same order."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - ids of a test guard nothing
        self._made = 0
        self._lock = threading.Lock()

    def new(self, prefix: Prefix) -> str:
        """See the port."""
        with self._lock:
            self._made += 1
            return make_id(prefix, START_MS + self._made, self._random.getrandbits(RANDOM_BITS))
