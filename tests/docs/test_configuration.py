"""The page on configuration: its file is read, and it names what the settings know."""

import re
from pathlib import Path
from typing import Final, cast

import pytest

from coterie.bootstrap.files import DATABASE, HOST_FILE, TOKEN_FILE
from coterie.core.errors import ConfigInvalidError
from coterie.core.limits import RANGES, Limits
from coterie.core.model_ref import default_binding
from coterie.settings import CONFIG_FILE, HOST, PORT, Settings, load_settings, model_help

PAGE: Final = (Path(__file__).parents[2] / "docs/configuration.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
TABLES: Final = ("[server]", "[startup]", "[permissions]", "[collaboration]", "[[models]]", "[[notify]]")
FAR: Final = "zzzzzzzz"
"""A key that is near to none."""


def load(folder: Path, text: str) -> Settings:
    """The settings that *text* stands for."""
    (folder / CONFIG_FILE).write_text(text, "utf-8")
    return load_settings(folder, {"ANTHROPIC_API_KEY": "secret"})


def known(folder: Path, table: str) -> list[str]:
    """The keys of a table, or of the whole file, as the error for a strange one lists them."""
    with pytest.raises(ConfigInvalidError) as caught:
        load(folder, f"{table}\n{FAR} = 1\n")
    listed = str(caught.value).partition(" Known are: ")[2]
    return listed.removesuffix(".").split(", ")


def shown(table: str) -> list[str]:
    """The keys that the page has for a table."""
    section = PAGE.partition(f"### `{table}`\n")[2].partition("\n#")[0]
    return cast("list[str]", re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_the_page_shows_a_whole_file_that_is_read(tmp_path: Path) -> None:
    """It is what a person copies; what it says beside the models are the defaults."""
    settings = load(tmp_path, EXAMPLE)
    sonnet, small = settings.models
    assert default_binding(settings.models) is sonnet
    assert (sonnet.key, sonnet.model, sonnet.api_key) == ("anthropic/sonnet", "claude-sonnet-5-5", "secret")
    assert (small.model, small.input_price, small.output_price) == ("small", 0.1, 0.4)
    assert (settings.host, settings.port) == (HOST, PORT)
    plain = load(tmp_path, "")
    assert (settings.permission_default, settings.across_projects) == (plain.permission_default, plain.across_projects)
    assert (settings.resume, settings.limits.hops_max) == (plain.resume, Limits().hops_max)


@pytest.mark.parametrize("table", TABLES)
def test_the_page_names_every_key_of_a_table(tmp_path: Path, table: str) -> None:
    """A key that nobody can read about is not there, and one that is read about and gone ends a start."""
    assert sorted(shown(table)) == sorted(known(tmp_path, table))


def test_the_page_names_every_section(tmp_path: Path) -> None:
    """The limits have a page of their own, which is made from their table."""
    sections = re.findall(r"^### `\[+(\w+)\]+`$", PAGE, re.MULTILINE)
    assert sorted(sections) == sorted(known(tmp_path, ""))
    assert known(tmp_path, "[limits]") == list(RANGES)


def test_the_page_names_the_variables_that_reach_a_vendor(tmp_path: Path) -> None:
    """The host's own help for a person without a model is the list."""
    named = {"COTERIE_HOME", *re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", model_help(tmp_path))} - {"MY_KEY"}
    assert len(named) > len(TABLES)
    assert not [name for name in named if f"`{name}`" not in PAGE]
    assert not [
        name for name in named if name.endswith("_API_KEY") and name.replace("_API_KEY", "_BASE_URL") not in PAGE
    ]


def test_the_page_names_the_files_of_the_data_directory() -> None:
    """Whoever makes a copy, or gives one away, must know which of them is a secret."""
    assert not [name for name in (CONFIG_FILE, DATABASE, HOST_FILE, TOKEN_FILE) if f"| `{name}` |" not in PAGE]
