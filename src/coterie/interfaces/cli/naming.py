"""What a person calls a session: its id, the beginning or the end of it, or its title; other things have ids only."""

import re
from collections.abc import Sequence
from typing import Final

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.failure import AmbiguousNameError

PART_CHARS_MIN: Final = 4
"""Shorter parts of an id are taken for titles only."""
PART_HELP: Final = "at least four characters of its beginning or end (ids begin with the time; ends tell them apart)"
_PAGE: Final = 100
_WHOLE_ID: Final = re.compile(r"ses_[0-9a-f]{32}")
_WHOLE_MESSAGE_ID: Final = re.compile(r"msg_[0-9a-f]{32}")


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
        raise AmbiguousNameError(name, [f"{one['id']} ({one['title']})" for one in found])
    return str(found[0]["id"]) if found else name


def whole_message_id(name: str) -> str:
    """Return *name*, which has to be the whole id of a message, for there is no list to look a part up in.

    Raises:
        InvalidArgumentError: It is something else.
    """
    if not _WHOLE_MESSAGE_ID.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} is not the whole id of a message, which is needed here; "
            "the receipt has it, and `coterie status SESSION` for the newest ones."
        )
    return name


def message_id_of(dial: Dial, name: str, session_id: str) -> str:
    """Return the id of the message that *name* means, if in part then one of the newest of the session.

    Raises:
        AmbiguousNameError: It means several.
        InvalidArgumentError: It means none of them, and is not the whole id of another one.
    """
    if _WHOLE_MESSAGE_ID.fullmatch(name):
        return name
    newest = dial.call("collaboration.status", {"sessionId": session_id})["recentExchanges"]
    return whole_message_id(one_of(name, [one["messageId"] for one in newest], "messages"))


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
        raise AmbiguousNameError(name, found, noun)
    return found[0] if found else name


def _is_part(name: str, id_: str) -> bool:
    prefix, _, digits = id_.partition("_")
    if len(name.removeprefix(f"{prefix}_")) < PART_CHARS_MIN:
        return False
    return id_.startswith(name) or digits.startswith(name) or id_.endswith(name)
