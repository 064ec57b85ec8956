"""What every question is asked with."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.stores import Ground


@dataclass(frozen=True, slots=True)
class Bench:
    """How much is measured, and where."""

    folder: Path
    """On a real disk: a flush is what a commit costs."""
    quick: bool
    """A smoke: the figures are there, and say little."""
    old_messages: int
    """How full the ledger is where that is the question."""
    ground: Ground
    """The database of questions that can be asked of more than one."""

    def size(self, usual: int, quick: int) -> int:
        """A number of repetitions."""
        return quick if self.quick else usual

    def place(self, name: str) -> Path:
        """A fresh folder."""
        path = self.folder / name
        path.mkdir()
        return path
