"""Where a ledger is by `[store] url`, and how a mistake in it is told."""

import re
from pathlib import Path

import pytest

from coterie.core.errors import ConfigInvalidError, ExtraMissingError
from coterie.settings import Settings, ledger_url, load_settings

URL = "postgresql://one:secret@db.example/coterie"


def write(folder: Path, text: str) -> Path:
    """Write the file and return its folder."""
    (folder / "config.toml").write_text(text, "utf-8")
    return folder


def both(folder: Path) -> set[str | None]:
    """The ledger as a host reads it, and as a check beside it does."""
    return {load_settings(folder, {}).postgres, ledger_url(folder)}


@pytest.mark.parametrize("text", ["", "[store]\n", '[store]\nurl = "sqlite"\n'])
def test_a_ledger_is_a_file_unless_another_place_is_named(tmp_path: Path, text: str) -> None:
    """Who says nothing needs no server."""
    assert both(write(tmp_path, text)) == {None}


@pytest.mark.parametrize("url", [URL, "postgres:///coterie?host=/run/postgresql"])
def test_a_server_is_named_as_its_own_tools_name_it(tmp_path: Path, url: str) -> None:
    """The address is the library's affair from the first sign on."""
    assert both(write(tmp_path, f'[store]\nurl = "{url}"\n')) == {url}


def test_an_address_is_not_shown_with_the_settings(tmp_path: Path) -> None:
    """It may hold a password, and settings get into logs."""
    assert "secret" not in repr(Settings(tmp_path, postgres=URL))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('url = "mysql://db/coterie"', 'must be "sqlite" or begin with "postgresql://"'),
        ('url = "coterie.db"', 'must be "sqlite" or begin with "postgresql://"'),
        ("url = 5432", 'must be "sqlite" or begin with "postgresql://"'),
        ('url = ""', 'must be "sqlite" or begin with "postgresql://"'),
        ('url = ["postgresql://u:secret@h/db"]', 'must be "sqlite" or begin with "postgresql://"'),
        ('uri = "sqlite"', "url"),
    ],
)
def test_what_is_no_place_for_a_ledger_is_told_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    """A ledger that is looked for in another place than the person meant looks empty."""
    write(tmp_path, f"\n[store]\n{line}\n")
    with pytest.raises(ConfigInvalidError, match=re.escape(told)) as started:
        load_settings(tmp_path, {})
    with pytest.raises(ConfigInvalidError) as checked:
        ledger_url(tmp_path)
    assert str(started.value) == str(checked.value)
    assert str(started.value).startswith(f"{tmp_path / 'config.toml'}, line 3: ")


def test_a_server_without_its_library_names_the_extra(tmp_path: Path) -> None:
    """It is no part of a plain installation; a file needs none."""
    write(tmp_path, f'[store]\nurl = "{URL}"\n')
    with pytest.raises(ExtraMissingError, match=re.escape("run `pip install 'coterie[postgres]'`")) as caught:
        load_settings(tmp_path, {}, find=lambda module: module != "psycopg")
    assert "secret" not in str(caught.value)
    assert load_settings(write(tmp_path, ""), {}, find=lambda _: False).postgres is None


def test_a_check_reads_nothing_of_the_file_but_where_the_ledger_is(tmp_path: Path) -> None:
    """It must be able to say what is in a ledger whose host cannot start."""
    write(tmp_path, f'[store]\nurl = "{URL}"\n[startup]\nqueue = "sideways"\n')
    with pytest.raises(ConfigInvalidError):
        load_settings(tmp_path, {})
    assert ledger_url(tmp_path) == URL
