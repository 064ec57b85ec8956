"""`approve`, `deny` and `grants`: what a person says to a session that wants to write across projects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli import tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.duration import seconds_of
from coterie.interfaces.cli.naming import PART_HELP, one_of
from coterie.interfaces.cli.terminal import Terminal


def show_requests(terminal: Terminal, requests: Sequence[Answer]) -> None:
    """Show questions that wait for a person, and how they are answered."""
    rows = [
        (one["requestId"], one["sourceTitle"], one["targetTitle"], str(one["messages"]), one["createdAt"])
        for one in requests
    ]
    terminal.show("These sessions ask to write to a session of another project:")
    terminal.show(tables.table(("ID", "FROM", "TO", "WAITING", "ASKED"), rows))
    terminal.show(
        "`coterie approve ID` lets what waits go on, with `--for 1h` also what they send in the next hour; "
        "`coterie deny ID` cancels it."
    )


def _answer(dial: Dial, request: str, decision: str, seconds: int | None = None) -> Answer:
    requests = dial.call("permissions.pending")["requests"]
    request_id = one_of(request, [one["requestId"] for one in requests], "requests")
    return dial.act("permissions.resolve", {"requestId": request_id, "decision": decision, "seconds": seconds})


@dataclass(frozen=True, kw_only=True)
class Approve(Command):
    """Let one session write to another across projects.

    What waits for that goes on. Without a request, those that wait for your answer are shown.
    """

    example: ClassVar[str] = "coterie approve 9c41d2e8 --for 1h"

    request: Annotated[str | None, typer.Argument(metavar="REQUEST", help=f"Its id, or {PART_HELP}.")] = None
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Let also pass what is sent for so long: 30m, 1h30m, 2d."),
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Answer, or show the questions."""
        seconds = None if self.lasts is None else seconds_of(self.lasts)
        if self.request is None:
            if seconds is not None:
                raise InvalidArgumentError("--for goes with a request; `coterie approve` alone shows which there are.")
            self._show(terminal)
            return
        answer = _answer(terminal.dial(), self.request, "once" if seconds is None else "grant", seconds)
        if terminal.as_json:
            terminal.json(answer)
        elif seconds is None:
            terminal.show(f"Approved once: {_counted(answer['messages'])} may start.")
        else:
            count = _counted(answer["messages"])
            terminal.show(f"Approved for {self.lasts}: {count} may start, and so may what is sent in that time.")
            terminal.remark("`coterie grants` lists what you have granted, and `coterie grants revoke` ends it.")

    def _show(self, terminal: Terminal) -> None:
        answer = terminal.dial().call("permissions.pending")
        if terminal.as_json:
            terminal.json(answer)
        elif answer["requests"]:
            show_requests(terminal, answer["requests"])
        else:
            terminal.show("Nothing waits for your answer.")


@dataclass(frozen=True, kw_only=True)
class Deny(Command):
    """Refuse to let one session write to another across projects.

    The messages that wait for that are cancelled, and their sender is told. A later one asks again.
    """

    example: ClassVar[str] = "coterie deny 9c41d2e8"

    request: Annotated[str, typer.Argument(metavar="REQUEST", help=f"Its id from `coterie approve`, or {PART_HELP}.")]

    def run(self, terminal: Terminal) -> None:
        """Refuse."""
        answer = _answer(terminal.dial(), self.request, "deny")
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show(f"Denied: {_counted(answer['messages'])} cancelled, and the sender is told.")


@dataclass(frozen=True, kw_only=True)
class Grants(Command):
    """List which sessions may write across projects.

    A grant ends by its time, or by `coterie grants revoke`.
    """

    example: ClassVar[str] = "coterie grants list"

    def run(self, terminal: Terminal) -> None:
        """Read them."""
        answer = terminal.dial().call("permissions.grants")
        if terminal.as_json:
            terminal.json(answer)
            return
        if not answer["grants"]:
            terminal.show("No grants. `coterie approve REQUEST --for 1h` makes one.")
            return
        rows = [(one["grantId"], one["sourceTitle"], one["targetTitle"], one["expiresAt"]) for one in answer["grants"]]
        terminal.show(tables.table(("ID", "FROM", "TO", "UNTIL"), rows))


@dataclass(frozen=True, kw_only=True)
class Revoke(Command):
    """End a grant; what it has let through stays."""

    example: ClassVar[str] = "coterie grants revoke 9c41d2e8"

    grant: Annotated[str, typer.Argument(metavar="GRANT", help=f"Its id, or {PART_HELP}.")]

    def run(self, terminal: Terminal) -> None:
        """Revoke it."""
        dial = terminal.dial()
        grants = dial.call("permissions.grants")["grants"]
        grant_id = one_of(self.grant, [one["grantId"] for one in grants], "grants")
        answer = dial.act("permissions.revoke", {"grantId": grant_id})
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show("Revoked; from now on you are asked again.")


def _counted(messages: int) -> str:
    return f"{messages} message{'s'[: messages != 1]}"
