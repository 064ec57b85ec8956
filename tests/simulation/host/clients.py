"""A host's door, and who stands before it: some wait for their answer, some do not."""

import asyncio
from typing import Any, Final

from tests.simulation.host.chronicle import Chronicle
from tests.simulation.host.requests import Request, Wire
from tests.simulation.host.witness import HostWitness

from coterie.core.errors import (
    ConflictError,
    HostError,
    HostUnavailableError,
    IdempotencyConflictError,
    NotFoundError,
    PermissionDeniedError,
    RefusedError,
    StorageError,
)
from coterie.operations.caller import Person
from coterie.operations.perform import Operations

REFUSALS: Final = (RefusedError, ConflictError, PermissionDeniedError)
"""What may answer a request that comes at the wrong moment."""


class Clients:
    """All who ask one host in one epoch."""

    def __init__(self, operations: Operations, chronicle: Chronicle, witness: HostWitness) -> None:
        self._operations, self._chronicle, self._witness = operations, chronicle, witness
        self.full = False
        """Whether the disk may be full."""
        self._asking: dict[asyncio.Task[None], None] = {}

    def send(self, request: Request, *, patience_s: float | None = None) -> None:
        """Send a request, and go away after a while without its answer."""
        task = asyncio.get_running_loop().create_task(self._ask(request))
        self._asking[task] = None
        task.add_done_callback(self._gone)
        if patience_s is not None:
            asyncio.get_running_loop().call_later(patience_s, task.cancel)

    async def ask(self, operation: str, **params: Any) -> Wire | None:
        """Ask, and wait for the answer; None if it was refused."""
        request = Request(-1, operation, params)
        await self._ask(request)
        return request.answers[-1] if request.answers else None

    async def leave(self) -> None:
        """Nobody waits any more."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    def _gone(self, task: asyncio.Task[None]) -> None:
        del self._asking[task]

    async def _ask(self, request: Request) -> None:
        loop = asyncio.get_running_loop()
        request.asked_at = loop.time()
        name = f"{request.number}" if request.number >= 0 else "-"
        self._chronicle.tell_of(f"{name} asks {request.operation}", request.params)
        try:
            view = await self._operations.perform(Person(), request.operation, request.params)
            told = view.wire()
            self._chronicle.tell_of(f"{name} is told", told)
            self._witness.answered(request, told, loop.time())
        except HostError as error:
            self._chronicle.tell(f"{name} is refused: {error.code.value} {error}")
            if not self._may_be(error):
                self._chronicle.wrong(error)
        except Exception as error:  # noqa: BLE001 - a door shows faults of the host only
            self._chronicle.wrong(error)

    def _may_be(self, error: HostError) -> bool:
        match error:
            case IdempotencyConflictError():
                return False
            case NotFoundError(kind="session", subject=subject):
                return subject in self._witness.gone
            case NotFoundError(kind=kind):
                return kind in {"waiting input", "open request", "grant"}
            case StorageError():
                return self.full
            case HostUnavailableError():
                return True
            case _:
                return isinstance(error, REFUSALS)
