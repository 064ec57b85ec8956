"""Texts with slots: `${user.path}` is replaced by what a pattern found, `$${` stands for the two characters themselves.

Values are known only when a request is there; the names are checked when the script is loaded.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from coterie.model_server.document import Entry, JsonValue

_MARK: Final = re.compile(r"\$\$\{|\$\{(?P<json>json:)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\}|(?P<broken>\$\{)")


class FillError(Exception):
    """A slot asks for JSON, and the value found in the request is none."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for the value *name*."""

    name: str
    as_json: bool = False
    """The value is JSON text, and what it says is wanted."""

    def parsed(self, values: Mapping[str, str]) -> JsonValue:
        """Return what the JSON text says."""
        try:
            return json.loads(values[self.name])
        except ValueError as error:
            raise FillError(f"${{json:{self.name}}} found {values[self.name]!r}, which is not JSON") from error

    def text(self, values: Mapping[str, str]) -> str:
        """Return what stands for the slot inside of a text."""
        if not self.as_json:
            return values[self.name]
        value = self.parsed(values)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Template:
    """A text with slots."""

    parts: tuple[str | Slot, ...] = ()

    def names(self) -> Iterator[str]:
        """The values it needs."""
        return (part.name for part in self.parts if isinstance(part, Slot))

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with its slots filled."""
        return "".join(part if isinstance(part, str) else part.text(values) for part in self.parts)

    def fill_leaf(self, values: Mapping[str, str]) -> JsonValue:
        """Return the value for a leaf of JSON: a text, unless the template is one `${json:…}` alone."""
        match self.parts:
            case (Slot(as_json=True) as slot,):
                return slot.parsed(values)
            case _:
                return self.fill(values)


Shape: TypeAlias = "Template | dict[str, Shape] | list[Shape] | int | float | bool | None"
"""JSON whose texts are templates."""


def read_template(entry: Entry) -> Template:
    """Return the text of *entry* as a template."""
    return _template(entry.text(), entry)


def read_shape(entry: Entry) -> Shape:
    """Return the value of *entry*, its texts as templates; keys are taken as written."""
    return _shape(entry.value(), entry)


def shape_names(shape: Shape) -> Iterator[str]:
    """The values that *shape* needs."""
    match shape:
        case Template():
            yield from shape.names()
        case dict():
            for member in shape.values():
                yield from shape_names(member)
        case list():
            for member in shape:
                yield from shape_names(member)
        case _:
            pass


def fill_shape(shape: Shape, values: Mapping[str, str]) -> JsonValue:
    """Return *shape* as JSON."""
    match shape:
        case Template():
            return shape.fill_leaf(values)
        case dict():
            return {key: fill_shape(member, values) for key, member in shape.items()}
        case list():
            return [fill_shape(member, values) for member in shape]
        case _:
            return shape


def _shape(value: JsonValue, entry: Entry) -> Shape:
    match value:
        case str():
            return _template(value, entry)
        case dict():
            return {key: _shape(member, entry) for key, member in value.items()}
        case list():
            return [_shape(member, entry) for member in value]
        case _:
            return value


def _template(text: str, entry: Entry) -> Template:
    parts: list[str | Slot] = []
    end = 0
    for mark in _MARK.finditer(text):
        parts.append(text[end : mark.start()])
        end = mark.end()
        if mark["broken"]:
            raise entry.error("`${` must be followed by a name and `}`; write `$${` for the characters themselves")
        parts.append(Slot(mark["name"], as_json=bool(mark["json"])) if mark["name"] else "${")
    parts.append(text[end:])
    return Template(tuple(part for part in parts if part != ""))
