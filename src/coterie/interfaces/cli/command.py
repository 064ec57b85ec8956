"""A command is a value: its fields are what the person typed, `run` performs it.

So each command is read and tried without a parser, and options that travel together stay together.
"""

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

import typer

from coterie.interfaces.cli.environment import Environment
from coterie.interfaces.cli.failure import reporting
from coterie.interfaces.cli.terminal import Terminal

DataOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data directory of the host; else COTERIE_HOME, else the platform's."),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """What every command takes."""

    example: ClassVar[str] = ""
    """A command line that shows it at work; part of its help."""

    data: DataOption = None
    as_json: JsonOption = False

    @abstractmethod
    def run(self, terminal: Terminal) -> None:
        """Perform the command.

        Raises:
            HostError: It failed; one line says so.
            typer.Exit: It ends with another status than 0.
        """


def add(app: typer.Typer, name: str, command: type[Command], environment: Environment) -> None:
    """Add *command* to *app* as *name*."""

    def perform(**given: Any) -> None:
        typed = command(**given)
        with reporting(as_json=typed.as_json):
            typed.run(Terminal(environment, typed.data, as_json=typed.as_json))

    # Typer reads options from a function's signature; this one's is the class's, what all commands share last.
    signature = inspect.signature(command)
    shared = Command.__dataclass_fields__
    ordered = sorted(signature.parameters.values(), key=lambda parameter: parameter.name in shared)
    perform.__dict__["__signature__"] = signature.replace(parameters=ordered)
    app.command(name, help=help_of(command))(perform)


def help_of(command: type[Command]) -> str:
    """The help of a command: its docstring, then its example as it is typed."""
    text = inspect.getdoc(command) or ""
    return f"{text}\n\n\b\nExample:\n  {command.example}" if command.example else text
