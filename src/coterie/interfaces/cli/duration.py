"""How long, as a person writes it: `30m`, `1h30m`, `2d`."""

import re
from datetime import datetime, timedelta
from typing import Final

from coterie.core.errors import InvalidArgumentError

DAYS_MAX: Final = 365
"""The longest duration: as long as a host lets a grant last."""
_DAY_S: Final = 86_400
_PARTS: Final = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_UNITS_S: Final = (_DAY_S, 3_600, 60, 1)
_SHOWN_CHARS_MAX: Final = 40


def seconds_of(text: str) -> int:
    """Return the seconds of a duration: days, hours, minutes and seconds, in this order, at least one of them.

    Raises:
        InvalidArgumentError: It is none, nothing, or too long.
    """
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        raise InvalidArgumentError(f"{_shown(text)} is no duration; write it like 30m, 1h30m or 2d.")
    seconds = sum(int(number or 0) * unit_s for number, unit_s in zip(found.groups(), _UNITS_S, strict=True))
    if not 0 < seconds <= DAYS_MAX * _DAY_S:
        raise InvalidArgumentError(f"{_shown(text)} is out of range; a duration is between 1s and {DAYS_MAX}d.")
    return seconds


def end_of(text: str, now: str) -> str:
    """Return when something ends, in ISO 8601 with its zone.

    Args:
        text: A duration, or a time in ISO 8601; one without a zone is in the zone of this machine.
        now: When a duration begins, in ISO 8601 with its zone.

    Raises:
        InvalidArgumentError: It is neither.
    """
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        pass
    return (datetime.fromisoformat(now) + timedelta(seconds=seconds_of(text))).isoformat()


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…")
