"""`session diff|apply|drop`: what a session has changed in its worktree."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.talk import SessionArgument
from coterie.interfaces.cli.terminal import Terminal


def _summed(summary: Answer) -> str:
    files, lines = summary["count"], summary["insertions"]
    told = f"{files} file{'s'[: files != 1]}, {lines} line{'s'[: lines != 1]} added"
    return f"{told}, {summary['deletions']} removed"


@dataclass(frozen=True, kw_only=True)
class Diff(Command):
    """Show what a session has changed on its branch."""

    example: ClassVar[str] = "coterie session diff reader"

    session: SessionArgument

    def run(self, terminal: Terminal) -> None:
        """Read it."""
        answer = terminal.dial().call("session.diff", {"sessionId": terminal.session(self.session)})
        if terminal.as_json:
            terminal.json(answer)
            return
        terminal.show(answer["text"].rstrip("\n") or "Nothing has changed.")
        terminal.remark(f"{answer['branch']}: {_summed(answer['summary'])}.")


@dataclass(frozen=True, kw_only=True)
class Apply(Command):
    """Put the changes of a session into your files, uncommitted.

    All of it or, where the same lines have changed in your files, nothing.
    """

    example: ClassVar[str] = "coterie session apply reader"

    session: SessionArgument

    def run(self, terminal: Terminal) -> None:
        """Apply it."""
        answer = terminal.dial().act("session.apply", {"sessionId": terminal.session(self.session)})
        if terminal.as_json:
            terminal.json(answer)
        else:
            summary = answer.get("summary")
            terminal.show(f"Applied: {_summed(summary)}." if summary else "It was applied before.")


@dataclass(frozen=True, kw_only=True)
class Drop(Command):
    """Remove the worktree of a session and its branch.

    Not while a turn runs in it, and with --force only where something in it is not committed.
    """

    example: ClassVar[str] = "coterie session drop reader"

    session: SessionArgument
    force: Annotated[bool, typer.Option("--force", help="Drop also what is not committed.")] = False

    def run(self, terminal: Terminal) -> None:
        """Drop it."""
        given = {"sessionId": terminal.session(self.session), "force": self.force}
        answer = terminal.dial().act("session.drop", given)
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show("Dropped the worktree and its branch.")
