"""`tail`: what happens, as it happens."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Event
from coterie.interfaces.cli.display import one_line
from coterie.interfaces.cli.follow import Lost, Opened, Start, follow
from coterie.interfaces.cli.telling import Teller
from coterie.interfaces.cli.terminal import Terminal


@dataclass(frozen=True, kw_only=True)
class Tail(Command):
    """Show events as they come, until Ctrl-C.

    A broken connection is made again, and the stream goes on behind the last event that came.
    """

    example: ClassVar[str] = "coterie tail lead --json"

    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="The session, by id, part of it or title; all without it.")
    ] = None
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Begin behind this event; else with what comes next.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Follow the stream."""
        session_id = None if self.session is None else terminal.session(self.session)
        teller = Teller(terminal.dial, both_ends=session_id is not None)
        for happened in follow(Start(terminal.data, session_id, self.after)):
            match happened:
                case Opened(again=again):
                    terminal.remark("Connected again." if again else "Connected; Ctrl-C ends.")
                case Lost(reason, pause_s):
                    terminal.remark(f"{reason} Trying again in {pause_s:g} s.", "yellow")
                case Event(name="cursor"):
                    pass
                case Event():
                    self._tell(terminal, teller, happened)

    def _tell(self, terminal: Terminal, teller: Teller, event: Event) -> None:
        if terminal.as_json:
            told = {"event": event.name} | ({"id": event.id} if event.id else {})
            terminal.json(told | event.data)
            return
        match event.name:
            case "change":
                line = teller.line(event.data)
                if line is not None:
                    terminal.write(one_line(f"{event.data['at']}  {line}") + "\n")
                elif self.session is not None and event.data["kind"] == "items":
                    terminal.show(*teller.diffs(event.data))
            case "delta":
                # Pieces of several replies would mix; whoever wants the words follows one session with --json.
                pass
            case _:
                terminal.write(f"{event.name}: events before this one are gone; read the sessions again.\n")
