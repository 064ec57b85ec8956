"""What the native tools share: check the arguments, find the ground, act, and turn what went wrong into an output."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from coterie.core.permission import Risk
from coterie.core.text import mend
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.tools.arguments import ArgumentsT, UnfitError, parse
from coterie.runtime.tools.ground import Ground, ground_of

OUTPUT_CHARS_MAX: Final = 1_000_000
"""How much of a file one output may hold: more of it is read by another call."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class NativeTool(Generic[ArgumentsT]):
    """A tool that acts on the project folder of the session."""

    spec: ToolSpec
    arguments_type: type[ArgumentsT]
    level: Risk
    closed: tuple[Path, ...]
    about_: Callable[[Ground, ArgumentsT], About]
    """Tells what a call is about; reads files, so it is called in a thread."""
    act: Callable[[Ground, ArgumentsT], Awaitable[ToolOutput]]

    def risk(self, arguments: Mapping[str, object]) -> Risk:  # noqa: ARG002 - the same for all arguments
        """What a call can do: a matter of the tool, never of what the model wrote."""
        return self.level

    async def about(self, invocation: Invocation, arguments: Mapping[str, object]) -> About | ToolOutput:
        """What a call is about, by where its path really leads."""

        async def told(ground: Ground, fit: ArgumentsT) -> About:
            return await asyncio.to_thread(self.about_, ground, fit)

        return await self._on_ground(invocation, arguments, told)

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Do it; what the model or the file system got wrong is an output."""
        return await self._on_ground(invocation, arguments, self.act)

    async def _on_ground(
        self,
        invocation: Invocation,
        arguments: Mapping[str, object],
        act: Callable[[Ground, ArgumentsT], Awaitable[ResultT]],
    ) -> ResultT | ToolOutput:
        try:
            fit = parse(self.arguments_type, arguments)
            ground = await asyncio.to_thread(ground_of, invocation.workspace, self.closed)
            return await act(ground, fit)
        except UnfitError as error:
            return ToolOutput(mend(str(error)), error=True)
        except OSError as error:
            return ToolOutput(mend(f"The system refused: {error.strerror or error}."), error=True)


async def see_through(work: Awaitable[ResultT]) -> ResultT:
    """Await *work* to its end even when the caller is cancelled, and only then let the cancellation go on.

    For acts that would go on unobserved otherwise: a thread cannot be cancelled, and a lock must cover all of its act.
    """
    future = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.gather(future, return_exceptions=True)
        raise
