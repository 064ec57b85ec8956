"""The tool `todo`: a model keeps a list of its work in the transcript."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from coterie.core.permission import Risk
from coterie.core.text import is_blank
from coterie.core.turn.todo import TODO, Progress, listing
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.tools.arguments import Arguments, Text, UnfitError, parse, schema_of

_ENTRIES_MAX: Final = 50
_ENTRY_CHARS_MAX: Final = 200
_DESCRIPTION: Final = (
    "Keep a list of the steps of longer work. Each call replaces the whole list, so give all entries each time; an "
    "empty list ends it. The person sees it, and you are shown it again when older parts of the conversation are left "
    "out."
)


def _in_one_line(text: str) -> str:
    if is_blank(text):
        raise ValueError("the text is blank")
    if len(text.splitlines()) > 1:
        raise ValueError("an entry is one line")
    return text


class Entry(Arguments):
    """One step."""

    text: Annotated[Text, AfterValidator(_in_one_line)] = Field(max_length=_ENTRY_CHARS_MAX)
    status: Literal["pending", "in_progress", "done"]


class TodoArguments(Arguments):
    """The whole list."""

    items: list[Entry] = Field(max_length=_ENTRIES_MAX, description="All entries, in their order.")


@dataclass(frozen=True, slots=True)
class Todo:
    """Implements `ports.tool.Tool`."""

    spec: ToolSpec

    def risk(self, arguments: Mapping[str, object]) -> Risk:  # noqa: ARG002 - the same for all arguments
        """It writes nothing but its own answer."""
        return Risk.LOW

    async def about(
        self,
        invocation: Invocation,  # noqa: ARG002 - the signature is the port's
        arguments: Mapping[str, object],  # noqa: ARG002 - the signature is the port's
    ) -> About | ToolOutput:
        """Nothing beyond itself."""
        return About("")

    async def run(
        self,
        invocation: Invocation,  # noqa: ARG002 - the signature is the port's
        arguments: Mapping[str, object],
    ) -> ToolOutput:
        """Answer with the list, which is all that is kept of it."""
        try:
            fit = parse(TodoArguments, arguments)
        except UnfitError as error:
            return ToolOutput(str(error), error=True)
        return ToolOutput(listing((Progress(entry.status), entry.text.strip()) for entry in fit.items))


def todo_tool() -> Todo:
    """The tool `todo`."""
    return Todo(ToolSpec(TODO, _DESCRIPTION, schema_of(TodoArguments)))
