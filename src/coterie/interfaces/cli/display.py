"""Text for a terminal: nothing that another session or a model wrote may move the cursor or colour the screen."""

import json
from collections.abc import Mapping
from typing import Any, Final

_ALLOWED: Final = "\n\t"
_CONTROLS: Final = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in _ALLOWED}


def plain(text: str) -> str:
    """Return *text* without control characters; line ends and tabs stay."""
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """Return *text* on one line."""
    return " ".join(plain(text).split())


def json_line(value: Mapping[str, Any], *, unicode: bool) -> str:
    """Return *value* as one line of JSON.

    Args:
        value: What to encode.
        unicode: Whether characters beyond ASCII may stand as they are.
    """
    return json.dumps(value, ensure_ascii=not unicode, separators=(", ", ": "))
