"""`models`: which models the host has, which one a name means, and whether it answers."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

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


@dataclass(frozen=True, kw_only=True)
class Probe(Command):
    """Ask a model for one word, to see whether it answers.

    One request goes to its provider, with its key, outside of any session; it is not tried again. Ends with 0 when the
    model answered, and with 1 when it did not.
    """

    example: ClassVar[str] = "coterie models test sonnet"

    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Key, alias or name; without one the default model.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Ask through the host."""
        dial = terminal.dial()
        with terminal.busy(f"asking {self.name or 'the default model'}"):
            answer = dial.call("models.test", {"name": self.name})
        if terminal.as_json:
            terminal.json(answer)
        else:
            terminal.show(tables.facts(_tested(answer)))
        if not answer["ok"]:
            raise typer.Exit(1)


def _tested(answer: Answer) -> list[tuple[str, Any]]:
    cost = answer.get("costUsd")
    return [
        ("model", answer["model"]),
        ("answered", tables.preview(answer.get("text")) if answer["ok"] else "no"),
        ("after", f"{answer['latencyMs']} ms"),
        ("tokens", _tokens(answer) if answer["ok"] else None),
        ("cost", None if cost is None else f"{cost:.6f} US dollars"),
        ("error", None if answer["ok"] else f"{answer['errorCode']}: {answer['error']}"),
    ]


def _tokens(answer: Answer) -> str:
    read, written = (answer.get(name, "unknown") for name in ("inputTokens", "outputTokens"))
    return f"{read} read, {written} written"


def _notes(model: Answer) -> str:
    window = model.get("contextWindow")
    notes = [
        "default" if model["default"] else "",
        "open to spawned sessions" if model["availableForSubagents"] else "",
        "reasoning" if model["reasoning"] else "",
        "images" if model.get("images") else "",
        f"{window} tokens of context" if window else "",
    ]
    return ", ".join(note for note in notes if note)
