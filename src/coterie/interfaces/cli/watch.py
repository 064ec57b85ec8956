"""`tail`: what happens, as it happens."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from coterie.core.codes import Code
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Event
from coterie.interfaces.cli.display import one_line
from coterie.interfaces.cli.failure import AnswerError
from coterie.interfaces.cli.follow import Lost, Opened, Start, follow
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
        for happened in follow(Start(terminal.data, session_id, self.after)):
            match happened:
                case Opened(again):
                    terminal.remark("Connected again." if again else "Connected; Ctrl-C ends.")
                case Lost(reason, pause_s):
                    terminal.remark(f"{reason} Trying again in {pause_s:g} s.", "yellow")
                case Event(name="cursor"):
                    pass
                case Event():
                    self._tell(terminal, happened)

    def _tell(self, terminal: Terminal, event: Event) -> None:
        if terminal.as_json:
            told = {"event": event.name} | ({"id": event.id} if event.id else {})
            terminal.json(told | event.data)
            return
        match event.name:
            case "change":
                for line in self._lines(terminal, event.data):
                    terminal.write(one_line(f"{event.data['at']}  {line}") + "\n")
            case "delta":
                # Pieces of several replies would mix; whoever wants the words follows one session with --json.
                pass
            case _:
                terminal.write(f"{event.name}: events before this one are gone; read the sessions again.\n")

    def _lines(self, terminal: Terminal, data: Answer) -> list[str]:
        """What has changed, in the words of the ledger as it is by now."""
        session_id, kind, ref = data["sessionId"], data["kind"], data["ref"]
        if kind == "message":
            message = terminal.dial().call("collaboration.message", {"messageId": ref})["message"]
            # Both ends note a message; a stream over all tells it once.
            return [_message(message)] if self.session or message["sourceSessionId"] == session_id else []
        if kind == "turn":
            turn = _turn(terminal, ref)
            if turn is None:
                return []
            reason = f"  {turn['errorCode']}" if turn.get("errorCode") else ""
            return [f"{session_id}  {turn['kind']} turn  {turn['status']}{reason}"]
        return [f"{session_id}  {kind}"]


def _turn(terminal: Terminal, turn_id: str) -> Answer | None:
    """The turn; None if its session is deleted, which has a line of its own."""
    try:
        return terminal.dial().call("session.turn", {"turnId": turn_id})
    except AnswerError as error:
        if error.code is not Code.NOT_FOUND:
            raise
        return None


def _message(message: Answer) -> str:
    return f"{message['sourceTitle']} → {message['targetTitle']}  {message['kind']}  {message['status']}"
