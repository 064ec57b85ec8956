"""Chance: all that happens by accident in a simulated host is drawn here, so a seed says all of it."""

import random
import re
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_ID: Final = re.compile(r"\b([a-z]{3,4})_[0-9a-f-]{20,}([0-9a-f]{4})\b")


class Chance:
    """One stream of accidents. What one part of a host draws changes nothing for the others."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def one_of(self, those: Sequence[T]) -> T:
        """One of *those*."""
        return those[int(self._random.random() * len(those))]

    def rather(self, those: Sequence[T], better: Sequence[T]) -> T:
        """One of *those*; mostly one that would be *better*, if there is any."""
        return self.one_of(better if better and self.happens(0.8) else those)

    def weighted(self, those: Sequence[T], weights: Sequence[float]) -> T:
        """One of *those*, as often as its weight says."""
        return self._random.choices(those, weights)[0]

    def happens(self, share: float) -> bool:
        """Whether something happens that does in a *share* of all cases."""
        return self._random.random() < share

    def up_to(self, most: int) -> int:
        """A number from 1 to *most*."""
        return 1 + int(self._random.random() * most)


def brief(text: str) -> str:
    """*text* with its ids shortened, for a story."""
    return _ID.sub(r"\1_\2", text)
