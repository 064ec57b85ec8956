"""The live invocations: a credential exists only while its tool call runs."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from coterie.core.errors import PermissionDeniedError
from coterie.core.ids import SessionId, TurnId
from coterie.ports.ids import IdSource
from coterie.ports.tool import Invocation


class Invocations:
    """Makes invocations and knows which ones live."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self._live: dict[str, Invocation] = {}

    @contextmanager
    def live(
        self,
        session_id: SessionId,
        turn_id: TurnId,
        call_id: str,
        workspace: str | None,
        *,
        show: Callable[[str], None] | None = None,
    ) -> Generator[Invocation]:
        """An invocation that is good inside the block."""
        invocation = Invocation(self._ids.new("inv"), session_id, turn_id, call_id, workspace, show)
        self._live[invocation.id] = invocation
        try:
            yield invocation
        finally:
            del self._live[invocation.id]

    def check(self, invocation: Invocation) -> None:
        """Accept only the host's own object, while its call runs.

        Raises:
            PermissionDeniedError: It has ended, or the host did not make it.
        """
        if self._live.get(invocation.id) is not invocation:
            raise PermissionDeniedError("This tool call has ended; only a running one may act for its session.")
