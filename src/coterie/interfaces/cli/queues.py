"""`queue list|remove|promote|move`: what waits for a session, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, TypeAlias

import typer

from coterie.interfaces.cli import tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.endings import words_of
from coterie.interfaces.cli.naming import PART_HELP, one_of
from coterie.interfaces.cli.talk import SessionArgument
from coterie.interfaces.cli.terminal import Terminal

InputArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="INPUT", help=f"Id from `queue list`, or {PART_HELP}.")
]
_REASONS: Final = {
    "across_projects": "your approval: its sender works in another project",
    "budget": "a release: its chain has spent its budget",
    "policy": "a release: the session holds what other sessions send",
}
_BLOCKED: Final = {
    "held: restart": "Held since the last stop of the host; `coterie release {id}` lets it go on.",
    "held: archived": "The session is archived; `coterie release {id}` or a prompt brings it back.",
    "running": "A turn runs; the next one starts when it ends.",
    "waiting": "Nothing of it starts by itself.",
    "slot": "The next turn starts as soon as the host has a free slot.",
}


def reason(waiting: str) -> str:
    """What a person has to do for an input that waits for them, and why."""
    return _REASONS.get(waiting, waiting)


def remedies(reasons: Iterable[str], session_id: str) -> list[str]:
    """How a person lets go on what waits for them in a session, one sentence a way."""
    ways = {
        "`coterie approve` shows the question that it waits for, and answers it."
        if one == "across_projects"
        else f"`coterie release {session_id}` lets it go on."
        for one in reasons
    }
    return sorted(ways)


@dataclass(frozen=True, kw_only=True)
class List(Command):
    """Show what waits for a session, and why.

    Inputs start from the top, but one that waits for a person is passed by, and prompts leave room for messages.
    """

    example: ClassVar[str] = "coterie queue list reader"

    session: SessionArgument

    def run(self, terminal: Terminal) -> None:
        """Read it."""
        answer = terminal.dial().call("queue.list", {"sessionId": terminal.session(self.session)})
        if terminal.as_json:
            terminal.json(answer)
            return
        inputs: list[Answer] = answer["inputs"]
        if not inputs:
            terminal.show("Nothing waits.")
            return
        rows = [
            (one["inputId"], one["kind"], *_told(one), tables.preview(words_of(one["kind"], one["preview"])))
            for one in inputs
        ]
        terminal.show(tables.table(("ID", "KIND", "FROM", "NOTE", "TEXT"), rows))
        blocked, session_id = str(answer.get("blockedBy", "")), answer["sessionId"]
        if blocked:
            terminal.remark(_BLOCKED.get(blocked, blocked).format(id=session_id))
        for way in remedies((one["waiting"] for one in inputs if one.get("waiting")), session_id):
            terminal.remark(way)
        if answer["waiting"] > len(inputs):
            terminal.remark(f"{answer['waiting']} wait; these are the first {len(inputs)}.")


def _told(one: Answer) -> tuple[str, str]:
    """Who has sent an input, and what there is to say about it."""
    notes = [
        "goes first" if one["promoted"] else "",
        f"waits for {reason(one['waiting'])}" if one.get("waiting") else "",
        "offered to the running turn" if one.get("offeredToTurnId") else "",
    ]
    return one.get("sourceTitle", "a person"), "; ".join(note for note in notes if note)


@dataclass(frozen=True, kw_only=True)
class _OnInput(Command):
    """A command about one input."""

    session: SessionArgument
    input: InputArgument

    def named(self, terminal: Terminal) -> Answer:
        """The input as parameters."""
        session_id = terminal.session(self.session)
        inputs = terminal.dial().call("queue.list", {"sessionId": session_id})["inputs"]
        input_id = one_of(self.input, [one["inputId"] for one in inputs], "inputs")
        return {"sessionId": session_id, "inputId": input_id}


@dataclass(frozen=True, kw_only=True)
class Remove(_OnInput):
    """Take an input out of a session's queue.

    A message is cancelled by that, and its sender is told.
    """

    example: ClassVar[str] = "coterie queue remove reader 9c41d2e8"

    def run(self, terminal: Terminal) -> None:
        """Remove it."""
        answer = terminal.dial().act("queue.remove", self.named(terminal))
        if terminal.as_json:
            terminal.json(answer)
            return
        message = answer.get("messageId")
        terminal.show("Removed." if message is None else f"Removed; {message} is cancelled, and its sender is told.")


@dataclass(frozen=True, kw_only=True)
class Promote(_OnInput):
    """Let an input go before all others.

    Only what was promoted earlier stays before it. A held queue stays held.
    """

    example: ClassVar[str] = "coterie queue promote reader 9c41d2e8"

    def run(self, terminal: Terminal) -> None:
        """Promote it."""
        answer = terminal.dial().act("queue.promote", self.named(terminal))
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show("Promoted; it goes before all that was not.")


@dataclass(frozen=True, kw_only=True)
class Move(_OnInput):
    """Move an input one place up or down among its kind.

    Prompts change places with prompts, messages with messages.
    """

    example: ClassVar[str] = "coterie queue move reader 9c41d2e8 --up"

    up: Annotated[bool, typer.Option("--up/--down", help="Up is earlier.")]

    def run(self, terminal: Terminal) -> None:
        """Move it."""
        direction = "up" if self.up else "down"
        answer = terminal.dial().act("queue.move", {**self.named(terminal), "direction": direction})
        if terminal.as_json:
            terminal.json(answer)
        elif answer["moved"]:
            terminal.show(f"Moved {direction}.")
        else:
            end = "first" if self.up else "last"
            terminal.show(f"It stays where it is: it is the {end} of its kind, or was promoted.")
