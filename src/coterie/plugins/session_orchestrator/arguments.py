"""What a model may write: each parameter once, as the schema shows it, and one way to read what was written.

A model corrects itself when it is told what would be right, so each refusal says that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError, RefusedError
from coterie.core.refusal import Refusal
from coterie.core.text import cut, nearest

Schema: TypeAlias = dict[str, Any]

IDS_MAX: Final = 16
"""Ids that one call may name."""
_ECHO_CHARS_MAX: Final = 80
"""Characters of what was written that a refusal repeats."""
_ID: Final[Schema] = {"type": "string", "maxLength": 256}
_IDS: Final[Schema] = {"type": "array", "items": _ID, "maxItems": IDS_MAX}
_CONTENT: Final[Schema] = {"type": "string", "maxLength": 65_536}

PARAMETERS: Final[dict[str, Schema]] = {
    "task": _CONTENT,
    "title": {"type": "string", "maxLength": 80},
    "model": {"type": "string", "maxLength": 512, "description": "as `models` or a person calls it"},
    "workspace": {"type": "string", "enum": ["shared", "worktree"]},
    "sessionId": _ID,
    "sessionIds": _IDS,
    "workerId": _ID | {"description": "the same as sessionId"},
    "workerIds": _IDS | {"description": "the same as sessionIds"},
    "message": _CONTENT,
    "kind": {"type": "string", "enum": ["message", "task"]},
    "deliver": {"type": "string", "enum": ["next_turn", "current_turn"]},
    "expiresAt": {"type": "string", "maxLength": 64, "format": "date-time", "description": "with time zone"},
    "notifyOnCompletion": {"type": "boolean", "description": "by default for a task only"},
    "messageId": _ID,
    "messageIds": _IDS,
    "turnId": _ID,
    "mode": {"type": "string", "enum": ["all", "any"]},
    "timeoutMs": {"type": "integer", "minimum": 0, "maximum": 604_800_000},
    "note": {"type": "string", "maxLength": 4096},
    "idempotencyKey": _ID,
    "cursor": {"type": "string", "maxLength": 4096},
    "limit": {"type": "integer", "minimum": 1, "maximum": 50},
}
"""Every parameter of the tool besides `action`, as JSON schema."""

_ALIASES: Final = {"workerId": "sessionId", "workerIds": "sessionIds"}
_TYPES: Final = {"string": str, "boolean": bool, "integer": int, "array": list}


@dataclass(frozen=True, slots=True)
class Form:
    """What one action takes."""

    takes: tuple[str, ...]
    needs: tuple[str, ...]
    refuses: Mapping[str, str]
    """Parameters that are often tried, and why they are not taken."""

    @classmethod
    def of(cls, signature: str, refuses: Mapping[str, str]) -> "Form":
        """Read a signature: names with commas between them; a question mark follows what may be left out."""
        names = tuple(name.strip() for name in signature.split(",") if name.strip())
        needs = tuple(name for name in names if not name.endswith("?"))
        return cls(tuple(name.removesuffix("?") for name in names), needs, refuses)

    def read(self, action: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments of *action* under their own names, ids once each; empty ones count as absent.

        Raises:
            InvalidArgumentError: Something is missing, unknown, contradictory or of another type.
            RefusedError: It names too many ids (`LIMIT_EXCEEDED`).
        """
        given = {name: _checked(name, value) for name, value in arguments.items() if name != "action"}
        given = _joined({name: value for name, value in given.items() if value not in ("", None, [])}, _ALIASES)
        if "sessionIds" in self.takes and "sessionId" in given:
            given = _joined(given | {"sessionId": [given["sessionId"]]}, {"sessionId": "sessionIds"})
        for name in given:
            if name not in self.takes:
                raise InvalidArgumentError(self._not_taken(action, name))
        missing = [name for name in self.needs if name not in given]
        if missing:
            raise InvalidArgumentError(f"{action} needs {', '.join(missing)}.")
        return given

    def _not_taken(self, action: str, name: str) -> str:
        if name in self.refuses:
            return f"{action} does not take {name}: {self.refuses[name]}."
        takes = ", ".join(self.takes) or "nothing"
        return f"{action} does not take {echo(name)}; it takes {takes}.{meant(name, self.takes)}"


def within(ids: list[str], name: str, limit: str, most: int) -> list[str]:
    """Return *ids* if there are not too many.

    Raises:
        RefusedError: There are (`LIMIT_EXCEEDED`).
    """
    if len(ids) > most:
        text = f"{name} names {len(ids)}; {limit} allows {most}. Make several calls."
        raise RefusedError(Refusal(Code.LIMIT_EXCEEDED, text, limit=limit, value=most))
    return ids


def echo(text: str) -> str:
    """What was written, as far as a refusal repeats it."""
    return cut(text, _ECHO_CHARS_MAX)[0]


def meant(text: str, names: tuple[str, ...]) -> str:
    """Ask whether the nearest of *names* was meant, if there is one."""
    near = nearest(echo(text), names, 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _joined(given: dict[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Return *given* with its aliases under the names that they stand for."""
    found = {name: value for name, value in given.items() if name not in aliases}
    for alias, name in aliases.items():
        if alias in given and found.setdefault(name, given[alias]) != given[alias]:
            raise InvalidArgumentError(f"{alias} and {name} mean the same and differ; give one of them.")
    return found


def _checked(name: str, value: object) -> object:
    """Return a value that is as the schema says, with each id once; texts are measured by the operations."""
    schema = PARAMETERS.get(name)
    if schema is None or value is None:
        return value
    kind = schema["type"]
    if type(value) is not _TYPES[kind]:
        raise InvalidArgumentError(f"{name} must be of type {kind}.")
    if value != "" and value not in schema.get("enum", (value,)):
        raise InvalidArgumentError(f"{name} must be one of {', '.join(schema['enum'])}.")
    if isinstance(value, list):
        return _ids(name, cast("list[object]", value))
    if isinstance(value, int) and "minimum" in schema and not schema["minimum"] <= value <= schema["maximum"]:
        raise InvalidArgumentError(f"{name} must be from {schema['minimum']} to {schema['maximum']}.")
    return value


def _ids(name: str, values: list[object]) -> list[str]:
    ids = [one for one in values if isinstance(one, str)]
    if len(ids) < len(values):
        raise InvalidArgumentError(f"{name} must have strings only.")
    return within(list(dict.fromkeys(one for one in ids if one)), name, "ids_max", IDS_MAX)
