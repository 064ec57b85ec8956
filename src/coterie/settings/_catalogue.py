"""The model catalogue: the `[[models]]` of the file, else what the environment reaches."""

import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from coterie.core.errors import ConfigInvalidError
from coterie.core.model_ref import Binding, called, resolve
from coterie.core.refusal import Refusal
from coterie.settings._config import URL_FORM, WINDOW_MAX, Table, is_url
from coterie.settings._vendors import shipped, unlisted

_APIS: Final = ("openai-chat", "openai-responses", "anthropic", "google")
_PRICE_MAX: Final = 1_000_000.0
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""What nobody but the owner of a key file may do."""
_MODEL_KEYS: Final = (
    "key",
    "api",
    "base_url",
    "model",
    "api_key_env",
    "api_key_file",
    "label",
    "aliases",
    "default",
    "available_for_subagents",
    "reasoning",
    "images",
    "context_window",
    "input_price",
    "output_price",
)


def catalogue(root: Table, data_dir: Path, environment: Mapping[str, str]) -> tuple[Binding, ...]:
    """Return the models of this host, of which the one that `COTERIE_MODEL` names is the default."""
    rows = root.tables("models")
    bindings = _configured(rows, data_dir, environment) if rows else shipped(environment)
    if wanted := environment.get("COTERIE_MODEL", "").strip():
        found = None if rows or called(bindings, wanted) else unlisted(wanted, environment)
        return _with_default((found, *bindings), found.key) if found else _with_default(bindings, wanted)
    return bindings


def _configured(rows: tuple[Table, ...], data_dir: Path, environment: Mapping[str, str]) -> tuple[Binding, ...]:
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


def _configured_one(row: Table, data_dir: Path, environment: Mapping[str, str]) -> Binding:
    row.only(_MODEL_KEYS)
    key, api, base_url = row.text("key"), row.choice("api", _APIS), row.text("base_url")
    if key is None:
        raise row.fault("key", 'a model needs a key, as key = "provider/model".')
    provider, _, model = key.partition("/")
    if not provider or not model or key != "".join(key.split()):
        raise row.fault("key", f"the key {key!r} must have the form provider/model.")
    if api is None:
        raise row.fault("key", f"the model {key!r} needs an api, one of {', '.join(_APIS)}.")
    if base_url is not None and not is_url(base_url):
        raise row.fault("base_url", f"base_url is {base_url!r}, but {URL_FORM}.")
    input_price, output_price = _price(row, "input_price"), _price(row, "output_price")
    if (input_price is None) != (output_price is None):
        alone = "output_price" if input_price is None else "input_price"
        raise row.fault(alone, "a model has input_price and output_price, or neither.")
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
        context_window=row.number("context_window", 1, WINDOW_MAX) if row.has("context_window") else None,
        origin=f"{row.config.path}:{row.line('key')}{source}",
        label=row.text("label") or "",
        reasoning=row.flag("reasoning"),
        images=row.flag("images"),
        input_price=input_price,
        output_price=output_price,
    )


def _price(row: Table, key: str) -> float | None:
    return row.amount(key, 0.0, _PRICE_MAX) if row.has(key) else None


def _secret(row: Table, data_dir: Path, environment: Mapping[str, str]) -> tuple[str | None, str]:
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
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            text = f"the key file {path} is open to other users (mode {mode:04o}); run `chmod 600 {path}`."
            raise row.fault("api_key_file", text)
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise row.fault("api_key_file", f"the key file {path} cannot be read ({type(fault).__name__}).") from fault
    if not secret:
        raise row.fault("api_key_file", f"the key file {path} is empty.")
    return secret, f", api_key_file {path}"


def _with_default(bindings: tuple[Binding, ...], wanted: str) -> tuple[Binding, ...]:
    """Return the catalogue with the model that is called *wanted* as its only default."""
    found = resolve(bindings, wanted)
    if isinstance(found, Refusal):
        near = f" Known are: {', '.join(found.candidates)}." if found.candidates else ""
        raise ConfigInvalidError(f"COTERIE_MODEL is {wanted!r}: {found.message}{near}")
    return tuple(replace(binding, default=binding.key == found.key) for binding in bindings)
