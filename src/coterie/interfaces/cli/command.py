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


@dataclass(frozen=True, slots=True)
class Group:
    """Commands about one thing, behind its name."""

    name: str
    about: str
    """What the help says."""
    commands: tuple[tuple[str, type[Command]], ...]
    alone: type[Command] | None = None
    """What the name alone does; it takes what all commands take. None shows the help."""


def add_group(app: typer.Typer, group: Group, environment: Environment) -> None:
    """Add a group of commands to *app*."""
    made = typer.Typer(rich_markup_mode=None, no_args_is_help=group.alone is None, help=group.about)
    command = group.alone
    if command is not None:

        @made.callback(invoke_without_command=True)
        def alone(  # pyright: ignore[reportUnusedFunction]  # typer calls it
            context: typer.Context, *, data: DataOption = None, as_json: JsonOption = False
        ) -> None:
            if is_alone(context, data, as_json=as_json):
                with reporting(as_json=as_json):
                    command(data=data, as_json=as_json).run(Terminal(environment, data, as_json=as_json))

    for name, one in group.commands:
        add(made, name, one, environment)
    app.add_typer(made, name=group.name)


def is_alone(context: typer.Context, data: Path | None, *, as_json: bool) -> bool:
    """Whether no command follows.

    Raises:
        typer.BadParameter: One follows options that would be dropped without a word.
    """
    if context.invoked_subcommand is None:
        return True
    if data is not None or as_json:
        raise typer.BadParameter("put --data and --json behind the name of the command.")
    return False


def help_of(command: type[Command]) -> str:
    """The help of a command: its docstring, then its example as it is typed."""
    text = inspect.getdoc(command) or ""
    return f"{text}\n\n\b\nExample:\n  {command.example}" if command.example else text
