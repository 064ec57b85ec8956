"""The tool `ask_user`: an agent asks the person something, and its turn sleeps until they answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from coterie.app.approve import AskPerson
from coterie.core.errors import StorageError
from coterie.core.permission import Risk
from coterie.core.text import is_blank, mend
from coterie.operations.approving import Person
from coterie.ports.model_provider import ToolSpec
from coterie.ports.rows import CallAnswer
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.tools.arguments import Arguments, Text, UnfitError, parse, schema_of

NAME: Final = "ask_user"
_QUESTION_CHARS_MAX: Final = 4_000
_CHOICE_CHARS_MAX: Final = 200
_DESCRIPTION: Final = (
    "Ask the person a question and wait for the answer, however long that takes. Only for what you cannot find out "
    "and what a wrong guess would make costly; a question in your last reply asks as well, if nothing else is left to "
    "do."
)


def _said(text: str) -> str:
    if is_blank(text):
        raise ValueError("the text is blank")
    return text


def _in_one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("a choice is one line")
    return text


def _different(choices: list[str]) -> list[str]:
    if len({choice.strip().casefold() for choice in choices}) < len(choices):
        raise ValueError("two choices are the same")
    return choices


_Choice = Annotated[Text, Field(max_length=_CHOICE_CHARS_MAX), AfterValidator(_said), AfterValidator(_in_one_line)]


class AskUserArguments(Arguments):
    """What to ask."""

    question: Annotated[Text, AfterValidator(_said)] = Field(
        max_length=_QUESTION_CHARS_MAX, description="The question, with all that the person needs to know to answer it."
    )
    choices: Annotated[list[_Choice], AfterValidator(_different)] | None = Field(
        default=None, min_length=2, max_length=6, description="Answers to choose from; the person may say other words."
    )


@dataclass(frozen=True, slots=True)
class AskUser:
    """Implements `ports.tool.Tool`."""

    spec: ToolSpec
    person: Person

    def risk(self, arguments: Mapping[str, object]) -> Risk:  # noqa: ARG002 - the same for all arguments
        """Low: nobody has to allow a question, which does nothing but ask."""
        return Risk.LOW

    async def about(
        self,
        invocation: Invocation,  # noqa: ARG002 - the signature is the port's
        arguments: Mapping[str, object],
    ) -> About | ToolOutput:
        """The question."""
        return About(str(arguments.get("question", "")))

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Ask, sleep parked, and tell what the person says, as theirs."""
        try:
            fit = parse(AskUserArguments, arguments)
        except UnfitError as error:
            return ToolOutput(str(error), error=True)
        choices = tuple(choice.strip() for choice in fit.choices or ())
        question = fit.question.strip()
        asking = AskPerson(invocation.turn_id, invocation.id, NAME, Risk.LOW, question, "", None, choices)
        try:
            asked = await self.person.answer(asking)
        except StorageError as error:
            return ToolOutput(mend(f"The person could not be asked: {error}"), error=True)
        if asked is None:
            return ToolOutput("Nobody was asked: the turn has ended.", error=True)
        if asked.answer is CallAnswer.SAID:
            return ToolOutput(f"The person answers: {asked.note}")
        note = f" They say: {asked.note}" if asked.note else ""
        return ToolOutput(f"The person declines to answer.{note} Go on without an answer, or end here.", error=True)


def ask_user_tool(person: Person) -> AskUser:
    """The tool `ask_user`.

    Args:
        person: Who is asked, and where a turn that waits for them is parked.
    """
    return AskUser(ToolSpec(NAME, _DESCRIPTION, schema_of(AskUserArguments)), person)
