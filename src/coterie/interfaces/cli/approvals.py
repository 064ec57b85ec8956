"""`approve`, `answer`, `deny` and `grants`: what a person says to tool calls, to agents, and across projects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import typer

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli import tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.display import one_line, plain
from coterie.interfaces.cli.duration import seconds_of
from coterie.interfaces.cli.naming import PART_HELP, one_of
from coterie.interfaces.cli.questions import show_questions
from coterie.interfaces.cli.terminal import Terminal

_SHOWN_LINES: Final = 12
"""Lines of each call in a list of many; of one that is asked for by name all are shown."""


def show_requests(terminal: Terminal, requests: Sequence[Answer]) -> None:
    """Show questions that wait for a person, and how they are answered."""
    calls = [one for one in requests if one["kind"] == "tool"]
    pairs = [one for one in requests if one["kind"] == "across_projects"]
    show_questions(terminal, [one for one in requests if one["kind"] == "question"])
    if calls:
        terminal.show("These tool calls wait for your leave:")
        for one in calls:
            show_call(terminal, one, lines_max=_SHOWN_LINES)
        terminal.show(
            "`coterie approve ID` lets a call run, with `--session` also every later one of its session with the same "
            "subject; `coterie deny ID` tells its model no.",
            "",
        )
    if pairs:
        rows = [
            (one["requestId"], one["sessionTitle"], one["targetTitle"], str(one["messages"]), one["createdAt"])
            for one in pairs
        ]
        terminal.show("These sessions ask to write to a session of another project:")
        terminal.show(tables.table(("ID", "FROM", "TO", "WAITING", "ASKED"), rows))
        terminal.show(
            "`coterie approve ID` lets what waits go on, with `--for 1h` also what they send in the next hour; "
            "`coterie deny ID` cancels it."
        )


def show_call(terminal: Terminal, request: Answer, lines_max: int | None = None) -> None:
    """Show one tool call that waits: who, what, and why it is asked about."""
    ceiling = request.get("ceilingTitle")
    because = f"mode {request['mode']}" + (f", the ceiling of {one_line(ceiling)}" if ceiling else "")
    terminal.show(
        "",
        f"{request['requestId']}  {one_line(request['sessionTitle'])}: {request['tool']} "
        f"{one_line(request['subject'])}  ({request['risk']} risk; {because})",
    )
    lines = plain(request.get("shown") or "").splitlines()
    # A command is its own subject.
    if lines and lines != [one_line(request["subject"])]:
        kept = lines if lines_max is None else lines[:lines_max]
        terminal.show(*(f"    {line}" for line in kept))
        if len(kept) < len(lines):
            terminal.show(f"    … {len(lines) - len(kept)} more lines: `coterie approve --show {request['requestId']}`")


def find_request(dial: Dial, request: str) -> Answer:
    """The open request that a person names; what names none is passed on, for the host to refuse."""
    requests = dial.call("permissions.pending")["requests"]
    request_id = one_of(request, [one["requestId"] for one in requests], "requests")
    # One that is not open any more is for the host to refuse.
    return next((one for one in requests if one["requestId"] == request_id), {"requestId": request_id, "kind": None})


def _answer(dial: Dial, request: Answer, decision: str, **more: object) -> Answer:
    given = {"requestId": request["requestId"], "decision": decision, **more}
    return dial.act("permissions.resolve", given)


@dataclass(frozen=True, kw_only=True)
class Approve(Command):
    """Let a tool call run, or a message cross projects.

    What waits for that goes on. Without a request, those that wait for your answer are shown.
    """

    example: ClassVar[str] = "coterie approve 9c41d2e8 --session"

    request: Annotated[str | None, typer.Argument(metavar="REQUEST", help=f"Its id, or {PART_HELP}.")] = None
    session: Annotated[
        bool, typer.Option("--session", help="Let its session do the same again without asking, until you revoke it.")
    ] = False
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Let also pass what is sent for so long: 30m, 1h30m, 2d."),
    ] = None
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Tell the model of a tool call this.")] = (
        None
    )
    show: Annotated[bool, typer.Option("--show", help="Show all lines of the request, and answer nothing.")] = False

    def run(self, terminal: Terminal) -> None:
        """Answer, or show the questions."""
        seconds = None if self.lasts is None else seconds_of(self.lasts)
        if self.request is None:
            if seconds is not None or self.session or self.show or self.note is not None:
                raise InvalidArgumentError("Name a request too; `coterie approve` alone shows which there are.")
            self._show(terminal)
            return
        if seconds is not None and self.session:
            raise InvalidArgumentError("--for goes with a pair of sessions, --session with a tool call: give one.")
        dial = terminal.dial()
        request = find_request(dial, self.request)
        if self.show:
            self._show_one(terminal, request)
            return
        if request["kind"] == "question":
            raise InvalidArgumentError(
                f'This one wants words: `coterie answer {request["requestId"]} "text"` says them.'
            )
        decision = "session" if self.session else "once" if seconds is None else "grant"
        answer = _answer(dial, request, decision, seconds=seconds, comment=self.note)
        if terminal.as_json:
            terminal.json(answer)
        else:
            self._tell(terminal, answer)

    def _tell(self, terminal: Terminal, answer: Answer) -> None:
        if answer.get("tool"):
            more = " and so may the same calls of this session" if self.session else ""
            terminal.show(f"Approved{'' if self.session else ' once'}: the call of {answer['tool']} may run{more}.")
        elif self.lasts is None:
            terminal.show(f"Approved once: {_counted(answer['messages'])} may start.")
            return
        else:
            count = _counted(answer["messages"])
            terminal.show(f"Approved for {self.lasts}: {count} may start, and so may what is sent in that time.")
        if self.session or self.lasts is not None:
            terminal.remark("`coterie grants` lists what you have granted, and `coterie grants revoke` ends it.")

    def _show(self, terminal: Terminal) -> None:
        answer = terminal.dial().call("permissions.pending")
        if terminal.as_json:
            terminal.json(answer)
        elif answer["requests"]:
            show_requests(terminal, answer["requests"])
        else:
            terminal.show("Nothing waits for your answer.")

    def _show_one(self, terminal: Terminal, request: Answer) -> None:
        if terminal.as_json:
            terminal.json(request)
        elif request["kind"] == "tool":
            show_call(terminal, request)
        else:
            show_requests(terminal, [request] if request["kind"] else [])


@dataclass(frozen=True, kw_only=True)
class Deny(Command):
    """Refuse a call or a message, or decline to answer.

    The model of a tool call or a question is told. Messages that wait to cross projects are cancelled, and their sender
    is told. A later one asks again.
    """

    example: ClassVar[str] = "coterie deny 9c41d2e8"

    request: Annotated[str, typer.Argument(metavar="REQUEST", help=f"Its id from `coterie approve`, or {PART_HELP}.")]
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Tell the model, or the sender, why.")] = (
        None
    )

    def run(self, terminal: Terminal) -> None:
        """Refuse."""
        dial = terminal.dial()
        request = find_request(dial, self.request)
        answer = _answer(dial, request, "deny", comment=self.note)
        if terminal.as_json:
            terminal.json(answer)
        elif request["kind"] == "question":
            terminal.show("Declined, and its model is told.")
        elif answer.get("tool"):
            terminal.show(f"Denied: the call of {answer['tool']} does not run, and its model is told.")
        else:
            terminal.show(f"Denied: {_counted(answer['messages'])} cancelled, and the sender is told.")


@dataclass(frozen=True, kw_only=True)
class Grants(Command):
    """List what sessions may do without asking.

    Calls of tools, and writing to a session of another project. It ends by its time, or by `coterie grants revoke`.
    """

    example: ClassVar[str] = "coterie grants list"

    def run(self, terminal: Terminal) -> None:
        """Read them."""
        answer = terminal.dial().call("permissions.grants")
        if terminal.as_json:
            terminal.json(answer)
            return
        if not answer["grants"]:
            terminal.show("No grants. `coterie approve REQUEST` makes one, with `--session` or `--for 1h`.")
            return
        rows = [
            (one["grantId"], one["sessionTitle"], _may(one), one.get("expiresAt", "revoked"))
            for one in answer["grants"]
        ]
        terminal.show(tables.table(("ID", "SESSION", "MAY", "UNTIL"), rows))


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


def _may(grant: Answer) -> str:
    if grant["kind"] == "tool":
        return f"call {grant['tool']} on {grant['subject']}"
    return f"write to {grant['targetTitle']}"


def _counted(messages: int) -> str:
    return f"{messages} message{'s'[: messages != 1]}"
