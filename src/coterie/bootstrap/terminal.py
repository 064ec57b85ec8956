"""The program `coterie`: the terminal's commands, and those that compose a host in this process.

What a command needs is imported when it runs, so that `coterie --help` answers at once.
"""

import logging
import os
import shlex
import sys
import webbrowser
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from coterie.bootstrap.detach import start_detached
from coterie.bootstrap.files import make_data_directory
from coterie.core.codes import Code
from coterie.core.errors import HostError, InvalidArgumentError
from coterie.core.model_ref import default_binding
from coterie.interfaces.cli.app import build
from coterie.interfaces.cli.display import interrupted, json_line
from coterie.interfaces.cli.failure import reporting

if TYPE_CHECKING:
    from coterie.bootstrap.host import RunningHost
    from coterie.settings import Settings

T = TypeVar("T")

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Data directory. Default: COTERIE_HOME, else the user's data folder.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
PortOption = Annotated[int | None, typer.Option("--port", help="Port; 0 lets the system choose. Default: the setting.")]
HostOption = Annotated[str | None, typer.Option("--host", help="Loopback address to listen on.")]


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine, as the terminal needs it (`interfaces.cli.environment.Environment`)."""

    variables: Mapping[str, str]
    working_directory: Path = field(default_factory=Path.cwd)

    def data_directory(self, explicit: Path | None) -> Path:
        """See `Environment`."""
        from coterie.settings import data_directory

        return data_directory(explicit, self.variables)

    def start_host(self, data: Path) -> None:
        """See `Environment`. Where the usual port is taken, the system chooses another one."""
        try:
            start_detached(data)
        except HostError as error:
            if error.code is not Code.PORT_IN_USE:
                raise
            start_detached(data, ["--port", "0"])


def _settings(machine: Machine, data: Path | None, host: str | None, port: int | None) -> "Settings":
    from coterie.settings import load_settings

    folder = machine.data_directory(data)
    make_data_directory(folder)
    settings = load_settings(folder, machine.variables)
    changes: dict[str, Any] = {"host": host, "port": port}
    return replace(settings, **{name: value for name, value in changes.items() if value is not None})


def _announced(running: "RunningHost", *, as_json: bool) -> None:
    """Tell where the host is, which models it has and why, and what waits for a person."""
    from coterie.settings import model_help

    settings, found = running.engine.settings, running.engine
    chosen = default_binding(settings.models)
    models = [{"key": model.key, "default": model is chosen, "from": model.origin} for model in settings.models]
    if as_json:
        about = {"url": running.url, "pid": os.getpid(), "dataDirectory": str(settings.data_dir), "models": models}
        told = {**about, "held": found.held, "interrupted": found.interrupted}
        typer.echo(json_line(told, unicode=False))
        return
    lines = [f"Coterie listens on {running.url}", f"Data: {settings.data_dir}"]
    if chosen is None:
        lines += ["", model_help(settings.data_dir), ""]
    lines += [f"Model: {m.key} ({m.origin})" + (" - the default" if m is chosen else "") for m in settings.models]
    if found.interrupted:
        lines.append(interrupted(found.interrupted))
    if found.held:
        holds = "1 session holds its queue" if found.held == 1 else f"{found.held} sessions hold their queues"
        lines.append(f"{holds} since the restart: `coterie release` lets that go on.")
    lines.append(f"Stop with Ctrl-C or `coterie down --data {shlex.quote(str(settings.data_dir))}`.")
    typer.echo("\n".join(lines))


def add_commands(app: typer.Typer, machine: Machine) -> None:
    """Add the commands that compose a host in this process."""

    @app.command(rich_help_panel="Host")
    def up(
        *,
        data: DataOption = None,
        host: HostOption = None,
        port: PortOption = None,
        no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
        detach: Annotated[bool, typer.Option("--detach", help="Run in the background and return.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Start the host and run it until Ctrl-C.

        \b
        Example:
          coterie up --port 0
        """
        with reporting(as_json=as_json):
            if detach:
                options = [*(["--host", host] if host else []), *(["--port", str(port)] if port is not None else [])]
                about = start_detached(machine.data_directory(data), options)
                said = [f"Coterie listens on {about['url']}"]
                said += [interrupted(about["interrupted"])] if about.get("interrupted") else []
                typer.echo(json_line(about, unicode=False) if as_json else "\n".join(said))
                return
            _serve(_settings(machine, data, host, port), as_json=as_json, browse=not (no_open or as_json))

    @app.command(rich_help_panel="Host")
    def demo(
        *,
        folder: Annotated[Path | None, typer.Argument(help="The folder to look at. Default: this one.")] = None,
        provider: Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible server.")] = None,
        model: Annotated[str | None, typer.Option(help="The model's name there.")] = None,
        data: Annotated[Path | None, typer.Option("--data", help="Keep the ledger here. Default: nowhere.")] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Watch three sessions work together on a folder.

        \b
        Example:
          coterie demo ~/my-project
        """
        with reporting(as_json=as_json):
            raise typer.Exit(_demo(machine, folder, (provider, model), data=data, as_json=as_json))

    @app.command(rich_help_panel="Host")
    def verify(*, data: DataOption = None, as_json: JsonOption = False) -> None:
        """Check the ledger; works beside a running host.

        \b
        Example:
          coterie verify --json
        """
        with reporting(as_json=as_json):
            raise typer.Exit(_verify(machine.data_directory(data), as_json=as_json))

    _add_model_server(app)


def _add_model_server(app: typer.Typer) -> None:
    @app.command("model-server", rich_help_panel="Host")
    def model_server(
        script: Annotated[Path, typer.Argument(help="YAML script; docs/model-server.md has its format.")],
        *,
        host: HostOption = None,
        port: PortOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Serve a scripted model, for demos and tests.

        \b
        Example:
          coterie model-server script.yaml --port 8900
        """
        from coterie.model_server import serve

        def announce(url: str) -> None:
            typer.echo(json_line({"url": url}, unicode=False) if as_json else f"Scripted model at {url}/v1")

        with reporting(as_json=as_json):
            serve(script, host or "127.0.0.1", port or 0, announce)


def _serve(settings: "Settings", *, as_json: bool, browse: bool) -> None:
    from coterie.bootstrap.host import RunningHost, serve

    def announce(running: RunningHost) -> None:
        _announced(running, as_json=as_json)
        if browse and sys.stdout.isatty():
            webbrowser.open(running.url)

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run(serve(settings, announce))


def _demo(
    machine: Machine,
    folder: Path | None,
    real: tuple[str | None, str | None],
    *,
    data: Path | None,
    as_json: bool,
) -> int:
    from rich.console import Console

    from coterie.bootstrap.demo import DemoOptions, run_demo

    provider, model = real
    if (provider is None) != (model is None):
        raise InvalidArgumentError("--provider and --model go together: the server's base URL and the model's name.")
    chosen = (folder or machine.working_directory).expanduser().absolute()
    if not chosen.is_dir():
        raise InvalidArgumentError(f"{chosen} is not a folder; name one that exists.")
    kept = data.expanduser().absolute() if data is not None else None
    options = DemoOptions(chosen, provider, model, machine.variables, kept)
    told = run(run_demo(options, Console(stderr=as_json, soft_wrap=True)))
    if as_json:
        typer.echo(json_line({name: told[name] for name in told if name != "status"}, unicode=False))
    return 0 if told["verify"]["ok"] and told["status"] == "completed" else 1


def _verify(data: Path, *, as_json: bool) -> int:
    from coterie.bootstrap.files import DATABASE
    from coterie.settings import ledger_url

    url = ledger_url(data)
    if url is None:
        from coterie.storage.sqlite import check as in_file

        checked, broken = in_file.check(data / DATABASE)
    else:
        from coterie.storage.postgres import check as on_server

        checked, broken = on_server.check(url)
    if as_json:
        failures = [{"invariant": violation.invariant, "ref": violation.ref} for violation in broken]
        typer.echo(json_line({"ok": not broken, "checked": len(checked), "failures": failures}, unicode=False))
    else:
        for violation in broken:
            typer.echo(f"BROKEN  {violation.invariant}: {violation.ref}")
        typer.echo(f"{'broken' if broken else 'ok'}; {len(checked)} checks made")
    return 1 if broken else 0


def run(doing: Coroutine[Any, Any, T]) -> T:
    """Run on the fastest loop that is installed, and show the one fault inside exception groups as itself."""
    import uvloop

    try:
        return uvloop.run(doing)
    except* HostError as group:
        fault: Exception = group
        while isinstance(fault, ExceptionGroup):
            fault = fault.exceptions[0]
        raise fault from None


def main() -> None:
    """Run the program."""
    machine = Machine(MappingProxyType(dict(os.environ)))  # noqa: TID251 - read once, here
    app = build(machine)
    add_commands(app, machine)
    app()
