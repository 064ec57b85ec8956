"""The text of `config.toml` and its tables, which tell a mistake with file, line and what would be right."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

from coterie.core.errors import ConfigInvalidError

CONFIG_FILE: Final = "config.toml"

_HEADER: Final = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"""\s*([\w."'-]+)\s*=""")
_SYNTAX_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)")

WINDOW_MAX: Final = 1_000_000_000
"""Tokens of the largest context window that a file may claim."""
URL_FORM: Final = "must begin with http:// or https:// and a host, with a port below 65536 if any"

_Toml: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ConfigText:
    """The file as it was written."""

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
        """Return the error that tells *text* of this line."""
        return ConfigInvalidError(f"{self.path}, line {line}: {text}")


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the file; each reader raises `ConfigInvalidError` for a value of another kind."""

    config: ConfigText
    name: str
    values: _Toml
    occurrence: int = 0
    """How many tables of this name stand before it."""

    @property
    def title(self) -> str:
        """Where a key stands, for an error."""
        return f" in [{self.name}]" if self.name else ""

    def line(self, key: str) -> int:
        """Return the line of *key*, else of the table."""
        return self.config.line(self.name, self.occurrence, key)

    def fault(self, key: str, text: str) -> ConfigInvalidError:
        """Return the error that tells *text* of *key*."""
        return self.config.fault(self.line(key), text)

    def has(self, key: str) -> bool:
        """Whether *key* is set."""
        return key in self.values

    def only(self, known: Iterable[str]) -> None:
        """Refuse what is set and not *known*: with the nearest known key, or with all of them where none is near."""
        names = tuple(known)
        for key in self.values:
            if key not in names:
                near = _nearest(key, names) or f". Known are: {', '.join(names)}"
                raise self.fault(key, f"there is no setting {key!r}{self.title}{near}.")

    def _wrong(self, key: str, wanted: str) -> ConfigInvalidError:
        return self.fault(key, f"{key}{self.title} is {self.values[key]!r}, but must be {wanted}.")

    def table(self, key: str) -> "Table":
        """Return a table inside this one; one that is not there is empty."""
        found = self.values.get(key, {})
        if not isinstance(found, dict):
            raise self._wrong(key, f"a table: [{key}]")
        return Table(self.config, key, cast("_Toml", found))

    def tables(self, key: str) -> tuple["Table", ...]:
        """Return the rows of a list of tables."""
        found = self.values.get(key, [])
        rows = cast("list[object]", found) if isinstance(found, list) else [None]
        if not all(isinstance(row, dict) for row in rows):
            raise self._wrong(key, f"tables: [[{key}]]")
        return tuple(Table(self.config, key, cast("_Toml", row), place) for place, row in enumerate(rows))

    def text(self, key: str) -> str | None:
        """Return a text that is not blank, trimmed, or None."""
        found = self.values.get(key)
        if found is not None and not (isinstance(found, str) and found.strip()):
            raise self._wrong(key, "text in quotes")
        return found.strip() if found else None

    def choice(self, key: str, known: tuple[str, ...]) -> str | None:
        """Return one of *known*, or None."""
        found = self.text(key)
        if found is not None and found not in known:
            raise self._wrong(key, f"one of {', '.join(known)}{_nearest(found, known)}")
        return found

    def number(self, key: str, least: int, most: int) -> int:
        """Return a whole number that is set."""
        found = self.values[key]
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise self._wrong(key, f"a whole number from {least} to {most}")
        return found

    def amount(self, key: str, least: float, most: float) -> float:
        """Return a number that is set, whole or not."""
        found = self.values[key]
        if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
            raise self._wrong(key, f"a number from {least:.12g} to {most:.12g}")
        return float(found)

    def flag(self, key: str) -> bool:
        """Return whether *key* is set to true."""
        found = self.values.get(key, False)
        if not isinstance(found, bool):
            raise self._wrong(key, "true or false")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, of which none is blank."""
        found = self.values.get(key, [])
        rows = cast("list[object]", found) if isinstance(found, list) else [None]
        texts = tuple(row for row in rows if isinstance(row, str) and row.strip())
        if len(texts) != len(rows):
            raise self._wrong(key, 'a list of texts, as ["a", "b"]')
        return texts


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, tuple(known), n=1, cutoff=0.5)
    return f"; the nearest is {near[0]!r}" if near else ""


def read_config(path: Path) -> ConfigText:
    """Return the text of the file; one that is not there is empty."""
    try:
        return ConfigText(path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ConfigText(path, "")
    except UnicodeDecodeError as fault:
        raise ConfigInvalidError(f"{path}: the file is not UTF-8 text ({fault.reason}).") from fault
    except OSError as fault:
        raise ConfigInvalidError(f"{path}: the file cannot be read ({fault.strerror}).") from fault


def parse(config: ConfigText) -> Table:
    """Return the file as one table."""
    try:
        return Table(config, "", tomllib.loads(config.text))
    except tomllib.TOMLDecodeError as fault:
        place = _SYNTAX_LINE.search(str(fault))
        line = int(place[1]) if place else len(config.text.splitlines())
        raise config.fault(line, f"this is not TOML: {_SYNTAX_LINE.sub('', str(fault))}.") from fault


def is_url(text: str) -> bool:
    """Whether *text* is an address of a server."""
    try:
        parts = urlsplit(text)
        # A port that cannot be is told only when it is read.
        return re.match(r"https?://\S+$", text) is not None and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
