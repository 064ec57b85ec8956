"""The tree of commands that dial a host; who composes the program adds the commands that are one."""

from importlib import metadata
from typing import Annotated, Final

import typer

from coterie.interfaces.cli import messages, presence, sessions, talk, watch
from coterie.interfaces.cli.command import Command, DataOption, JsonOption, add
from coterie.interfaces.cli.environment import Environment
from coterie.interfaces.cli.failure import reporting
from coterie.interfaces.cli.terminal import Terminal

COMMANDS: Final[tuple[tuple[str, type[Command]], ...]] = (
    ("run", talk.Run),
    ("prompt", talk.Prompt),
    ("send", messages.Send),
    ("wait", messages.Wait),
    ("result", messages.Result),
    ("cancel", messages.Cancel),
    ("status", sessions.Status),
    ("release", sessions.Release),
    ("tail", watch.Tail),
    ("down", presence.Down),
)
SESSION_COMMANDS: Final[tuple[tuple[str, type[Command]], ...]] = (
    ("new", sessions.New),
    ("list", sessions.List),
    ("show", sessions.Show),
    ("items", sessions.Items),
)
_HELP: Final = """A host for agent sessions that work together.

Without a command: start a host in the background if none runs, then show its address, its sessions and what waits for
you.

\b
Example:
  coterie run "Which file here is the largest?"
"""


def _tell_version(asked: bool) -> None:  # noqa: FBT001 - typer hands it over so
    if asked:
        typer.echo(f"coterie {metadata.version('coterie')}")
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
]


def build(environment: Environment) -> typer.Typer:
    """Make the program; commands may be added to it."""
    # Plain help: styling it takes longer than all the rest of `--help`. A traceback never shows local variables.
    app = typer.Typer(
        name="coterie",
        help=_HELP,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def home(  # pyright: ignore[reportUnusedFunction]  # typer calls it
        context: typer.Context, *, data: DataOption = None, as_json: JsonOption = False, version: VersionOption = False
    ) -> None:
        del version
        if context.invoked_subcommand is None:
            with reporting(as_json=as_json):
                presence.show_home(Terminal(environment, data, as_json=as_json))
        elif data is not None or as_json:
            raise typer.BadParameter("put --data and --json behind the name of the command.")

    for name, command in COMMANDS:
        add(app, name, command, environment)
    group = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Create, list and read sessions.")
    for name, command in SESSION_COMMANDS:
        add(group, name, command, environment)
    app.add_typer(group, name="session")
    return app
