"""What a person without a model is told."""

from pathlib import Path

from coterie.settings._config import CONFIG_FILE
from coterie.settings._vendors import vendors


def model_hint(data_dir: Path) -> str:
    """Return `model_help` in one sentence, for the error of a turn that has no model."""
    names = ", ".join(vendor.key_env or vendor.host_env or "" for vendor in vendors())
    return (
        f"No model is configured. Set one of {names} and start the host again, "
        f"or add a [[models]] table to {data_dir / CONFIG_FILE}."
    )


def model_help(data_dir: Path) -> str:
    """Return the text that names every way to configure a model, for a host that has none."""
    lines = ["No model is configured. Set one of these variables and start again:", ""]
    for vendor in vendors():
        variable = vendor.key_env or vendor.host_env
        lines.append(f"  {variable:<20} {vendor.title}, with {vendor.name}/{vendor.models[0].model}")
    lines += [
        "",
        "COTERIE_MODEL=vendor/model chooses another model of a vendor, for example COTERIE_MODEL=ollama/qwen3.",
        f"Any other server is a table in {data_dir / CONFIG_FILE}:",
        "",
        "  [[models]]",
        '  key = "local/my-model"',
        '  api = "openai-chat"               # or "openai-responses", "anthropic", "google"',
        '  base_url = "http://127.0.0.1:8000/v1"',
        '  api_key_env = "MY_KEY"            # or api_key_file; none for a server without keys',
    ]
    return "\n".join(lines)
