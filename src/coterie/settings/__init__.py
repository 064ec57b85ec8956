"""A host's settings: `config.toml` and the environment, read once into one frozen value.

Nothing else reads the environment. What is wrong is told with file, line and what would be right, before anything
starts. Deliberately not here: whether an address may be bound, or whether a model answers.
"""

from coterie.settings._config import CONFIG_FILE
from coterie.settings._help import model_help, model_hint
from coterie.settings._load import (
    HOST,
    PORT,
    Settings,
    data_directory,
    is_installed,
    ledger_url,
    load_settings,
    missing_extra,
)

__all__ = [
    "CONFIG_FILE",
    "HOST",
    "PORT",
    "Settings",
    "data_directory",
    "is_installed",
    "ledger_url",
    "load_settings",
    "missing_extra",
    "model_help",
    "model_hint",
]
