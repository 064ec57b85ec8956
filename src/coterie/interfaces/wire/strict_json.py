"""JSON as the doors take and give it: what two parsers could read in two ways is refused."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import msgspec

from coterie.core.errors import InvalidArgumentError
from coterie.operations.views import View

_INTEGER_MAX: Final = 2**63 - 1
_INTEGER_DIGITS_MAX: Final = 19
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _RefusedJsonError(ValueError):
    """JSON by its grammar, but not for us."""


def decode(body: bytes) -> Any:
    """Read a JSON text in UTF-8.

    Raises:
        InvalidArgumentError: It is none, names a member twice, or has a number or text that cannot be stored.
    """
    try:
        found = json.loads(
            body.decode(),
            object_pairs_hook=_members,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
        # Only an escape can make a lone surrogate, so most texts need no second look.
        if _SURROGATE_ESCAPE.search(body):
            _no_lone_surrogate(found)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"The body is not UTF-8 at byte {error.start}.") from None
    except json.JSONDecodeError as error:
        text = f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise InvalidArgumentError(text) from None
    except RecursionError:
        raise InvalidArgumentError("The body is nested too deeply.") from None
    except _RefusedJsonError as error:
        raise InvalidArgumentError(f"The body cannot be taken: {error}.") from None
    return found


def encode(value: Any) -> bytes:
    """Write JSON values."""
    return msgspec.json.encode(value)


def encode_view(view: View) -> bytes:
    """Write an answer: the same as `view.wire()`, without the detour."""
    return view.model_dump_json(exclude_none=True).encode()


_NAME_CHARS_MAX: Final = 80


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice, _ = counts.most_common(1)[0]
        raise _RefusedJsonError(f"it names {twice[:_NAME_CHARS_MAX]!r} twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise _RefusedJsonError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _RefusedJsonError("a number is too large")
    return value


def _bounded(text: str) -> int:
    # The length first: reading a very long integer is slow.
    if len(text.lstrip("-")) > _INTEGER_DIGITS_MAX or abs(int(text)) > _INTEGER_MAX:
        raise _RefusedJsonError("an integer is too large")
    return int(text)


def _no_lone_surrogate(value: Any) -> None:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                if _SURROGATE.search(text):
                    raise _RefusedJsonError("a text has a lone surrogate")
            case dict() as members:  # pyright: ignore[reportUnknownVariableType]  # decoded JSON is of any kind
                waiting += [*members, *members.values()]
            case list() as elements:  # pyright: ignore[reportUnknownVariableType]  # decoded JSON is of any kind
                waiting += elements
            case _:
                pass
