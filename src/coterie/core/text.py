"""Text: what counts as visible, and one way to cut.

Pure module. Characters are code points everywhere; cutting never makes a lone surrogate because stored text has none.
"""

import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def flaw_of(text: str) -> str | None:
    """Name what makes *text* unfit to store (NUL, a lone surrogate), or None."""
    if "\x00" in text:
        return "the character U+0000"
    if _SURROGATE.search(text):
        return "a lone surrogate"
    return None


def mend(text: str) -> str:
    """Return *text* with what `flaw_of` names replaced by U+FFFD: for text that the world produced, not a client."""
    return _SURROGATE.sub("\ufffd", text).replace("\x00", "\ufffd")


_SELECTORS: Final = map(chr, range(0xFE00, 0xFE10))
_UNSEEN: Final = frozenset({*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *_SELECTORS})
"""Fillers, joiners and variation selectors: letters by category, but nothing to see."""


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: only white space, control, zero-width and filler characters."""
    return not any(_is_seen(char) for char in text)


def _is_seen(char: str) -> bool:
    return not char.isspace() and char not in _UNSEEN and unicodedata.category(char) not in {"Cc", "Cf", "Zs"}


def cut(text: str, chars_max: int) -> tuple[str, bool]:
    """Return the first *chars_max* code points, and whether anything was cut."""
    return (text, False) if len(text) <= chars_max else (text[:chars_max], True)


def head_and_tail(text: str, chars_max: int, where: str = "") -> tuple[str, bool]:
    """Return *text* in at most *chars_max* code points, its start and end around a line that says what is missing.

    Args:
        text: What to cut.
        chars_max: The room.
        where: Where the whole is, for that line; left away where the room is too small for it.
    """
    if len(text) <= chars_max:
        return text, False
    mark = f"\n… {len(text)} characters in all; the middle is left out{where} …\n"
    room = chars_max - len(mark)
    if room < 2:  # noqa: PLR2004 - one character at each end
        return head_and_tail(text, chars_max) if where else (text[:chars_max], True)
    tail = room // 3
    return text[: room - tail] + mark + text[len(text) - tail :], True


def nearest(text: str, names: Sequence[str], limit: int) -> tuple[str, ...]:
    """Return at most *limit* of *names* that a person who wrote *text* could have meant, best first."""
    folded = {name.casefold(): name for name in names}
    return tuple(folded[name] for name in get_close_matches(text.casefold(), list(folded), n=limit, cutoff=0.55))
