"""`coterie` alone, and `down`: the host itself."""

import os
import signal
import time
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import typer

from coterie.core.errors import HostUnavailableError
from coterie.interfaces.cli.approvals import show_requests
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, HostFile, is_alive, read_host
from coterie.interfaces.cli.display import UNCONFINED, one_line
from coterie.interfaces.cli.queues import reason
from coterie.interfaces.cli.sessions import show_sessions, with_queues
from coterie.interfaces.cli.terminal import Terminal

SHOWN: Final = 20
_LOOK_S: Final = 0.05


def show_home(terminal: Terminal) -> None:
    """Show the host's address, its newest sessions, and what waits for a person; start a host if none runs.

    Raises:
        HostError: It does not start, or refuses.
    """
    dial = terminal.dial_or_start()
    page = dial.call("session.list", {"limit": SHOWN})
    sessions = with_queues(dial, page["sessions"])
    requests: list[Answer] = dial.call("permissions.pending")["requests"]
    url = f"{dial.host.url.rstrip('/')}/"
    unconfined = dial.call("app.health").get("unconfined")
    if terminal.as_json:
        told: dict[str, Any] = {"url": url, "data": str(terminal.data), "sessions": sessions, "requests": requests}
        terminal.json(told | ({"unconfined": True} if unconfined else {}))
        return
    terminal.show(f"Coterie runs at {url} with its data in {terminal.data}", "")
    if unconfined:
        terminal.remark(UNCONFINED, "yellow")
    if not sessions:
        terminal.show('No sessions yet. `coterie run "text"` makes the first one in the current folder.')
        return
    show_sessions(terminal, sessions)
    if page.get("cursor"):
        terminal.show("", "There are more: `coterie session list`.")
    _show_stopped(terminal, [(session, _stopped_by(session)) for session in sessions])
    if requests:
        terminal.show("")
        show_requests(terminal, requests)


def _stopped_by(session: Answer) -> list[str]:
    """Why inputs of a session wait for a release; empty where none does."""
    if session.get("held") == "restart":
        return ["since the last stop of the host"]
    return [f"for {reason(one)}" for one in session.get("waitingFor", ()) if one != "across_projects"]


def _show_stopped(terminal: Terminal, sessions: list[tuple[Answer, list[str]]]) -> None:
    lines = [
        f"  {one_line(session['title'])}: {session['waiting']} waiting {'; '.join(reasons)}"
        for session, reasons in sessions
        if reasons
    ]
    if lines:
        terminal.show("", "What does not go on by itself:", *lines)
        terminal.show("`coterie release SESSION` lets one of them go on, `coterie release` all.")


@dataclass(frozen=True, kw_only=True)
class Down(Command):
    """Stop the host of the data directory; its work is kept."""

    example: ClassVar[str] = "coterie down"

    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0, metavar="SECONDS", help="How long to wait for its end.")
    ] = 30.0

    def run(self, terminal: Terminal) -> None:
        """Ask the process to end, once it has proved to be our host."""
        dial = terminal.dial()
        health = dial.call("app.health")
        if health.get("epoch") != dial.host.epoch:
            raise HostUnavailableError(
                f"What answers at {dial.host.url} is another host than {dial.data} names, so nothing was stopped."
            )
        os.kill(dial.host.pid, signal.SIGTERM)
        with terminal.busy(f"stopping the host {dial.host.pid}"):
            self._await_end(terminal, dial.host)
        if terminal.as_json:
            terminal.json({"stopped": True, "pid": dial.host.pid})
        else:
            terminal.show(f"The host on {dial.data} has stopped.")

    def _await_end(self, terminal: Terminal, host: HostFile) -> None:
        end_s = time.monotonic() + self.timeout_s
        while read_host(terminal.data) == host and is_alive(host.pid):
            if time.monotonic() > end_s:
                raise HostUnavailableError(
                    f"The host {host.pid} has not ended within {self.timeout_s:g} s; it may still be at it."
                )
            time.sleep(_LOOK_S)
