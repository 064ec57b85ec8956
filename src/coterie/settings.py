"""A host's settings: `config.toml` and the environment, read once into one frozen value.

Nothing else reads the environment. What is wrong is told with file, line and what would be right, before anything
starts. Deliberately not here: whether an address may be bound, or whether a model answers.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from platformdirs import user_data_path

from coterie.core.errors import ConfigInvalidError, ExtraMissingError
from coterie.core.limits import RANGES, Limits
from coterie.core.model_ref import Binding, resolve
from coterie.core.permission import Mode
from coterie.core.refusal import Refusal

CONFIG_FILE: Final = "config.toml"
HOST: Final = "127.0.0.1"
PORT: Final = 7433

_APIS: Final = ("openai-chat", "anthropic", "google")
_EXTRAS: Final = MappingProxyType({"google": ("google", "google.genai")})
"""Of an api whose library is optional: the extra that brings it, and a module that is there with it."""
_PORT_MAX: Final = 65_535
_WINDOW_MAX: Final = 1_000_000_000
_SECTIONS: Final = ("server", "permissions", "limits", "models")
_MODEL_KEYS: Final = (
    "key",
    "api",
    "base_url",
    "model",
    "api_key_env",
    "api_key_file",
    "aliases",
    "default",
    "available_for_subagents",
    "context_window",
)
_HEADER: Final = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"""\s*([\w."'-]+)\s*=""")
_SYNTAX_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)")

_Toml: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a person can set about one host."""

    data_dir: Path
    host: str = HOST
    port: int = PORT
    permission_default: Mode = Mode.ASK
    """What a session that inherits may do without asking."""
    limits: Limits = field(default_factory=Limits)
    models: tuple[Binding, ...] = ()
    """The model catalogue; empty when nothing is configured."""
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
    config = _read_config(data_dir / CONFIG_FILE)
    root = _Table(config, "", _parse(config))
    root.only(_SECTIONS)
    server, permissions = root.table("server"), root.table("permissions")
    server.only(("host", "port"))
    permissions.only(("default",))
    settings = Settings(
        data_dir=data_dir,
        host=server.text("host") or HOST,
        port=server.number("port", 0, _PORT_MAX) if server.has("port") else PORT,
        permission_default=Mode(permissions.choice("default", tuple(mode.value for mode in Mode)) or Mode.ASK),
        limits=_limits(root.table("limits")),
        models=_models(root, data_dir, environment),
        shell_environment=MappingProxyType(dict(environment)),
    )
    # What is wrong in the file comes first: it may be what asks for the library.
    if missing := missing_extra(settings.models, find):
        raise missing
    return settings


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


def model_hint(data_dir: Path) -> str:
    """Return `model_help` in one sentence, for the error of a turn that has no model."""
    names = ", ".join(vendor.key_env or vendor.host_env or "" for vendor in _vendors())
    return (
        f"No model is configured. Set one of {names} and start the host again, "
        f"or add a [[models]] table to {data_dir / CONFIG_FILE}."
    )


def model_help(data_dir: Path) -> str:
    """Return the text that names every way to configure a model, for a host that has none."""
    lines = ["No model is configured. Set one of these variables and start again:", ""]
    for vendor in _vendors():
        variable = vendor.key_env or vendor.host_env
        lines.append(f"  {variable:<20} {vendor.title}, with {vendor.name}/{vendor.models[0].model}")
    lines += [
        "",
        "COTERIE_MODEL=vendor/model chooses another model of a vendor, for example COTERIE_MODEL=ollama/qwen3.",
        f"Any other server is a table in {data_dir / CONFIG_FILE}:",
        "",
        "  [[models]]",
        '  key = "local/my-model"',
        '  api = "openai-chat"               # or "anthropic", or "google"',
        '  base_url = "http://127.0.0.1:8000/v1"',
        '  api_key_env = "MY_KEY"            # or api_key_file; none for a server without keys',
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Config:
    path: Path
    text: str

    def line(self, table: str, occurrence: int, key: str) -> int:
        """Return the line of *key* in the given *occurrence* of *table*, else of the table, else 1.

        A scan by eye, not a parser: it may miss what is written unusually, and then points at the table.
        """
        wanted = f"{table}.{key}".strip(".")
        current, seen, best = "", -1, 1
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := _HEADER.match(line):
                current = header[1]
                seen += current == table
                if current == wanted:
                    return number
                best = number if current == table and seen == occurrence else best
            elif (found := _KEY.match(line)) and seen in {-1, occurrence}:
                path = f"{current}.{found[1]}".strip(".").replace('"', "").replace("'", "")
                if path == wanted:
                    return number
                best = number if path == table else best
        return best

    def fault(self, line: int, text: str) -> ConfigInvalidError:
        return ConfigInvalidError(f"{self.path}, line {line}: {text}")


@dataclass(frozen=True, slots=True)
class _Table:
    config: _Config
    name: str
    values: _Toml
    occurrence: int = 0

    @property
    def title(self) -> str:
        return f" in [{self.name}]" if self.name else ""

    def line(self, key: str) -> int:
        return self.config.line(self.name, self.occurrence, key)

    def fault(self, key: str, text: str) -> ConfigInvalidError:
        return self.config.fault(self.line(key), text)

    def has(self, key: str) -> bool:
        return key in self.values

    def only(self, known: Iterable[str]) -> None:
        names = tuple(known)
        for key in self.values:
            if key not in names:
                raise self.fault(key, f"there is no setting {key!r}{self.title}{_nearest(key, names)}")

    def _wrong(self, key: str, wanted: str) -> ConfigInvalidError:
        return self.fault(key, f"{key}{self.title} is {self.values[key]!r}, but must be {wanted}.")

    def table(self, key: str) -> "_Table":
        found = self.values.get(key, {})
        if not isinstance(found, dict):
            raise self._wrong(key, f"a table: [{key}]")
        return _Table(self.config, key, cast("_Toml", found))

    def tables(self, key: str) -> tuple["_Table", ...]:
        found = self.values.get(key, [])
        rows = cast("list[object]", found) if isinstance(found, list) else [None]
        if not all(isinstance(row, dict) for row in rows):
            raise self._wrong(key, f"tables: [[{key}]]")
        return tuple(_Table(self.config, key, cast("_Toml", row), place) for place, row in enumerate(rows))

    def text(self, key: str) -> str | None:
        found = self.values.get(key)
        if found is not None and not (isinstance(found, str) and found.strip()):
            raise self._wrong(key, "text in quotes")
        return found.strip() if found else None

    def choice(self, key: str, known: tuple[str, ...]) -> str | None:
        found = self.text(key)
        if found is not None and found not in known:
            raise self._wrong(key, f"one of {', '.join(known)}{_nearest(found, known).rstrip('.')}")
        return found

    def number(self, key: str, least: int, most: int) -> int:
        found = self.values[key]
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise self._wrong(key, f"a whole number from {least} to {most}")
        return found

    def flag(self, key: str) -> bool:
        found = self.values.get(key, False)
        if not isinstance(found, bool):
            raise self._wrong(key, "true or false")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.values.get(key, [])
        rows = cast("list[object]", found) if isinstance(found, list) else [None]
        texts = tuple(row for row in rows if isinstance(row, str) and row.strip())
        if len(texts) != len(rows):
            raise self._wrong(key, 'a list of texts, as ["a", "b"]')
        return texts


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, tuple(known), n=1, cutoff=0.5)
    return f"; the nearest is {near[0]!r}." if near else "."


def _read_config(path: Path) -> _Config:
    try:
        return _Config(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _Config(path, "")
    except UnicodeDecodeError as fault:
        raise ConfigInvalidError(f"{path}: the file is not UTF-8 text ({fault.reason}).") from fault
    except OSError as fault:
        raise ConfigInvalidError(f"{path}: the file cannot be read ({fault.strerror}).") from fault


def _parse(config: _Config) -> _Toml:
    try:
        return tomllib.loads(config.text)
    except tomllib.TOMLDecodeError as fault:
        place = _SYNTAX_LINE.search(str(fault))
        line = int(place[1]) if place else len(config.text.splitlines())
        raise config.fault(line, f"this is not TOML: {_SYNTAX_LINE.sub('', str(fault))}.") from fault


def _limits(table: _Table) -> Limits:
    table.only(RANGES)
    return Limits(**{name: table.number(name, *RANGES[name]) for name in table.values})


def _models(root: _Table, data_dir: Path, environment: Mapping[str, str]) -> tuple[Binding, ...]:
    rows = root.tables("models")
    bindings = _configured(rows, data_dir, environment) if rows else _shipped(environment)
    if wanted := environment.get("COTERIE_MODEL", "").strip():
        return _with_default(bindings, wanted, environment, shipped=not rows)
    return bindings


def _configured(rows: tuple[_Table, ...], data_dir: Path, environment: Mapping[str, str]) -> tuple[Binding, ...]:
    lines: dict[str, int] = {}
    bindings: list[Binding] = []
    for row in rows:
        binding = _configured_one(row, data_dir, environment)
        if earlier := lines.get(binding.key):
            raise row.fault("key", f"the model {binding.key!r} stands already in line {earlier}.")
        if binding.default and any(other.default for other in bindings):
            raise row.fault("default", "another model is the default already; only one can be.")
        lines[binding.key] = row.line("key")
        bindings.append(binding)
    return tuple(bindings)


def _configured_one(row: _Table, data_dir: Path, environment: Mapping[str, str]) -> Binding:
    row.only(_MODEL_KEYS)
    key, api, base_url = row.text("key"), row.choice("api", _APIS), row.text("base_url")
    if key is None:
        raise row.fault("key", 'a model needs a key, as key = "provider/model".')
    provider, _, model = key.partition("/")
    if not provider or not model or key != "".join(key.split()):
        raise row.fault("key", f"the key {key!r} must have the form provider/model.")
    if api is None:
        raise row.fault("key", f"the model {key!r} needs an api, one of {', '.join(_APIS)}.")
    if base_url is not None and not _is_url(base_url):
        raise row.fault("base_url", f"base_url is {base_url!r}, but must begin with http:// or https://.")
    secret, source = _secret(row, data_dir, environment)
    return Binding(
        key,
        api,
        base_url,
        row.text("model") or model,
        api_key=secret,
        aliases=row.texts("aliases"),
        default=row.flag("default"),
        available_for_subagents=row.flag("available_for_subagents"),
        context_window=row.number("context_window", 1, _WINDOW_MAX) if row.has("context_window") else None,
        origin=f"{row.config.path}:{row.line('key')}{source}",
    )


def _secret(row: _Table, data_dir: Path, environment: Mapping[str, str]) -> tuple[str | None, str]:
    """Return a model's key and where it comes from.

    A variable that is not set is no fault of the file: the host starts, and the vendor's refusal names the variable.
    """
    variable, file = row.text("api_key_env"), row.text("api_key_file")
    if variable and file:
        raise row.fault("api_key_file", "a model has api_key_env or api_key_file, not both.")
    if variable:
        secret = environment.get(variable, "").strip() or None
        return secret, f", api_key_env {variable}" if secret else f", api_key_env {variable}, which is not set"
    if file is None:
        return None, ", without api_key_env or api_key_file"
    path = data_dir / Path(file).expanduser()
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise row.fault("api_key_file", f"the key file {path} cannot be read ({type(fault).__name__}).") from fault
    if not secret:
        raise row.fault("api_key_file", f"the key file {path} is empty.")
    return secret, f", api_key_file {path}"


@dataclass(frozen=True, slots=True)
class _ShippedModel:
    model: str
    aliases: tuple[str, ...] = ()
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class _Vendor:
    name: str
    title: str
    api: str
    base_url: str
    base_url_env: str
    models: tuple[_ShippedModel, ...]
    key_env: str | None = None
    host_env: str | None = None
    """Of a vendor without keys: the variable with its address."""


def _vendors() -> tuple[_Vendor, ...]:
    shipped = files("coterie").joinpath("models.toml")
    root = _Table(_Config(Path("models.toml"), ""), "", tomllib.loads(shipped.read_text(encoding="utf-8")))
    return tuple(_vendor(row) for row in root.tables("vendors"))


def _vendor(row: _Table) -> _Vendor:
    return _Vendor(
        name=row.text("name") or "",
        title=row.text("title") or "",
        api=row.text("api") or "",
        base_url=row.text("base_url") or "",
        base_url_env=row.text("base_url_env") or "",
        models=tuple(_shipped_model(model) for model in row.tables("models")),
        key_env=row.text("key_env"),
        host_env=row.text("host_env"),
    )


def _shipped_model(row: _Table) -> _ShippedModel:
    window = row.number("context_window", 1, _WINDOW_MAX) if row.has("context_window") else None
    return _ShippedModel(row.text("model") or "", row.texts("aliases"), window)


@dataclass(frozen=True, slots=True)
class _Access:
    """How the environment reaches a vendor."""

    vendor: _Vendor
    base_url: str
    origin: str
    api_key: str | None = None

    def binding(self, shipped: _ShippedModel) -> Binding:
        vendor = self.vendor
        return Binding(
            f"{vendor.name}/{shipped.model}",
            vendor.api,
            self.base_url,
            shipped.model,
            api_key=self.api_key,
            aliases=shipped.aliases,
            available_for_subagents=True,
            context_window=shipped.context_window,
            origin=self.origin,
        )


def _shipped(environment: Mapping[str, str]) -> tuple[Binding, ...]:
    accesses = [access for vendor in _vendors() if (access := _access(vendor, environment))]
    return tuple(access.binding(model) for access in accesses for model in access.vendor.models)


def _access(vendor: _Vendor, environment: Mapping[str, str]) -> _Access | None:
    key = environment.get(vendor.key_env or "", "").strip() or None
    url = environment.get(vendor.base_url_env, "").strip()
    host = environment.get(vendor.host_env or "", "").strip()
    if url and not _is_url(url):
        raise ConfigInvalidError(f"{vendor.base_url_env} is {url!r}, but must begin with http:// or https://.")
    if vendor.key_env:
        origin = f"{vendor.key_env} and {vendor.base_url_env}" if url else vendor.key_env
        return _Access(vendor, url or vendor.base_url, origin, key) if key else None
    if url:
        return _Access(vendor, url, vendor.base_url_env)
    return _Access(vendor, _url_of_host(host), str(vendor.host_env)) if host else None


def _url_of_host(host: str) -> str:
    """Return the base URL of an Ollama address, which may lack scheme and port and may be what a server binds."""
    scheme, _, rest = host.rpartition("://")
    name, colon, port = rest.strip("/").rpartition(":")
    if not colon or not port.isdigit():
        name, port = rest.strip("/"), "443" if scheme == "https" else "80" if scheme else "11434"
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "[::]": "[::1]"}.get(name, name)  # noqa: S104 - not bound here
    return f"{scheme or 'http'}://{name}:{port}/v1"


def _is_url(text: str) -> bool:
    return re.match(r"https?://[^\s/]", text) is not None


def _with_default(
    bindings: tuple[Binding, ...], wanted: str, environment: Mapping[str, str], *, shipped: bool
) -> tuple[Binding, ...]:
    """Return the catalogue with the model that `COTERIE_MODEL` names as its only default."""
    found = resolve(bindings, wanted)
    added: tuple[Binding, ...] = ()
    if isinstance(found, Refusal):
        named = _named(wanted, environment) if shipped else None
        if named is None:
            near = f" Known are: {', '.join(found.candidates)}." if found.candidates else ""
            raise ConfigInvalidError(f"COTERIE_MODEL is {wanted!r}: {found.message}{near}")
        found, added = named, (named,)
    return tuple(replace(binding, default=binding.key == found.key) for binding in (*added, *bindings))


def _named(wanted: str, environment: Mapping[str, str]) -> Binding | None:
    """Return the binding of a model that is not listed, by its vendor's access."""
    name, _, model = wanted.partition("/")
    vendor = next((vendor for vendor in _vendors() if vendor.name == name), None)
    if vendor is None or not model:
        return None
    access = _access(vendor, environment)
    if access is None and vendor.key_env:
        raise ConfigInvalidError(f"COTERIE_MODEL is {wanted!r}, but {vendor.key_env} is not set.")
    access = access or _Access(vendor, vendor.base_url, "COTERIE_MODEL")
    return access.binding(_ShippedModel(model))
