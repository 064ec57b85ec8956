"""What a protocol needs of the host: somebody who performs operations."""

from collections.abc import Mapping
from typing import Any, Protocol

from coterie.operations.caller import Caller
from coterie.operations.views import View


class Performs(Protocol):
    """Performs operations: `operations.Operations`, or what a server puts before it."""

    async def perform(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View:
        """Perform the operation *name* for *caller*.

        Raises:
            HostError: What was wrong.
        """
        ...
