"""`session rename|configure|archive|delete|fork`: what a person changes about sessions."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

import typer

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.messages import show_stopped
from coterie.interfaces.cli.sessions import show_session
from coterie.interfaces.cli.talk import SessionArgument
from coterie.interfaces.cli.terminal import Terminal

_NOTHING: Final = "Nothing was to be changed; give at least one of the options that `--help` lists."


@dataclass(frozen=True, kw_only=True)
class Rename(Command):
    """Give a session another title; its id stays."""

    example: ClassVar[str] = 'coterie session rename reader "Reader of tests"'

    session: SessionArgument
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title.")]

    def run(self, terminal: Terminal) -> None:
        """Rename it."""
        given = {"sessionId": terminal.session(self.session), "title": self.title}
        answer = terminal.dial().act("session.rename", given)
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show(f"Renamed to {answer['session']['title']!r}.")


@dataclass(frozen=True, kw_only=True)
class Configure(Command):
    """Change the settings of a session; what you leave out stays.

    A lower permission mode acts at once, a higher one from the next turn on.
    """

    example: ClassVar[str] = "coterie session configure reader --mode ask --inbound hold"

    session: SessionArgument
    title: Annotated[str | None, typer.Option("--title", help="Another title.")] = None
    model: Annotated[
        str | None, typer.Option("--model", help="Key, alias or name of a configured model; `coterie models` has them.")
    ] = None
    mode: Annotated[
        Literal["inherit", "ask", "accept-edits", "auto"] | None,
        typer.Option("--mode", help="What it may do without asking; inherit is the host's default."),
    ] = None
    inbound: Annotated[
        Literal["accept", "hold", "refuse"] | None,
        typer.Option("--inbound", help="What other sessions send: it starts, waits for your release, or is refused."),
    ] = None
    current_turn: Annotated[
        bool | None,
        typer.Option(
            "--current-turn/--no-current-turn",
            help="Whether a running turn may take in messages that are sent with `--deliver current-turn`.",
        ),
    ] = None
    thinking: Annotated[
        Literal["off", "low", "medium", "high"] | None,
        typer.Option("--thinking", help="How much its model thinks before it answers, if it is one that reasons."),
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Change it."""
        given = {
            "title": self.title,
            "model": self.model,
            "permissionMode": self.mode,
            "inbound": self.inbound,
            "currentTurnDelivery": self.current_turn,
            "thinking": self.thinking,
        }
        if all(value is None for value in given.values()):
            raise InvalidArgumentError(_NOTHING)
        session_id = terminal.session(self.session)
        answer = terminal.dial().act("session.configure", {"sessionId": session_id, **given})
        if terminal.as_json:
            terminal.json(answer)
            return
        show_session(terminal, answer["session"])
        if answer.get("note"):
            terminal.remark(answer["note"])


@dataclass(frozen=True, kw_only=True)
class Archive(Command):
    """Put a session away; nothing is deleted.

    Its queue is held and it takes no new messages, until you release or prompt it. It must not run a turn.
    """

    example: ClassVar[str] = "coterie session archive reader"

    session: SessionArgument

    def run(self, terminal: Terminal) -> None:
        """Archive it."""
        answer = terminal.dial().act("session.archive", {"sessionId": terminal.session(self.session)})
        if terminal.as_json:
            terminal.json(answer)
            return
        terminal.show(f"Archived {answer['session']['title']!r}.")
        terminal.remark(f"`coterie release {answer['session']['id']}` or a prompt brings it back.")


@dataclass(frozen=True, kw_only=True)
class Delete(Command):
    """Delete a session with its transcript, for ever.

    What runs or waits in it is cancelled, and who sent that is told. Messages that it sent stay in the ledger. On a
    terminal you are asked first.
    """

    example: ClassVar[str] = "coterie session delete reader --yes"

    session: SessionArgument
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False

    def run(self, terminal: Terminal) -> None:
        """Ask, then delete it."""
        session_id, dial = terminal.session(self.session), terminal.dial()
        if not self.yes:
            session = dial.call("session.get", {"sessionId": session_id})["session"]
            named = f"{session['title']!r} ({session_id})"
            sure = terminal.is_sure(f"Delete the session {named} with its transcript, for ever?")
            if sure is None:
                raise InvalidArgumentError(
                    f"Nobody can be asked here whether the session {named} may go for ever; say so with --yes."
                )
            if not sure:
                terminal.remark("Nothing was deleted.")
                raise typer.Exit(1)
        answer = dial.act("session.delete", {"sessionId": session_id})
        if terminal.as_json:
            terminal.json(answer)
            return
        terminal.show(f"Deleted {session_id}.")
        show_stopped(terminal, answer)


@dataclass(frozen=True, kw_only=True)
class Fork(Command):
    """Begin a new session with the transcript of another one.

    It takes over folder, model, permission mode and what was said; not the queue, and nothing that runs.
    """

    example: ClassVar[str] = 'coterie session fork lead --title "Another way" --up-to 12'

    session: SessionArgument
    title: Annotated[str | None, typer.Option("--title", help="Its title; else the old one with `(fork)`.")] = None
    up_to: Annotated[
        int | None,
        typer.Option("--up-to", min=1, metavar="N", help="Number of the last item to take over; else all."),
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Fork it."""
        given = {"sessionId": terminal.session(self.session), "title": self.title, "upTo": self.up_to}
        answer = terminal.dial().act("session.fork", given)
        if terminal.as_json:
            terminal.json(answer)
        else:
            show_session(terminal, answer["session"])
