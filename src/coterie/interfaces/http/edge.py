"""Performs operations at the server's edge: unforeseen faults become `INTERNAL`, and a stop ends what sleeps."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from coterie.core.errors import HostError, HostUnavailableError
from coterie.interfaces.wire.door import Performs
from coterie.interfaces.wire.errors import fault_of
from coterie.operations.caller import Caller
from coterie.operations.catalogue import OPERATIONS
from coterie.operations.views import View

# What is posted and changes nothing sleeps; it can be asked again after a restart.
_SLEEPING: Final = frozenset(one.name for one in OPERATIONS if one.verb == "POST" and not one.mutates)


class Edge:
    """Implements `wire.door.Performs` by another."""

    def __init__(self, operations: Performs, stopping: asyncio.Event) -> None:
        self._operations, self._stopping = operations, stopping

    async def perform(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View:
        """See the port."""
        if name in _SLEEPING:
            outcome = await self._until_stopping(caller, name, given)
        else:
            outcome = await self._outcome(caller, name, given)
        if isinstance(outcome, HostError):
            raise outcome
        return outcome

    async def _outcome(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View | HostError:
        try:
            return await self._operations.perform(caller, name, given)
        except Exception as error:  # noqa: BLE001 - a server's edge: what is not foreseen becomes INTERNAL
            return fault_of(error)

    async def _until_stopping(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View | HostError:
        async with asyncio.TaskGroup() as group:
            performing = group.create_task(self._outcome(caller, name, given))
            watching = group.create_task(self._stopping.wait())
            await asyncio.wait({performing, watching}, return_when=asyncio.FIRST_COMPLETED)
            performing.cancel()
            watching.cancel()
        if performing.cancelled():
            return HostUnavailableError("The host is stopping; ask again when it is back.")
        return performing.result()
