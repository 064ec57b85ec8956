"""`chat`: a person and one session, back and forth."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.naming import PART_HELP
from coterie.interfaces.cli.talk import ModelOption, ModeOption
from coterie.interfaces.cli.terminal import Terminal


@dataclass(frozen=True, kw_only=True)
class Chat(Command):
    """Talk with a session; its tool calls ask you in place.

    Replies are shown as they are written. Without a session a new one works in the current folder. A host is started
    in the background if none runs. A line is a prompt; one that ends in a backslash goes on in the next. What you type
    while a turn runs is given to that turn. Ctrl-C stops the turn, Ctrl-D leaves, /help lists the commands, which work
    while a turn runs too; Enter alone shows what is new. It needs a terminal and has no --json: programs take `run` and
    `tail`.
    """

    example: ClassVar[str] = "coterie chat lead"

    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help=f"Go on with this one: id, exact title, or {PART_HELP}."),
    ] = None
    model: ModelOption = None
    mode: ModeOption = None
    no_bell: Annotated[
        bool, typer.Option("--no-bell", help="Do not ring when you are asked, or when a long turn has ended.")
    ] = False

    def run(self, terminal: Terminal) -> None:
        """Find or make the session, then talk until the person leaves."""
        if self.as_json:
            raise InvalidArgumentError("chat is for people; `coterie run --json` and `coterie tail --json` print JSON.")
        if not terminal.is_attended():
            raise InvalidArgumentError('chat needs a terminal; without one, `coterie run "text"` answers one prompt.')
        if self.session is not None and (self.model, self.mode) != (None, None):
            raise InvalidArgumentError("SESSION goes on as it is; leave --model and --mode, or type /mode later.")
        terminal.dial_or_start()
        if self.session is None:
            session_id = new_session(terminal, model=self.model, mode=self.mode)
        else:
            session_id = terminal.session(self.session)
        # Markdown and line editing are for this command alone; the others shall not wait for them.
        chatting = importlib.import_module("coterie.interfaces.cli.chatting")
        talk: Callable[[Terminal, str, bool], None] = chatting.talk
        talk(terminal, session_id, not self.no_bell)


def new_session(
    terminal: Terminal, *, title: str | None = None, model: str | None = None, mode: str | None = None
) -> str:
    """Make a session in the current folder, and return its id."""
    given = {
        "title": title,
        "projectPath": str(terminal.environment.working_directory),
        "model": model,
        "permissionMode": mode,
    }
    session_id = str(terminal.dial().act("session.create", given)["session"]["id"])
    terminal.remark(f"session {session_id}")
    return session_id
