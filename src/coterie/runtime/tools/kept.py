"""The tool `read_output`: the rest of an output that was too long for a context."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from coterie.core.ids import SessionId
from coterie.core.permission import Risk
from coterie.ports.model_provider import ToolSpec
from coterie.ports.outputs import Outputs
from coterie.ports.store import Store, Tx
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.tools.arguments import Arguments, UnfitError, parse, schema_of

_HEAD_CHARS: Final = 100
_DESCRIPTION: Final = (
    "Read on in a long tool output of which you were shown the start and the end. The first line of the answer names "
    "the characters shown; the rest is the text itself."
)


class ReadOutputArguments(Arguments):
    """Which part of which output."""

    ref: str = Field(pattern=r"^[0-9a-f]{64}$", description="The ref that the shortened output names.")
    offset: int = Field(default=0, ge=0, description="How many characters to skip. Default 0.")
    limit: int | None = Field(
        default=None, ge=1, description="How many characters at most. Default: what one answer holds."
    )


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """Implements `ports.tool.Tool`."""

    spec: ToolSpec
    store: Store
    outputs: Outputs
    chars_max: int

    def risk(self, arguments: Mapping[str, object]) -> Risk:  # noqa: ARG002 - the same for all arguments
        """It reads what the session has been told already."""
        return Risk.LOW

    async def about(
        self,
        invocation: Invocation,  # noqa: ARG002 - the signature is the port's
        arguments: Mapping[str, object],
    ) -> About | ToolOutput:
        """The output, by its reference."""
        return About(str(arguments.get("ref", "")))

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Answer with the part, if the transcript of the session names the output."""
        try:
            fit = parse(ReadOutputArguments, arguments)
        except UnfitError as error:
            return ToolOutput(str(error), error=True)
        if not await self.store.read(_names, (invocation.session_id, fit.ref), brief=True):
            return ToolOutput("No tool result of this session has that ref; copy it from one that was cut.", error=True)
        limit = min(fit.limit or self.chars_max, self.chars_max)
        try:
            text, goes_on = await asyncio.to_thread(self.outputs.piece, fit.ref, fit.offset, limit)
        except OSError as error:
            return ToolOutput(f"The output cannot be read any more: {error.strerror or error}.", error=True)
        if not text:
            return ToolOutput(f"The output has no character behind offset {fit.offset}.", error=True)
        end = fit.offset + len(text)
        last = f"read on with offset {end}" if goes_on else "the end of the output"
        return ToolOutput(f"Characters {fit.offset + 1}-{end}; {last}\n{text}")


def read_output_tool(store: Store, outputs: Outputs, chars_max: int) -> ReadOutput:
    """The tool `read_output`.

    Args:
        store: Whose transcripts tell which session may read what.
        outputs: What is kept.
        chars_max: Characters of a tool result that a model is shown; an answer is never longer.
    """
    spec = ToolSpec("read_output", _DESCRIPTION, schema_of(ReadOutputArguments))
    return ReadOutput(spec, store, outputs, chars_max - min(_HEAD_CHARS, chars_max // 2))


def _names(tx: Tx, which: tuple[SessionId, str]) -> bool:
    return tx.items.names(*which)
