"""The settings as one value, and how they are read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from platformdirs import user_data_path

from coterie.core.errors import ExtraMissingError
from coterie.core.inbound import Across
from coterie.core.limits import RANGES, Limits
from coterie.core.model_ref import Binding
from coterie.core.notice import Notify
from coterie.core.permission import Mode, Rule, rule_of
from coterie.settings._catalogue import catalogue
from coterie.settings._config import CONFIG_FILE, Table, parse, read_config
from coterie.settings._notify import notify

HOST: Final = "127.0.0.1"
PORT: Final = 7433

_EXTRAS: Final = MappingProxyType({"google": ("google", "google.genai")})
"""Of an api whose library is optional: the extra that brings it, and a module that is there with it."""
_PORT_MAX: Final = 65_535
_SQLITE: Final = "sqlite"
_SECTIONS: Final = ("server", "store", "startup", "permissions", "collaboration", "limits", "models", "notify")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a person can set about one host."""

    data_dir: Path
    host: str = HOST
    port: int = PORT
    postgres: str | None = field(default=None, repr=False)
    """Where the ledger is, as libpq reads it; None is a file in the data directory."""
    permission_default: Mode = Mode.ASK
    """What a session that inherits may do without asking."""
    denied: tuple[Rule, ...] = ()
    """Tool calls that are refused in every mode."""
    across_projects: Across = Across.ASK
    """What happens to messages between sessions of different project folders."""
    resume: bool = False
    """Whether a start goes on with what waits, in place of holding it for a person."""
    limits: Limits = field(default_factory=Limits)
    models: tuple[Binding, ...] = ()
    """The model catalogue; empty when nothing is configured."""
    notify: tuple[Notify, ...] = ()
    """Who is told of what happens."""
    shell_environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The environment that tools run programs with."""


def data_directory(explicit: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the data directory: *explicit*, else `COTERIE_HOME`, else the platform's folder for user data."""
    if explicit is not None:
        return explicit.expanduser().absolute()
    if home := environment.get("COTERIE_HOME", "").strip():
        return Path(home).expanduser().absolute()
    return user_data_path("coterie", appauthor=False)


def is_installed(module: str) -> bool:
    """Return whether *module* could be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # A package above it is not there either.
        return False


def load_settings(
    data_dir: Path, environment: Mapping[str, str], *, find: Callable[[str], bool] = is_installed
) -> Settings:
    """Read `config.toml` of *data_dir* and *environment*.

    Args:
        data_dir: Where the file is.
        environment: The variables of the process.
        find: Whether an optional library is installed, by the name of its module.

    Raises:
        ConfigInvalidError: The file or a variable says something that cannot be meant.
        ExtraMissingError: A model needs a library that is not installed.
    """
    root = parse(read_config(data_dir / CONFIG_FILE))
    root.only(_SECTIONS)
    server, permissions = root.table("server"), root.table("permissions")
    server.only(("host", "port"))
    permissions.only(("default", "deny"))
    startup, collaboration = root.table("startup"), root.table("collaboration")
    startup.only(("queue",))
    collaboration.only(("across_projects",))
    settings = Settings(
        data_dir=data_dir,
        host=server.text("host") or HOST,
        port=server.number("port", 0, _PORT_MAX) if server.has("port") else PORT,
        postgres=_postgres(root.table("store"), find),
        permission_default=Mode(permissions.choice("default", tuple(mode.value for mode in Mode)) or Mode.ASK),
        denied=_rules(permissions),
        across_projects=Across(
            collaboration.choice("across_projects", tuple(rule.value for rule in Across)) or Across.ASK
        ),
        resume=startup.choice("queue", ("held", "resume")) == "resume",
        limits=_limits(root.table("limits")),
        models=catalogue(root, data_dir, environment),
        notify=notify(root),
        shell_environment=MappingProxyType(dict(environment)),
    )
    # What is wrong in the file comes first: it may be what asks for the library.
    if missing := missing_extra(settings.models, find):
        raise missing
    return settings


def _rules(permissions: Table) -> tuple[Rule, ...]:
    texts = permissions.texts("deny")
    for text in texts:
        if rule_of(text) is None:
            wanted = 'a tool, alone or with a pattern in parentheses: "bash" or "write(secrets/*)"'
            raise permissions.fault("deny", f"deny in [permissions] has {text!r}, but each rule must be {wanted}.")
    return tuple(rule for text in texts if (rule := rule_of(text)) is not None)


def missing_extra(models: Iterable[Binding], find: Callable[[str], bool]) -> ExtraMissingError | None:
    """Return the fault of the first model whose library is not installed, or None."""
    for model in models:
        extra, module = _EXTRAS.get(model.api, ("", ""))
        if module and not find(module):
            return ExtraMissingError(
                f"The model {model.key!r} ({model.origin}) has the api {model.api!r}, whose library is not installed: "
                f"run `pip install 'coterie[{extra}]'` and start the host again."
            )
    return None


def ledger_url(data_dir: Path) -> str | None:
    """Return where the ledger of *data_dir* is, as `Settings.postgres` says; nothing else of the file is looked at.

    Raises:
        ConfigInvalidError, ExtraMissingError: As `load_settings` would.
    """
    return _postgres(parse(read_config(data_dir / CONFIG_FILE)).table("store"), is_installed)


def _postgres(store: Table, find: Callable[[str], bool]) -> str | None:
    store.only(("url",))
    url = store.values.get("url", _SQLITE)
    if url == _SQLITE:
        return None
    # Not quoted: it may hold a password.
    if not isinstance(url, str) or not url.startswith(("postgresql://", "postgres://")):
        raise store.fault("url", f'url in [store] must be "{_SQLITE}" or begin with "postgresql://".')
    if not find("psycopg"):
        raise ExtraMissingError(
            "[store] url names PostgreSQL, whose library is not installed: "
            "run `pip install 'coterie[postgres]'` and start the host again."
        )
    return url


def _limits(table: Table) -> Limits:
    table.only(RANGES)
    return Limits(**{limit.name: _limit(table, limit) for limit in fields(Limits) if table.has(limit.name)})


def _limit(table: Table, limit: Field[Any]) -> Any:
    least, most = RANGES[limit.name]
    if isinstance(limit.default, float):
        return table.amount(limit.name, least, most)
    return table.number(limit.name, int(least), int(most))
