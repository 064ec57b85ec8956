"""`chat`: a conversation with a session, line by line, until the person leaves."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, cast

import typer

from coterie.core.errors import HostError, InvalidArgumentError
from coterie.core.session.session import title_from
from coterie.core.text import nearest
from coterie.interfaces.cli import lifecycle, queues, sessions
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.conversation import Conversation
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.endings import ending
from coterie.interfaces.cli.failure import line_of
from coterie.interfaces.cli.naming import PART_HELP
from coterie.interfaces.cli.terminal import Terminal

try:
    import readline as _readline
except ImportError:  # pragma: no cover - not every Python has it
    _readline = None

_HISTORY_FILE: Final = "chat_history"
_HISTORY_LINES: Final = 1_000
_HELP: Final = """\
/new             begin a new session with the next line
/sessions        list the sessions
/switch NAME     go on with another one
/status          what this session does
/queue           what waits for it, and why
/release         let go on what a restart or its settings have held
/mode MODE       what it may do without asking: inherit, ask, accept-edits, auto
/items           its transcript
/quit            leave (Ctrl-D)
A line that ends in \\ goes on with the next one. Ctrl-C stops the turn that runs; a second one leaves."""


@dataclass(frozen=True, kw_only=True)
class Chat(Command):
    """Talk with a session, line by line.

    Goes on with a session, or begins one in the current folder with the first line. What a turn may not do by itself is
    asked where it comes up. `/help` lists what else can be typed. It needs a terminal: `coterie run` is for programs.
    """

    example: ClassVar[str] = "coterie chat lead"

    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help=f"Its id, exact title, or {PART_HELP}; a new one without.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Talk until the person leaves."""
        if self.as_json or not terminal.is_shared_with_a_person:
            raise InvalidArgumentError("chat is for people at a terminal; `coterie run` takes a text and --json.")
        terminal.dial_or_start()
        talk = _Talk(terminal)
        if self.session is not None:
            talk.switch(self.session)
        terminal.remark("Ctrl-D leaves, /help tells what else can be typed.")
        with _history(terminal.data / _HISTORY_FILE):
            talk.go_on()


class _Talk:
    """What is talked about now."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._session: str | None = None
        self._left = False

    def switch(self, name: str) -> None:
        """Go on with another session, and show where it stands."""
        dial, self._session = self._terminal.dial(), self._terminal.session(name)
        session: Answer = dial.call("session.get", {"sessionId": self._session})["session"]
        status = dial.call("collaboration.status", {"sessionId": self._session})
        self._terminal.show(f"{session['title']}  ({self._session}, mode {session['permissionMode']})")
        turn = status.get("lastTurn")
        if turn and turn.get("result"):
            self._terminal.show("", turn["result"], "")
        if session.get("held") == "restart":
            self._terminal.remark(
                "Its queue is held since the host was started again: /release lets it go on.", "yellow"
            )

    def go_on(self) -> None:
        """Take lines until the person leaves."""
        while not self._left:
            try:
                line = self._line()
            except KeyboardInterrupt:
                self._terminal.write("\n")
                return
            if line is None:
                return
            if line.strip():
                self._take(line)

    def _line(self) -> str | None:
        """The next line, with those that it goes on with; None at the end of the input."""
        lines, mark = list[str](), "> "
        while True:
            try:
                # The library that edits lines knows of this call alone.
                lines.append(input(mark))
            except EOFError:
                self._terminal.write("\n")
                return None
            if not lines[-1].endswith("\\"):
                return "\n".join(line.removesuffix("\\") for line in lines)
            mark = "… "

    def _take(self, line: str) -> None:
        try:
            if line.startswith("/"):
                self._command(*line[1:].split(maxsplit=1))
            else:
                self._say(line)
        except HostError as error:
            self._terminal.remark(line_of(error), "red")

    def _say(self, text: str) -> None:
        dial = self._terminal.dial_or_start()
        if self._session is None:
            folder = str(self._terminal.environment.working_directory)
            made = dial.act("session.create", {"title": title_from(text), "projectPath": folder})
            self._session = cast("str", made["session"]["id"])
            self._terminal.remark(f"session {self._session}")
        conversation = Conversation(self._terminal, self._session, text, stays=True)
        try:
            outcome = conversation.hold()
        except KeyboardInterrupt:
            self._interrupt()
            return
        if outcome.status != "completed":
            was = "" if outcome.status == "failed" else "was "
            self._terminal.remark(f"The turn {was}{ending(outcome.status, outcome.error)}", "bold red")

    def _interrupt(self) -> None:
        self._terminal.write("\n")
        try:
            with suppress(HostError):
                self._terminal.dial().act("session.interrupt", {"sessionId": self._session})
            self._terminal.remark("Interrupted. What it has done stays.", "yellow")
        except KeyboardInterrupt:
            self._left = True

    def _command(self, name: str = "", argument: str = "") -> None:
        if name in _ABOUT_SESSION:
            if self._session is None:
                raise InvalidArgumentError("There is no session yet: say something, or /switch to one.")
            _ABOUT_SESSION[name](self._session, argument).run(self._terminal)
        elif name == "switch" and argument:
            self.switch(argument)
        elif name == "new":
            self._session = None
        elif name == "sessions":
            sessions.List().run(self._terminal)
        elif name == "help":
            self._terminal.show(_HELP)
        elif name == "quit":
            self._left = True
        else:
            known = (*_ABOUT_SESSION, "switch", "new", "sessions", "help", "quit")
            near = ", ".join(f"/{one}" for one in nearest(name, known, 2)) or "/help"
            raise InvalidArgumentError(f"There is no /{name} {argument}".rstrip() + f"; near: {near}.")


@contextmanager
def _history(file: Path) -> Generator[None]:
    """Let lines be edited and found again, also those of earlier conversations; only their person can read them."""
    if _readline is None:
        yield
        return
    with suppress(OSError):
        file.touch(0o600)
        _readline.read_history_file(file)
    _readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        with suppress(OSError):
            _readline.write_history_file(file)


def _with_mode(session: str, argument: str) -> Command:
    modes = ("inherit", "ask", "accept-edits", "auto")
    if argument not in modes:
        raise InvalidArgumentError(f"/mode takes one of {', '.join(modes)}.")
    return lifecycle.Configure(session=session, mode=argument)


_ABOUT_SESSION: Final[Mapping[str, Callable[[str, str], Command]]] = {
    "status": lambda session, _: sessions.Status(session=session),
    "queue": lambda session, _: queues.List(session=session),
    "release": lambda session, _: sessions.Release(session=session),
    "items": lambda session, _: sessions.Items(session=session),
    "mode": _with_mode,
}
