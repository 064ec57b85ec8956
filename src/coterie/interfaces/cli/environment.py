"""What the terminal needs of the machine it runs on; who composes the program supplies it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Environment(Protocol):
    """The surroundings of one run of the program."""

    @property
    def working_directory(self) -> Path:
        """The folder that new sessions work in."""
        ...

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables."""
        ...

    def data_directory(self, explicit: Path | None) -> Path:
        """The data directory: *explicit*, else what the variables say, else the platform's folder."""
        ...

    def start_host(self, data: Path) -> None:
        """Start a host of its own process on *data* and return when it answers.

        Raises:
            HostError: It did not start; the text says why.
        """
        ...
