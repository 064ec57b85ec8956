"""Loads the SQL texts, and fills in what the state tables and the column lists say.

A file is a row of `-- name: …` statements. `-- name: X for message` makes one statement for each event of the message
table, called `X.Event`, with `{sources}` and `{target}` filled in, so the guard of a move is the table itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final, cast

from coterie.core.ledger.states import MESSAGE_TABLE
from coterie.core.turn.states import TURN_TABLE

COLUMNS: Final = {
    "sessions": "id title project_path model permission_mode held streak ready revision created_at updated_at",
    "messages": (
        "id chain_id source_session_id source_title target_session_id target_title kind content state notify hops "
        "ceiling created_at updated_at turn_id source_turn_id via reply_to result truncated error"
    ),
    "inputs": "id session_id kind chain_id created_at text message_id rank",
    "turns": (
        "id session_id input_id kind message_id state host_id epoch permission chain_id hops fenced created_at "
        "ended_at result truncated error_code error input_tokens output_tokens"
    ),
}
"""The columns of each table in the order of its dataclass."""

_PACKAGE: Final = "coterie.storage.sql"
_TABLES: Final = {"message": MESSAGE_TABLE, "turn": TURN_TABLE}
_NAME: Final = re.compile(r"^-- name: (.+)$", re.MULTILINE)
_COLUMN_LIST: Final = re.compile(r"\{(?:(\w)\.)?(\w+)\}")
_ID_LIST: Final = re.compile(r"\(:(\w+)\.\.\.\)")


def _columns(match: re.Match[str]) -> str:
    alias, table = match.groups()
    return ", ".join(f"{alias}.{name}" if alias else name for name in COLUMNS[table].split())


def _named(text: str) -> Iterator[tuple[str, str]]:
    parts = _NAME.split(text)[1:]
    yield from ((name.strip(), body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True))


def _moves(name: str, body: str) -> Iterator[tuple[str, str]]:
    verb, _, noun = name.partition(" for ")
    if noun not in _TABLES:
        yield name, body
        return
    table = _TABLES[noun]
    for event in table.events:
        sources = ", ".join(f"'{state}'" for state in table.sources(event))
        filled = body.replace("{sources}", sources).replace("{target}", f"'{table.target(event)}'")
        yield f"{verb}.{event.__name__}", filled


def load(*names: str) -> dict[str, str]:
    """Return the statements of the files *names* by their name."""
    found: dict[str, str] = {}
    for file in names:
        text = (files(_PACKAGE) / f"{file}.sql").read_text(encoding="utf-8")
        for name, body in _named(text):
            for full_name, sql in _moves(name, body):
                assert full_name not in found, f"two statements are called {full_name}"
                found[full_name] = _COLUMN_LIST.sub(_columns, sql)
    return found


def _rows(name: str, rows: list[tuple[object, ...]], filled: dict[str, object]) -> str:
    filled.update({f"{name}_{r}_{c}": value for r, row in enumerate(rows) for c, value in enumerate(row)})
    return ", ".join("(" + ", ".join(f":{name}_{r}_{c}" for c in range(len(row))) + ")" for r, row in enumerate(rows))


def spread(sql: str, params: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Write out lists: ids `(:ids...)`, padded to a power of two so that few texts serve all lengths, and rows."""
    filled = dict(params)

    def one(match: re.Match[str]) -> str:
        name = match[1]
        values = list(cast("Sequence[object]", filled.pop(name)))
        if isinstance(values[0], tuple):
            return _rows(name, cast("list[tuple[object, ...]]", values), filled)
        values += [values[-1]] * ((1 << (len(values) - 1).bit_length()) - len(values))
        filled.update({f"{name}_{number}": value for number, value in enumerate(values)})
        return "(" + ", ".join(f":{name}_{number}" for number in range(len(values))) + ")"

    return _ID_LIST.sub(one, sql), filled


def migrations(tokens: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
    """The numbered migrations with the database's own spellings filled in."""
    found: list[tuple[int, str]] = []
    for file in sorted((files(_PACKAGE) / "migrations").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            text = file.read_text(encoding="utf-8")
            for token, spelling in tokens.items():
                text = text.replace("{" + token + "}", spelling)
            found.append((int(file.name.split("_")[0]), text))
    return tuple(found)
