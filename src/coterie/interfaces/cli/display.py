"""Text for a terminal: nothing that another session or a model wrote may move the cursor or colour the screen."""

import json
from collections.abc import Mapping
from typing import Any, Final

_ALLOWED: Final = "\n\t"
_TURNS: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""What draws nothing but turns the words around it."""
_CONTROLS: Final = {code: None for code in (*range(0x20), *range(0x7F, 0xA0), *_TURNS) if chr(code) not in _ALLOWED}

UNCONFINED: Final = "unconfined: commands of sessions can reach the data directory; this machine cannot keep them out."


def plain(text: str) -> str:
    """Return *text* without control characters, those that turn its direction included; line ends and tabs stay."""
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return *text* on one line."""
    return " ".join(plain(text).split())


def shortened(text: str, chars_max: int) -> str:
    """Return the first *chars_max* characters of *text*, and a sign if there are more."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}…"


def interrupted(turns: int) -> str:
    """What the last stop of a host has done to *turns* turns."""
    told = "1 turn was" if turns == 1 else f"{turns} turns were"
    return f"{told} interrupted by the last stop; nothing of {'it' if turns == 1 else 'them'} is repeated."


def json_line(value: Mapping[str, Any], *, unicode: bool) -> str:
    """Return *value* as one line of JSON.

    Args:
        value: What to encode.
        unicode: Whether characters beyond ASCII may stand as they are.
    """
    return json.dumps(value, ensure_ascii=not unicode, separators=(", ", ": "))
