"""`answer`: a person says something to the question of an agent."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from coterie.interfaces.cli.approvals import find_request
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.naming import PART_HELP
from coterie.interfaces.cli.questions import said
from coterie.interfaces.cli.talk import words
from coterie.interfaces.cli.terminal import Terminal


@dataclass(frozen=True, kw_only=True)
class Answer(Command):
    """Answer the question of an agent.

    Its turn goes on with your words. `coterie approve` alone shows the questions, `coterie deny` declines one.
    """

    example: ClassVar[str] = 'coterie answer 9c41d2e8 "Keep the old name."'

    request: Annotated[str, typer.Argument(metavar="REQUEST", help=f"Its id from `coterie approve`, or {PART_HELP}.")]
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="What to say, or the number of a choice; `-` reads it from the input stream."
        ),
    ]

    def run(self, terminal: Terminal) -> None:
        """Say it."""
        text, dial = words(self.text), terminal.dial()
        request = find_request(dial, self.request)
        given = {"requestId": request["requestId"], "answer": said(request, text)}
        answer = dial.act("permissions.answer", given)
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show("Answered; its turn goes on.")
