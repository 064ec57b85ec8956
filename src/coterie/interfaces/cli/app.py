"""The tree of commands that dial a host; who composes the program adds the commands that are one."""

from importlib import metadata
from typing import Annotated, Final

import typer

from coterie.interfaces.cli import (
    answer,
    approvals,
    catalogue,
    chat,
    lifecycle,
    messages,
    presence,
    queues,
    sessions,
    talk,
    watch,
    workspaces,
)
from coterie.interfaces.cli.command import Command, DataOption, Group, JsonOption, add, add_group, is_alone
from coterie.interfaces.cli.environment import Environment
from coterie.interfaces.cli.failure import reporting
from coterie.interfaces.cli.map import Map
from coterie.interfaces.cli.terminal import Terminal

COMMANDS: Final[tuple[tuple[str, type[Command]], ...]] = (
    ("run", talk.Run),
    ("chat", chat.Chat),
    ("prompt", talk.Prompt),
    ("steer", talk.Steer),
    ("send", messages.Send),
    ("wait", messages.Wait),
    ("result", messages.Result),
    ("cancel", messages.Cancel),
    ("interrupt", messages.Interrupt),
    ("retry", messages.Retry),
    ("status", sessions.Status),
    ("release", sessions.Release),
    ("approve", approvals.Approve),
    ("answer", answer.Answer),
    ("deny", approvals.Deny),
    ("tail", watch.Tail),
    ("map", Map),
    ("down", presence.Down),
)
GROUPS: Final[tuple[Group, ...]] = (
    Group(
        "session",
        "Create, read and change sessions.",
        (
            ("new", sessions.New),
            ("list", sessions.List),
            ("show", sessions.Show),
            ("items", sessions.Items),
            ("rename", lifecycle.Rename),
            ("configure", lifecycle.Configure),
            ("archive", lifecycle.Archive),
            ("delete", lifecycle.Delete),
            ("fork", lifecycle.Fork),
            ("diff", workspaces.Diff),
            ("apply", workspaces.Apply),
            ("drop", workspaces.Drop),
        ),
    ),
    Group(
        "queue",
        "See what waits for a session, and put it in order.",
        (
            ("list", queues.List),
            ("remove", queues.Remove),
            ("promote", queues.Promote),
            ("move", queues.Move),
        ),
    ),
    Group(
        "grants",
        "List and revoke what you have granted; alone it lists.",
        (("list", approvals.Grants), ("revoke", approvals.Revoke)),
        alone=approvals.Grants,
    ),
    Group(
        "models",
        "List models, resolve a name, test one; alone it lists.",
        (("list", catalogue.List), ("test", catalogue.Probe), ("resolve", catalogue.Resolve)),
        alone=catalogue.List,
    ),
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
        if is_alone(context, data, as_json=as_json):
            with reporting(as_json=as_json):
                presence.show_home(Terminal(environment, data, as_json=as_json))

    for name, command in COMMANDS:
        add(app, name, command, environment)
    for group in GROUPS:
        add_group(app, group, environment)
    return app
