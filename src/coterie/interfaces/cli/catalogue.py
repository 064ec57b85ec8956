"""`models`: which models the host has, and which one a name means."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import typer

from coterie.interfaces.cli import tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.terminal import Terminal

_SELECTIONS: Final = {
    "explicit": "by what you named",
    "delegation": "as the first that is open to spawned sessions",
    "default": "as the default",
}


@dataclass(frozen=True, kw_only=True)
class List(Command):
    """List the models of the host."""

    example: ClassVar[str] = "coterie models list"

    def run(self, terminal: Terminal) -> None:
        """Read them."""
        answer = terminal.dial().call("models.list")
        if terminal.as_json:
            terminal.json(answer)
            return
        if not answer["models"]:
            terminal.show("No model is configured; `coterie up` tells the ways.")
            return
        models: list[Answer] = answer["models"]
        rows = [(one["key"], one["label"], ", ".join(one["aliases"]), _notes(one), one["origin"]) for one in models]
        terminal.show(tables.table(("KEY", "NAME", "ALIASES", "NOTES", "FROM"), rows))


@dataclass(frozen=True, kw_only=True)
class Resolve(Command):
    """Show which model a name means, without using it.

    Without a name it is the one that a session gets which names none.
    """

    example: ClassVar[str] = 'coterie models resolve "claude sonnet" --delegated'

    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Key, alias or name, or a description: `a reasoning model`.")
    ] = None
    delegated: Annotated[bool, typer.Option("--delegated", help="As for a session that another one spawns.")] = False

    def run(self, terminal: Terminal) -> None:
        """Ask the host."""
        answer = terminal.dial().call("models.resolve", {"name": self.name, "delegated": self.delegated})
        if terminal.as_json:
            terminal.json(answer)
            return
        model: Answer = answer["model"]
        terminal.show(
            tables.facts(
                [
                    ("model", model["key"]),
                    ("name", model["label"]),
                    ("aliases", ", ".join(model["aliases"]) or None),
                    ("notes", _notes(model) or None),
                    ("from", model["origin"] or None),
                    ("chosen", _SELECTIONS.get(answer["selection"], answer["selection"])),
                ]
            )
        )


def _notes(model: Answer) -> str:
    window = model.get("contextWindow")
    notes = [
        "default" if model["default"] else "",
        "open to spawned sessions" if model["availableForSubagents"] else "",
        "reasoning" if model["reasoning"] else "",
        f"{window} tokens of context" if window else "",
    ]
    return ", ".join(note for note in notes if note)
