"""What a person calls a session: its id, the beginning or the end of it, or its title; other things have ids only."""

import re
from collections.abc import Sequence
from typing import Final

from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.failure import AmbiguousNameError

PART_CHARS_MIN: Final = 4
"""Shorter parts of an id are taken for titles only."""
SHOWN_MAX: Final = 8
_PAGE: Final = 100
_WHOLE_ID: Final = re.compile(r"ses_[0-9a-f]{32}")


def session_id_of(dial: Dial, name: str) -> str:
    """Return the id of the session that *name* means; what means none is passed on, for the host knows near names.

    A title comes before a part of an id, so that no new session can take a title's name away.

    Raises:
        AmbiguousNameError: It means several.
    """
    if _WHOLE_ID.fullmatch(name):
        return name
    titled, parts = list[Answer](), list[Answer]()
    for session in dial.pages("session.list", "sessions", {"limit": _PAGE}):
        if session["id"] == name:
            return name
        if session["title"] == name:
            titled.append(session)
        elif _is_part(name, session["id"]):
            parts.append(session)
    found = titled or parts
    if len(found) > 1:
        raise AmbiguousNameError(name, tuple(f"{one['id']} ({one['title']})" for one in found[:SHOWN_MAX]))
    return str(found[0]["id"]) if found else name


def one_of(name: str, ids: Sequence[str], noun: str) -> str:
    """Return the one of *ids* that *name* is, begins or ends; what names none is passed on, for the host to refuse.

    Args:
        name: What the person typed.
        ids: What there is.
        noun: What they are, in the plural.

    Raises:
        AmbiguousNameError: It means several.
    """
    found = [name] if name in ids else [id_ for id_ in ids if _is_part(name, id_)]
    if len(found) > 1:
        raise AmbiguousNameError(name, tuple(found[:SHOWN_MAX]), noun)
    return found[0] if found else name


def _is_part(name: str, id_: str) -> bool:
    prefix, _, digits = id_.partition("_")
    if len(name.removeprefix(f"{prefix}_")) < PART_CHARS_MIN:
        return False
    return id_.startswith(name) or digits.startswith(name) or id_.endswith(name)
