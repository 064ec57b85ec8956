"""`run`, `prompt` and `steer`: a person speaks to a session."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TextIO, TypeAlias, cast

import typer

from coterie.core.errors import HostError, InvalidArgumentError
from coterie.core.session.session import title_from
from coterie.core.text import is_blank
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.conversation import Conversation, is_queued
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.endings import ending
from coterie.interfaces.cli.failure import AnswerError
from coterie.interfaces.cli.naming import PART_HELP
from coterie.interfaces.cli.terminal import Terminal

Mode: TypeAlias = Literal["ask", "accept-edits", "auto"]

TextArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TEXT", help="What to say; `-` reads it from the input stream.")
]
SessionArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="SESSION", help=f"Id, exact title, or {PART_HELP}."),
]
TitleOption: TypeAlias = Annotated[
    str | None, typer.Option("--title", help="Title of the new session; else `run` takes the first line of its text.")
]
ModelOption: TypeAlias = Annotated[
    str | None, typer.Option("--model", help="Key or alias of a configured model; else the default model.")
]
ModeOption: TypeAlias = Annotated[
    Mode | None,
    typer.Option("--mode", help="What the session may do without asking; else the host's default."),
]
ProjectOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--project", "--folder", metavar="FOLDER", help="Folder the session works in; else the current one."),
]


def words(text: str) -> str:
    """The text of a prompt or a message, from where the person said it is.

    Raises:
        InvalidArgumentError: It is not text.
    """
    if text != "-":
        return text
    # Without one, the program was started with none.
    stream = cast("TextIO | None", sys.stdin)
    if stream is None:
        raise InvalidArgumentError("There is no input stream; give the text itself.")
    try:
        return stream.read()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"The input stream is not text: {error}.") from error


def converse(terminal: Terminal, session_id: str, text: str, *, made: bool = False) -> None:
    """Send a prompt, show the reply as it comes, and tell how it ended.

    Args:
        terminal: Where to show it.
        session_id: The session.
        text: The prompt.
        made: The session was made for this prompt, so if that is refused it goes too.

    Raises:
        HostError: The host refused.
        typer.Exit: With 1, when the turn did not complete.
    """
    conversation = Conversation(terminal, session_id, text)
    try:
        outcome = conversation.hold()
    except AnswerError as error:
        # What may be tried again may have been done.
        if made and not conversation.accepted and not error.data.get("retryable"):
            with suppress(HostError):
                terminal.dial().act("session.delete", {"sessionId": session_id})
        raise
    if terminal.as_json:
        terminal.json(outcome.wire())
    elif outcome.status != "completed":
        was = "" if outcome.status == "failed" else "was "
        terminal.remark(f"The turn {was}{ending(outcome.status, outcome.error)}", "bold red")
    if outcome.status != "completed":
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True)
class Run(Command):
    """Give a new session a prompt and show its reply.

    The session works in the current folder. A host is started in the background if none runs. Ends with 0 when the
    turn completed, else with 1.
    """

    example: ClassVar[str] = 'coterie run "Which file here is the largest?" --mode ask'

    text: TextArgument
    title: TitleOption = None
    model: ModelOption = None
    mode: ModeOption = None
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Go on with this session instead of a new one.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Create or find the session, then converse."""
        text = words(self.text)
        if self.session is not None and (self.title, self.model, self.mode) != (None, None, None):
            raise InvalidArgumentError("--session goes on with a session as it is; leave --title, --model and --mode.")
        if is_blank(text):
            raise InvalidArgumentError("The text is empty, so no session was made; say what it should do.")
        dial = terminal.dial_or_start()
        if self.session is not None:
            session_id = terminal.session(self.session)
        else:
            session_id = dial.act(
                "session.create",
                {
                    "title": self.title or title_from(text),
                    "projectPath": str(terminal.environment.working_directory),
                    "model": self.model,
                    "permissionMode": self.mode,
                },
            )["session"]["id"]
            terminal.remark(f"session {session_id}")
        converse(terminal, session_id, text, made=self.session is None)


@dataclass(frozen=True, kw_only=True)
class Prompt(Command):
    """Give a session a prompt.

    It starts at once where the session is free, else it waits in the queue.
    """

    example: ClassVar[str] = 'coterie prompt lead "Go on." --wait'

    session: SessionArgument
    text: TextArgument
    wait: Annotated[bool, typer.Option("--wait", help="Show the reply as it is written, as `run` does.")] = False

    def run(self, terminal: Terminal) -> None:
        """Prompt, and converse where asked to."""
        text, session_id = words(self.text), terminal.session(self.session)
        if self.wait:
            converse(terminal, session_id, text)
            return
        dial = terminal.dial()
        receipt = dial.act("session.prompt", {"sessionId": session_id, "text": text})
        if terminal.as_json:
            terminal.json(receipt)
        else:
            terminal.show(_begun(dial, receipt, session_id))


def _begun(dial: Dial, receipt: Answer, session_id: str) -> str:
    """What became of a prompt."""
    if receipt.get("turnId"):
        return f"Running in {receipt['turnId']}; `coterie session items {session_id}` shows its answer."
    if is_queued(dial, receipt, session_id):
        return f"Queued at position {receipt.get('position')}."
    return f"It starts as soon as the host has a free slot; `coterie session items {session_id}` shows its answer."


@dataclass(frozen=True, kw_only=True)
class Steer(Command):
    """Say something to the turn that a session runs.

    Its next model request shows it; nothing that runs is stopped. Where no turn runs, or the turn ends before, it
    becomes a prompt.
    """

    example: ClassVar[str] = 'coterie steer lead "Leave the tests as they are."'

    session: SessionArgument
    text: TextArgument

    def run(self, terminal: Terminal) -> None:
        """Say it."""
        text, session_id = words(self.text), terminal.session(self.session)
        dial = terminal.dial()
        receipt = dial.act("session.steer", {"sessionId": session_id, "text": text})
        if terminal.as_json:
            terminal.json(receipt)
        elif receipt["accepted"]:
            terminal.show(f"Given to {receipt['turnId']}, which sees it with its next model request.")
        else:
            terminal.show(f"No turn could take it in, so it is a prompt. {_begun(dial, receipt, session_id)}")
