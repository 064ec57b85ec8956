"""`session new|list|show|items`, `status` and `release`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from coterie.interfaces.cli import tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.talk import ModelOption, ModeOption, ProjectOption, SessionArgument, TitleOption
from coterie.interfaces.cli.terminal import Terminal

PAGE: Final = 50


def with_states(dial: Dial, sessions: list[Answer]) -> list[Answer]:
    """Sessions with the state of each, and how much waits where a queue is held."""
    states: dict[str, str] = {}
    if sessions:
        listed = dial.call("collaboration.list", {"limit": min(100, len(sessions) + 10)})["sessions"]
        states = {entry["sessionId"]: entry["status"] for entry in listed}
    known = list[Answer]()
    for session in sessions:
        status, waiting = states.get(session["id"]), None
        if status is None or session.get("held"):
            # It moved between the two lists, or the list does not tell how much waits.
            summary = dial.call("collaboration.status", {"sessionId": session["id"]})
            status, waiting = summary["status"], summary["waiting"]
        more = {"status": status} | ({} if waiting is None else {"waiting": waiting})
        known.append({**session, **more})
    return known


def show_sessions(terminal: Terminal, sessions: list[Answer]) -> None:
    """Show sessions with their states, as `with_states` makes them; their order tells which was updated last."""
    rows = [
        (session["id"], tables.state(session["status"], session.get("held")), session["title"]) for session in sessions
    ]
    terminal.show(tables.table(("ID", "STATE", "TITLE"), rows))


def show_session(terminal: Terminal, session: Answer) -> None:
    """Show one session."""
    terminal.show(
        tables.facts(
            [
                ("session", session["id"]),
                ("title", session["title"]),
                ("folder", session.get("projectPath")),
                ("model", session.get("model", "the default")),
                ("mode", session["permissionMode"]),
                ("held", session.get("held")),
                ("created by", session.get("createdBySessionId")),
                ("created", session["createdAt"]),
                ("updated", session["updatedAt"]),
            ]
        )
    )


@dataclass(frozen=True, kw_only=True)
class New(Command):
    """Create a session."""

    example: ClassVar[str] = "coterie session new --title reader --mode ask"

    title: TitleOption = None
    model: ModelOption = None
    mode: ModeOption = None
    project: ProjectOption = None

    def run(self, terminal: Terminal) -> None:
        """Create it in the folder."""
        here: Path = terminal.environment.working_directory
        given = {
            "title": self.title,
            "projectPath": str(here / self.project if self.project else here),
            "model": self.model,
            "permissionMode": self.mode,
        }
        answer = terminal.dial().act("session.create", given)
        if terminal.as_json:
            terminal.json(answer)
        else:
            show_session(terminal, answer["session"])


@dataclass(frozen=True, kw_only=True)
class List(Command):
    """List sessions, most recently updated first."""

    example: ClassVar[str] = "coterie session list --limit 10"

    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many.")] = PAGE
    cursor: Annotated[str | None, typer.Option("--cursor", help="Go on behind an earlier page.")] = None

    def run(self, terminal: Terminal) -> None:
        """Show one page."""
        dial = terminal.dial()
        page = dial.call("session.list", {"limit": self.limit, "cursor": self.cursor})
        if terminal.as_json:
            terminal.json(page)
            return
        if not page["sessions"]:
            terminal.show("No sessions. `coterie run` makes the first one.")
            return
        show_sessions(terminal, with_states(dial, page["sessions"]))
        if page.get("cursor"):
            terminal.remark(f"More: --cursor {page['cursor']}")


@dataclass(frozen=True, kw_only=True)
class Show(Command):
    """Show one session as it is stored."""

    example: ClassVar[str] = "coterie session show lead"

    session: SessionArgument

    def run(self, terminal: Terminal) -> None:
        """Read it."""
        answer = terminal.dial().call("session.get", {"sessionId": terminal.session(self.session)})
        if terminal.as_json:
            terminal.json(answer)
        else:
            show_session(terminal, answer["session"])


@dataclass(frozen=True, kw_only=True)
class Items(Command):
    """Show a page of a session's transcript."""

    example: ClassVar[str] = "coterie session items lead --after 100"

    session: SessionArgument
    after: Annotated[int, typer.Option("--after", min=0, help="Number of the last item that you know.")] = 0
    limit: Annotated[int, typer.Option("--limit", min=1, max=512, help="How many.")] = 100

    def run(self, terminal: Terminal) -> None:
        """Read one page."""
        given = {"sessionId": terminal.session(self.session), "after": self.after, "limit": self.limit}
        page = terminal.dial().call("session.items", given)
        if terminal.as_json:
            terminal.json(page)
            return
        for item in page["items"]:
            terminal.show(*tables.item_lines(item), "")
        if not page["items"]:
            terminal.remark("Nothing was said yet." if self.after == 0 else "Nothing more was said yet.")
        if page.get("cursor"):
            terminal.remark(f"More: --after {page['cursor']}")


@dataclass(frozen=True, kw_only=True)
class Status(Command):
    """Show what a session does and its recent messages."""

    example: ClassVar[str] = "coterie status reader"

    session: SessionArgument

    def run(self, terminal: Terminal) -> None:
        """Read its summary."""
        answer = terminal.dial().call("collaboration.status", {"sessionId": terminal.session(self.session)})
        if terminal.as_json:
            terminal.json(answer)
            return
        created: list[Answer] = answer.get("createdSessions") or []
        last: Answer = answer.get("lastTurn") or {}
        terminal.show(
            tables.facts(
                [
                    ("session", answer["sessionId"]),
                    ("title", answer["title"]),
                    ("state", tables.state(answer["status"], answer.get("held"))),
                    ("waiting", answer["waiting"]),
                    ("model", answer.get("model", "the default")),
                    ("mode", answer["permissionMode"]),
                    ("created by", tables.named(answer.get("createdBySession"))),
                    ("created", "\n".join(str(tables.named(one)) for one in created) or None),
                    ("last turn", f"{last['turnId']} {last['status']}" if last else None),
                    ("error", last.get("error")),
                ]
            )
        )
        exchanges: list[Answer] = answer.get("recentExchanges") or []
        if exchanges:
            rows = [
                (
                    one["messageId"],
                    f"{one['kind']} {'from' if one['direction'] == 'incoming' else 'to'} {one['peer']['title']}",
                    tables.state(one["status"]),
                    tables.preview(one["preview"]),
                )
                for one in exchanges
            ]
            terminal.show("", tables.table(("ID", "MESSAGE", "STATE", "TEXT"), rows))


@dataclass(frozen=True, kw_only=True)
class Release(Command):
    """Let queues go on that a restart has held.

    Nothing begins by itself after a start: what waited then goes on with this, or with a prompt to its session.
    """

    example: ClassVar[str] = "coterie release"

    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="The session, by id, part of it or title; all without it.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Free it."""
        session_id = None if self.session is None else terminal.session(self.session)
        answer = terminal.dial().act("session.release", {"sessionId": session_id})
        if terminal.as_json:
            terminal.json(answer)
        else:
            count = answer["released"]
            terminal.show("No queue was held." if count == 0 else f"Released {count} held queue{'s'[: count != 1]}.")
