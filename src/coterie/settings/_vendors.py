"""The vendors that a host knows without a file (`models.toml`), and how the environment reaches them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from coterie.core.errors import ConfigInvalidError
from coterie.core.model_ref import Binding
from coterie.settings._config import URL_FORM, WINDOW_MAX, ConfigText, Table, is_url, parse


@dataclass(frozen=True, slots=True)
class _ShippedModel:
    model: str
    aliases: tuple[str, ...] = ()
    context_window: int | None = None
    images: bool = False


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor, with the models that this version knows."""

    name: str
    title: str
    api: str
    base_url: str
    base_url_env: str
    models: tuple[_ShippedModel, ...]
    key_env: str | None = None
    host_env: str | None = None
    """Of a vendor without keys: the variable with its address."""


def vendors() -> tuple[Vendor, ...]:
    """Return the vendors, in the order in which they give the host's default."""
    text = files("coterie").joinpath("models.toml").read_text(encoding="utf-8")
    root = parse(ConfigText(Path("models.toml"), text))
    return tuple(_vendor(row) for row in root.tables("vendors"))


def _vendor(row: Table) -> Vendor:
    return Vendor(
        name=row.text("name") or "",
        title=row.text("title") or "",
        api=row.text("api") or "",
        base_url=row.text("base_url") or "",
        base_url_env=row.text("base_url_env") or "",
        models=tuple(_shipped_model(model) for model in row.tables("models")),
        key_env=row.text("key_env"),
        host_env=row.text("host_env"),
    )


def _shipped_model(row: Table) -> _ShippedModel:
    window = row.number("context_window", 1, WINDOW_MAX) if row.has("context_window") else None
    return _ShippedModel(row.text("model") or "", row.texts("aliases"), window, row.flag("images"))


@dataclass(frozen=True, slots=True)
class _Access:
    """How the environment reaches a vendor."""

    vendor: Vendor
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
            images=shipped.images,
            origin=self.origin,
        )


def shipped(environment: Mapping[str, str]) -> tuple[Binding, ...]:
    """Return the models of every vendor that the environment reaches."""
    accesses = [access for vendor in vendors() if (access := _access(vendor, environment))]
    return tuple(access.binding(model) for access in accesses for model in access.vendor.models)


def _access(vendor: Vendor, environment: Mapping[str, str]) -> _Access | None:
    key = environment.get(vendor.key_env or "", "").strip() or None
    url = environment.get(vendor.base_url_env, "").strip()
    host = environment.get(vendor.host_env or "", "").strip()
    if url and not is_url(url):
        raise ConfigInvalidError(f"{vendor.base_url_env} is {url!r}, but {URL_FORM}.")
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


def unlisted(wanted: str, environment: Mapping[str, str]) -> Binding | None:
    """Return the binding of a model that is not listed, by its vendor's access."""
    name, _, model = wanted.partition("/")
    vendor = next((vendor for vendor in vendors() if vendor.name == name), None)
    if vendor is None or not model:
        return None
    access = _access(vendor, environment)
    if access is None and vendor.key_env:
        raise ConfigInvalidError(f"COTERIE_MODEL is {wanted!r}, but {vendor.key_env} is not set.")
    access = access or _Access(vendor, vendor.base_url, "COTERIE_MODEL")
    return access.binding(_ShippedModel(model))
