"""`session new|list|show|items`, `status` and `release`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer
from rich.text import Text

from coterie.interfaces.cli import tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.display import UNCONFINED
from coterie.interfaces.cli.endings import by_turn, words_of
from coterie.interfaces.cli.spending import usage_facts
from coterie.interfaces.cli.talk import ModelOption, ModeOption, ProjectOption, SessionArgument, TitleOption
from coterie.interfaces.cli.terminal import Terminal

PAGE: Final = 50
_INBOUND: Final = {
    "accept": "accept: what other sessions send may start",
    "hold": "hold: what other sessions send waits for your release",
    "refuse": "refuse: other sessions may not send",
}
_DELIVERY: Final = {
    True: "a running turn takes in messages that are sent for it",
    False: "messages wait for the next turn",
}
_HELD: Final = {"restart": "since the last stop of the host", "archived": "archived"}


def with_queues(dial: Dial, sessions: list[Answer]) -> list[Answer]:
    """Sessions, and of each whose queue may not move by itself how much waits and what for.

    They get the keys `waiting`, a number, and `waitingFor`, words of `queue.list`.
    """
    known = list[Answer]()
    for session in sessions:
        if session.get("held") or session["status"] == "queued":
            queue = dial.call("queue.list", {"sessionId": session["id"]})
            reasons = sorted({one["waiting"] for one in queue["inputs"] if one.get("waiting")})
            known.append({**session, "waiting": queue["waiting"], "waitingFor": reasons})
        else:
            known.append(session)
    return known


def show_sessions(terminal: Terminal, sessions: list[Answer]) -> None:
    """Show sessions with their states; their order tells which was updated last."""
    rows = [
        (session["id"], tables.state(session["status"], session.get("held")), session["title"]) for session in sessions
    ]
    terminal.show(tables.table(("ID", "STATE", "TITLE"), rows))


def show_session(terminal: Terminal, session: Answer, used: Answer | None = None) -> None:
    """Show one session, and what it has used."""
    held = str(session.get("held", ""))
    terminal.show(
        tables.facts(
            [
                ("session", session["id"]),
                ("title", session["title"]),
                ("folder", session.get("projectPath")),
                ("branch", session.get("branch")),
                ("worktree", session["workspacePath"] if session.get("branch") else None),
                ("model", session.get("model", "the default")),
                ("thinking", session.get("thinking")),
                ("mode", session["permissionMode"]),
                ("inbound", _INBOUND.get(session["inbound"], session["inbound"])),
                ("delivery", _DELIVERY[session["currentTurnDelivery"]]),
                ("held", _HELD.get(held, held) or None),
                ("created by", session.get("createdBySessionId")),
                ("created", session["createdAt"]),
                ("updated", session["updatedAt"]),
                *usage_facts(used),
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
            return
        show_session(terminal, answer["session"])
        if answer.get("unconfined"):
            terminal.remark(UNCONFINED, "yellow")


@dataclass(frozen=True, kw_only=True)
class List(Command):
    """List sessions, most recently updated first."""

    example: ClassVar[str] = "coterie session list --limit 10"

    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many.")] = PAGE
    cursor: Annotated[str | None, typer.Option("--cursor", help="Go on behind an earlier page.")] = None

    def run(self, terminal: Terminal) -> None:
        """Show one page."""
        page = terminal.dial().call("session.list", {"limit": self.limit, "cursor": self.cursor})
        if terminal.as_json:
            terminal.json(page)
            return
        if not page["sessions"]:
            terminal.show("No sessions. `coterie run` makes the first one.")
            return
        show_sessions(terminal, page["sessions"])
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
            return
        show_session(terminal, answer["session"], answer.get("usage"))
        if answer.get("note"):
            terminal.remark(answer["note"])


@dataclass(frozen=True, kw_only=True)
class Items(Command):
    """Show a page of a session's transcript."""

    example: ClassVar[str] = "coterie session items lead --after 100"

    session: SessionArgument
    after: Annotated[int, typer.Option("--after", min=0, help="Number of the last item that you know.")] = 0
    limit: Annotated[int, typer.Option("--limit", min=1, max=512, help="How many.")] = 100

    def run(self, terminal: Terminal) -> None:
        """Read one page."""
        dial, session_id = terminal.dial(), terminal.session(self.session)
        page = dial.call("session.items", {"sessionId": session_id, "after": self.after, "limit": self.limit})
        if terminal.as_json:
            terminal.json(page)
            return
        for items, ended in by_turn(dial, session_id, page):
            for item in items:
                terminal.show(*tables.item_lines(item), "")
            if ended is not None:
                terminal.show(f"(turn {ended})", "")
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
        dial, which = terminal.dial(), {"sessionId": terminal.session(self.session)}
        answer = dial.call("collaboration.status", which)
        if terminal.as_json:
            terminal.json(answer)
            return
        used = dial.call("session.get", which).get("usage")
        terminal.show(tables.facts([*_about(answer), *_work(answer), *usage_facts(used)]))
        exchanges: list[Answer] = answer["recentExchanges"]
        if exchanges:
            rows = [
                (
                    one["messageId"],
                    f"{one['kind']} {'from' if one['direction'] == 'incoming' else 'to'} {tables.titled(one['peer'])}",
                    tables.state(one["status"]),
                    tables.preview(words_of(one["kind"], one["preview"])),
                )
                for one in exchanges
            ]
            terminal.show("", tables.table(("ID", "MESSAGE", "STATE", "TEXT"), rows))
        if answer["waiting"]:
            terminal.remark(f"`coterie queue list {answer['sessionId']}` shows what waits, and why.")


def _about(answer: Answer) -> list[tuple[str, Any]]:
    created: list[Answer] = answer.get("createdSessions") or []
    return [
        ("session", answer["sessionId"]),
        ("title", answer["title"]),
        ("state", tables.state(answer["status"], answer.get("held"))),
        ("waiting", answer["waiting"]),
        ("model", _model(answer)),
        ("mode", answer["permissionMode"]),
        ("created by", tables.named(answer.get("createdBySession"))),
        ("created", "\n".join(str(tables.named(one)) for one in created) or None),
    ]


def _model(answer: Answer) -> str:
    key, name = answer.get("modelKey"), answer.get("modelName")
    if key is None:
        return "none is configured"
    return f"{key}, which is not configured any more" if name is None else f"{name} ({key})"


def _work(answer: Answer) -> list[tuple[str, Any]]:
    task, last = answer.get("currentTask"), answer.get("lastTurn")
    result, delivery = answer.get("result"), answer.get("lastDelivery")
    if result and delivery and result["messageId"] == delivery["messageId"]:
        delivery = None
    return [
        ("task", _task(task) if task else None),
        ("result", _outcome(result) if result else None),
        ("last delivery", _outcome(delivery) if delivery else None),
        ("last turn", f"{last['turnId']} {last['status']}" if last else None),
        ("error", last.get("error") if last else None),
    ]


def _task(task: Answer) -> Text:
    who = tables.titled(task["senderSession"])
    return tables.noted(f"{task['kind']} from {who}, {task['status']}", task["text"])


def _outcome(delivery: Answer) -> Text:
    told = f"{delivery['messageId']} {delivery['status']}"
    return tables.noted(told, delivery.get("error") or delivery.get("text") or "")


@dataclass(frozen=True, kw_only=True)
class Release(Command):
    """Let go on what waits for you.

    That is a queue that a restart has held, what a session holds back by its inbound setting, and work whose chain has
    spent its budget; it may then spend as much again. An archived session is freed by its name only.
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
            terminal.show("Nothing was held." if count == 0 else f"Released {count} session{'s'[: count != 1]}.")
