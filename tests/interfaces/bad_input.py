"""Bad and odd requests, made from the catalogue: each parameter of each operation in every way to get it wrong.

Nothing here names an operation, so a new one is tried from its first day. Only a new text parameter needs an example
that is good, in `GOOD`.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, urlencode

from pydantic import TypeAdapter

from coterie.core.codes import Code
from coterie.core.limits import Limits
from coterie.core.session.session import TITLE_CHARS_MAX
from coterie.operations.catalogue import Operation

Codes: TypeAlias = frozenset[Code]
Given: TypeAlias = tuple[tuple[str, Any], ...]
"""Parameters in order; a name may stand twice."""
Names: TypeAlias = Mapping[str, str]
"""What the `$` names of `GOOD` stand for."""

REFUSED: Final[Codes] = frozenset({Code.INVALID_ARGUMENT})
NOWHERE: Final[Codes] = frozenset({Code.NOT_FOUND})
TOO_LONG: Final[Codes] = frozenset({Code.LIMIT_EXCEEDED, Code.INVALID_ARGUMENT})
TAKEN: Final[Codes] = frozenset()
"""It must not be refused."""


class Raw(str):
    """A JSON text that is sent as it stands."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Good:
    """What a text parameter may be."""

    values: tuple[Any, ...]
    """Where one does not fit an operation, the next one may."""
    chars_max: int | None = None
    stored: bool = False
    """Other operations show it as it was given."""
    cut: bool = False
    """What is longer may be stored up to `chars_max`."""


_LIMITS: Final = Limits()
GOOD: Final[dict[str, Good]] = {
    "answer": Good(("The new one.",), _LIMITS.content_chars_max),
    "asSessionId": Good(("$a",)),
    "chainId": Good(("$chain",)),
    "comment": Good(("Good.",), 4_096),
    "content": Good(("Work.",), _LIMITS.content_chars_max, stored=True),
    "cursor": Good(("0-0", "0", "$cursor")),
    "expiresAt": Good(("2999-01-01T00:00:00Z",)),
    "grantId": Good(("$g",)),
    "idempotencyKey": Good(("key",), _LIMITS.idempotency_key_chars_max),
    "inputId": Good(("$i", "$j")),
    "messageId": Good(("$m", "$d")),
    "messageIds": Good((["$d"],)),
    "model": Good(("local/one",)),
    "name": Good(("one",)),
    "note": Good(("Good.",), 4_096, stored=True),
    "projectPath": Good(("$folder",)),
    "requestId": Good(("$r", "$q")),
    "sessionId": Good(("$c", "$b", "$a", "$w")),
    "text": Good(("Good day.",), _LIMITS.content_chars_max, stored=True),
    "title": Good(("new",), TITLE_CHARS_MAX, stored=True, cut=True),
    "turnId": Good(("$t",)),
}
"""The text parameters by their wire names. Numbers, choices and flags need none: their schema says what is good."""

ALWAYS: Final = ("timeoutMs", "idempotencyKey")
"""Stand in every request that may have them: none sleeps, and each has written its key before a rule refuses it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the schema says of one parameter."""

    name: str
    kinds: frozenset[str]
    """The JSON types that are taken."""
    choices: tuple[Any, ...]
    required: bool
    least: int | None
    most: int | None
    items_max: int | None

    @property
    def is_text(self) -> bool:
        """Whether any text may be given."""
        return "string" in self.kinds and not self.choices

    @property
    def good_by_schema(self) -> tuple[Any, ...]:
        """Values that fit as far as the schema tells; none where any text may be given."""
        if self.choices:
            return self.choices
        if "boolean" in self.kinds:
            return (True,)
        return (self.least or 0,) if {"integer", "number"} & self.kinds else ()

    @property
    def example(self) -> Good:
        """What is good where any text may be given."""
        return GOOD.get(self.name, Good((["good"] if "array" in self.kinds else "good",)))

    def good(self, names: Names) -> tuple[Any, ...]:
        """Values that fit, best first."""
        return self.good_by_schema or tuple(filled(value, names) for value in self.example.values)


@dataclass(frozen=True, slots=True)
class Odd:
    """One request to try."""

    label: str
    given: Given
    codes: Codes | None
    """What it may be refused with; None leaves open whether and with what."""
    good: Mapping[str, Any]
    """The request that it was made from."""
    kept: str | None = None
    """What has to be stored if it is taken."""


def filled(value: Any, names: Names) -> Any:
    """Put the world's ids in the place of `$` names."""
    if isinstance(value, list):
        return [filled(one, names) for one in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


@cache
def shapes(operation: Operation) -> dict[str, Shape]:
    """The parameters of an operation by their wire names."""
    schema = TypeAdapter(operation.params).json_schema(by_alias=True)
    wanted, definitions = schema.get("required", []), schema.get("$defs", {})
    members: dict[str, Any] = schema.get("properties", {})
    return {name: _shape(name, _branches(one, definitions), required=name in wanted) for name, one in members.items()}


def _branches(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in schema:
        return _branches(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    several = schema.get("anyOf") or schema.get("oneOf")
    return [branch for one in several for branch in _branches(one, definitions)] if several else [schema]


def _shape(name: str, branches: Iterable[Mapping[str, Any]], *, required: bool) -> Shape:
    found: dict[str, Any] = {}
    for branch in branches:
        found |= branch
    most = found.get("maximum", found["exclusiveMaximum"] - 1 if "exclusiveMaximum" in found else None)
    choices = (found["const"],) if "const" in found else tuple(found.get("enum", ()))
    kinds = frozenset(branch["type"] for branch in branches)
    return Shape(name, kinds, choices, required, least=found.get("minimum"), most=most, items_max=found.get("maxItems"))


def requests_with(operation: Operation, name: str | None, names: Names) -> Iterator[dict[str, Any]]:
    """Yield requests that could succeed and have the parameter *name*, the smallest first."""
    known = shapes(operation)
    least = [one for one in known if known[one].required or one in (name, *ALWAYS)]
    others = [one for one in known if one not in least]
    for chosen in (least, *([*least, one] for one in others), [*least, *others]):
        fitting = product(*(known[one].good(names) for one in chosen))
        yield from (dict(zip(chosen, values, strict=True)) for values in islice(fitting, _TRIES_MAX))


_TRIES_MAX: Final = 12


def shape_faults(operation: Operation, good: Mapping[str, Any]) -> Iterator[Odd]:
    """Requests that lack a parameter, name an unknown one, name one twice, or cannot be read."""
    known = shapes(operation)
    given = tuple(good.items())
    for name in known:
        if known[name].required:
            rest = tuple(pair for pair in given if pair[0] != name)
            yield Odd(f"{name} is missing", rest, REFUSED, good)
    first = next(iter(known), "nonsense")
    for value in _NO_JSON:
        yield Odd(f"the JSON {str(value)[:20]!r}", tuple({**good, first: value}.items()), REFUSED, good)
    for name in ("nonsense", "", "__proto__", "a\x00b", "\u202e", "x" * 100_000, "\ud800", *_misspelt(known)):
        yield Odd(f"the unknown {name[:20]!r}", (*given, (name, "x")), REFUSED, good)
    for name in good:
        yield Odd(f"{name} twice", (*given, (name, good[name])), REFUSED, good)
        yield Odd(f"{name} twice, differently", ((name, None), *given), REFUSED, good)


_NO_JSON: Final = (
    math.nan,
    -math.inf,
    Raw("1e999"),
    Raw("01"),
    Raw("tru"),
    Raw('"\\x"'),
    Raw('"\n"'),
    Raw('{"a":1,"a":1}'),
    Raw("[" * 100_000 + "]" * 100_000),
)
"""What no parameter can be, for it cannot be read, or can be read in two ways."""


def _misspelt(known: Iterable[str]) -> Iterator[str]:
    for name in known:
        other = {re.sub(r"(?=[A-Z])", "_", name).lower(), name.upper(), f" {name}"} - {name}
        yield from sorted(other)


def value_faults(shape: Shape, good: Mapping[str, Any], names: Names, *, sure: bool) -> Iterator[Odd]:
    """Requests in which one parameter is not what it should be, or is odd.

    Args:
        shape: The parameter.
        good: A request that has it.
        names: What the world has.
        sure: *good* succeeds, so that a refusal can only come of the odd value.
    """
    for value, label, codes, kept in (*_of_wrong_kind(shape), *_of_right_kind(shape, good, names)):
        given = tuple({**good, shape.name: value}.items())
        # What cannot be decoded is refused wherever it stands; what a rule says depends on the rules before it.
        certain = codes if sure or label in DECODED else None
        yield Odd(f"{shape.name}: {label}", given, certain, good, kept)


_Value: TypeAlias = tuple[Any, str, Codes | None, str | None]

_ANY: Final[tuple[tuple[Any, str], ...]] = (
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (7, "a number"),
    (-7, "a negative number"),
    (1.5, "a fraction"),
    (-0.0, "minus zero"),
    (1e300, "a huge fraction"),
    (2**63 - 1, "the largest integer"),
    ("seven", "a text"),
    ("7", "a number as text"),
    ("true", "a truth as text"),
    ([], "an empty array"),
    (["x"], "an array"),
    ([None], "an array of null"),
    ({}, "an empty object"),
    ({"a": 1}, "an object"),
)
_NEVER: Final[tuple[tuple[Any, str], ...]] = (
    (2**63, "an integer beyond 64 bits"),
    (-(10**400), "an endless integer"),
    ("\ud800", "a lone surrogate"),
    ("a\udfffb", "a lone low surrogate"),
    ("\udc00\ud800", "surrogates in the wrong order"),
)
DECODED: Final = frozenset(label for _, label in (*_ANY, *_NEVER)) | {"a wrong item", "too many items", "no choice"}
"""What is refused before any rule is asked."""


_KINDS: Final[dict[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _kind_of(value: object) -> str:
    return _KINDS.get(type(value), "null")


def _fits(value: object, kinds: frozenset[str]) -> bool:
    kind = _kind_of(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _of_wrong_kind(shape: Shape) -> Iterator[_Value]:
    yield from ((value, label, REFUSED, None) for value, label in _NEVER)
    for value, label in _ANY:
        if not _fits(value, shape.kinds):
            yield value, label, REFUSED, None


def _of_right_kind(shape: Shape, good: Mapping[str, Any], names: Names) -> Iterator[_Value]:
    if shape.choices:
        first = str(shape.choices[0])
        for value in ("", "nonsense", first.upper(), f"{first} ", f"{first}\x00", f"{first}\u200b", "x" * 100_000):
            yield value, "no choice", REFUSED, None
    elif "integer" in shape.kinds:
        yield from _integers(shape)
    elif "array" in shape.kinds:
        yield from _arrays(shape, good[shape.name], names)
    elif shape.is_text:
        yield from _texts(shape.example, good[shape.name], names)


def _integers(shape: Shape) -> Iterator[_Value]:
    for value in (0, 1, 2**31, 2**53 - 1, 2**53, 2**63 - 1, -1, -(2**63) + 1, shape.least, shape.most):
        if value is not None:
            inside = (shape.least is None or value >= shape.least) and (shape.most is None or value <= shape.most)
            yield value, f"the integer {value}", None if inside else REFUSED, None
    for beyond in (None if shape.least is None else shape.least - 1, None if shape.most is None else shape.most + 1):
        if beyond is not None:
            yield beyond, "just beyond the bound", REFUSED, None


def _arrays(shape: Shape, good: list[Any], names: Names) -> Iterator[_Value]:
    for value, _ in _ANY:
        if _kind_of(value) != "string":
            yield [*good, value], "a wrong item", REFUSED, None
    yield [*good, "\ud800"], "a wrong item", REFUSED, None
    yield [*good, *good], "an item twice", None, None
    if shape.items_max is not None:
        for count in (shape.items_max + 1, 100_000):
            yield [good[0]] * count, "too many items", REFUSED, None
    for value, label, codes, _ in _texts(Good(tuple(good)), good[0], names):
        yield [*good, value], f"an item that is {label}", codes, None


FINE: Final[dict[str, str]] = {
    "right-to-left marks": "\u202eabc\u200f\u2067x\u2069",
    "zero-width characters": "a\u200bb\u200d\ufeffc\u2060d",
    "characters of four bytes": "😀\U0001d4b3",
    "many combining marks": "e" + "\u0301" * 60,
    "controls": "a\x1b[2Jb\x07\x08\x7fc",
    "quotes and wild cards": "'\";--%s{0}\\$(x)`*_%",
    "a path": "../a/b?c#d%00",
    "no characters": "\ufffe\uffff\U0010ffff",
    "words of programs": "null",
}
"""Texts that look odd and are texts."""
DATES: Final = (
    "2999-02-30T00:00:00Z",
    "2999-01-01",
    "2999-01-01T00:00:00",
    "32503680000",
    "1970-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
)
"""Times that are none, or at the ends of time."""
EMPTY: Final[dict[str, str]] = {
    "empty": "",
    "blank": " ",
    "white space": "\t\r\n\u2028",
    "nothing to see": "\u200b\u2060\u3164",
}
NULS: Final[dict[str, str]] = {"NUL inside": "a\x00b", "NUL alone": "\x00"}
MEGABYTE: Final = 2**20
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT.*Z")
_ID: Final = re.compile(r"([a-z]{3,4})_[0-9a-z]+")


def is_id(value: object) -> bool:
    """Whether it has the form of an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def alike(one: str, other: object) -> bool:
    """Whether both are ids of one kind."""
    return is_id(one) and is_id(other) and one.partition("_")[0] == str(other).partition("_")[0]


def _texts(known: Good, good: str, names: Names) -> Iterator[_Value]:
    """Odd texts: an id that names nothing is not found whatever it looks like, what is stored must be fit for it."""
    named = is_id(good)
    for label, text in FINE.items():
        yield text, label, NOWHERE if named else TAKEN if known.stored else None, text if known.stored else None
    for label, text in EMPTY.items():
        yield text, label, NOWHERE if named else None, None
    for label, text in NULS.items():
        yield text, label, NOWHERE if named else REFUSED if known.stored else None, None
    yield "x" * MEGABYTE, "a megabyte", NOWHERE if named else None, None
    yield "😀" * (MEGABYTE // 4), "a megabyte of emoji", NOWHERE if named else None, None
    if named:
        yield from _ids(good, names)
    if _TIME.fullmatch(good):
        yield from ((text, f"the time {text}", None, None) for text in DATES)
    if known.chars_max is not None:
        yield from _lengths(known, known.chars_max)


def _ids(good: str, names: Names) -> Iterator[_Value]:
    kind = good.partition("_")[0]
    for text in (f"{kind}_", f"{kind}_{'0' * 32}", good.upper(), f"{good} ", f"{good}\n", good[:-1], f"{good}0"):
        yield text, f"the id {text!r}", NOWHERE, None
    for name, other in names.items():
        if is_id(other):
            # One of the right kind may still be another's; whether that is refused is the operation's to say.
            yield other, f"the id of {name}", None if alike(other, good) else NOWHERE, None


def _lengths(known: Good, chars_max: int) -> Iterator[_Value]:
    for char in "x😀":
        whole = char * chars_max
        # What is cut is cut between characters, and neither inside of one nor elsewhere.
        kept = whole if known.stored else None
        yield whole, f"as long as may be, of {char!r}", TAKEN, kept
        codes = None if known.cut else TOO_LONG
        yield whole + char, f"one too long, of {char!r}", codes, kept


def posted(given: Given) -> str:
    """The parameters as a JSON object."""
    members = (f"{json.dumps(name)}:{value if isinstance(value, Raw) else json.dumps(value)}" for name, value in given)
    return "{" + ",".join(members) + "}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request over REST."""

    url: str
    body: bytes | None


URL_CHARS_MAX: Final = 8_000
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_PATH_NAME: Final = re.compile(r"\{(\w+)\}")


def over_rest(operation: Operation, odd: Odd) -> Asked | None:
    """The request as its route takes it; None where a URL cannot carry it."""
    rest, path = list(odd.given), dict[str, str]()
    for name in _PATH_NAME.findall(operation.path):
        found = [value for given, value in odd.given if given == name]
        if not found:
            return None
        if _in_url(found[0]) and (len(found) == 1 or operation.verb == "GET"):
            rest.remove((name, found[0]))
            path[name] = found[0]
        elif operation.verb == "GET" or any(isinstance(value, str) and len(value) > URL_CHARS_MAX for value in found):
            return None
        else:
            # A route needs an id; the body may say something else beside it.
            path[name] = odd.good[name]
    url = _PATH_NAME.sub(lambda match: quote(path[match[1]], safe=""), operation.path)
    if operation.verb == "POST":
        return Asked(url, posted(tuple(rest)).encode())
    query = _query(shapes(operation), rest)
    return None if query is None else Asked(f"{url}?{query}", None)


def _in_url(value: Any) -> bool:
    return type(value) is str and len(value) <= URL_CHARS_MAX and not _SURROGATES.search(value)


def _query(known: Mapping[str, Shape], given: Iterable[tuple[str, Any]]) -> str | None:
    """A query; None where it would say something else, for there everything is text."""
    pairs = list[tuple[str, str]]()
    for name, value in given:
        kinds = known[name].kinds if name in known else {"string"}
        if _kind_of(value) in {"integer", "boolean"} & kinds:
            pairs.append((name, json.dumps(value)))
        elif _in_url(value) and _in_url(name) and ("string" in kinds or value not in {"7", "true", "false"}):
            pairs.append((name, value))
        else:
            return None
    query = urlencode(pairs)
    return query if len(query) <= URL_CHARS_MAX else None
