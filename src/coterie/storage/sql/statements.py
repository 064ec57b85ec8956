"""Loads the SQL texts, and fills in what the state tables and the column lists say.

A file is a row of `-- name: …` statements. `-- name: X for message` makes one statement for each event of the message
table, called `X.Event`, with `{sources}` and `{target}` filled in, so the guard of a move is the table itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, Final, cast

from coterie.core.ledger.states import MESSAGE_TABLE
from coterie.core.turn.states import TURN_TABLE

COLUMNS: Final = {
    "sessions": (
        "id title project_path model permission_mode held streak ready revision created_at updated_at inbound "
        "current_turn thinking worktree"
    ),
    "chains": "id messages sessions created_at cost tokens grants",
    "permission_requests": "id source_session_id target_session_id created_at",
    "call_requests": (
        "id session_id turn_id call_id tool risk subject shown mode clamped_by created_at answer note choices"
    ),
    "call_grants": "id session_id tool subject created_at",
    "grants": "id source_session_id target_session_id created_at expires_at",
    "messages": (
        "id chain_id source_session_id source_title target_session_id target_title kind content state notify hops "
        "ceiling created_at updated_at turn_id joined source_turn_id via reply_to result truncated error "
        "retry_of expires_at"
    ),
    "inputs": "id session_id kind chain_id created_at text message_id promoted waiting turn_id",
    "turns": (
        "id session_id input_id kind message_id state host_id epoch permission chain_id hops fenced created_at "
        "ended_at result truncated error_code error input_tokens output_tokens cost news more_chains"
    ),
}
"""The columns of each table in the order of its dataclass."""

_PACKAGE: Final = "coterie.storage.sql"
_TABLES: Final = {"message": MESSAGE_TABLE, "turn": TURN_TABLE}
_NAME: Final = re.compile(r"^-- name: (.+)$", re.MULTILINE)
_PARAMETER: Final = re.compile(r"(?<!:):(\w+)\b(?!\.\.\.)")
_COLUMN_LIST: Final = re.compile(r"\{(?:(\w)\.)?(\w+)\}")


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


def load(*names: str, package: str = _PACKAGE) -> dict[str, str]:
    """Return the statements of the files *names* in *package* by their name."""
    found: dict[str, str] = {}
    for file in names:
        text = (files(package) / f"{file}.sql").read_text(encoding="utf-8")
        for name, body in _named(text):
            for full_name, sql in _moves(name, body):
                assert full_name not in found, f"two statements are called {full_name}"
                found[full_name] = _COLUMN_LIST.sub(_columns, sql)
    return found


def numbered(sql: str) -> tuple[str, Callable[[Mapping[str, object]], tuple[object, ...]]]:
    """Number the parameters of *sql*; returns the text, and what puts named values into the order of their numbers.

    A driver binds numbered values without asking the database for the name of each.
    """
    names = list(dict.fromkeys(_PARAMETER.findall(sql)))
    text = _PARAMETER.sub(lambda match: f"?{names.index(match[1]) + 1}", sql)
    if len(names) > 1:
        return text, itemgetter(*names)
    return text, lambda params: tuple(params.values())


def spread(sql: str, params: Mapping[str, object]) -> tuple[str, Sequence[object] | Mapping[str, object]]:
    """Write out a list of ids `(:ids...)`, padded to a power of two so that few texts serve all lengths, or of rows.

    A list that stands alone becomes question marks, which are bound faster than names.
    """
    (name,) = (name for name, value in params.items() if isinstance(value, list))
    listed = cast("list[Any]", params[name])
    if isinstance(listed[0], tuple):
        width, cells = len(cast("tuple[object, ...]", listed[0])), [cell for row in listed for cell in row]
    else:
        width, cells = 0, listed + [listed[-1]] * ((1 << (len(listed) - 1).bit_length()) - len(listed))
    if len(params) == 1:
        return _written_out(sql, name, len(cells), width, named=False), cells
    named = {key: given for key, given in params.items() if key != name}
    named |= {f"{name}_{number}": cell for number, cell in enumerate(cells)}
    return _written_out(sql, name, len(cells), width, named=True), named


@lru_cache(maxsize=256)
def _written_out(sql: str, name: str, cells: int, width: int, *, named: bool) -> str:
    marks = [f":{name}_{number}" if named else "?" for number in range(cells)]
    rows = [f"({', '.join(marks[at : at + width])})" for at in range(0, cells, width)] if width else []
    return sql.replace(f"(:{name}...)", ", ".join(rows) if width else f"({', '.join(marks)})")


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
