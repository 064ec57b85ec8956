"""How turns and messages ended, in words."""

import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, cast

from coterie.core.codes import Code
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.failure import AnswerError

_STATUS: Final = re.compile(r'"status": "(\w+)"')
_SAID: Final = re.compile(r'"(?:result|error)": ("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)')
_ENDED_WELL: Final = frozenset({"running", "completed"})


def turn_of(dial: Dial, turn_id: str) -> Answer | None:
    """The turn; None if its session is deleted."""
    try:
        return dial.call("session.turn", {"turnId": turn_id})
    except AnswerError as error:
        if error.code is not Code.NOT_FOUND:
            raise
        return None


def fault_of(turn: Answer) -> str | None:
    """Why a turn did not complete: its code and its text."""
    return f"{turn['errorCode']}: {turn.get('error')}" if turn.get("errorCode") else None


def ending(status: str, fault: str | None) -> str:
    """How a turn ended and why; a code that only repeats the state is left out."""
    return f"{status}: {(fault or 'no reason is known').removeprefix(f'{status.upper()}: ')}"


def by_turn(dial: Dial, session_id: str, page: Answer) -> Iterator[tuple[list[Answer], str | None]]:
    """The items of a page, turn by turn, and how each turn ended that did not complete.

    A turn that goes on behind the page has no end here, and one whose last word is a reply needs no look.
    """
    groups = [list(items) for _, items in groupby(page["items"], key=lambda item: item["turnId"])]
    for items in groups:
        last = items[-1]
        silent = last["kind"] != "reply" or last.get("calls")
        goes_on = items is groups[-1] and silent and _goes_on(dial, session_id, page.get("cursor"), last["turnId"])
        turn = turn_of(dial, last["turnId"]) if silent and not goes_on else None
        ended = turn is not None and turn["status"] not in _ENDED_WELL
        yield items, ending(turn["status"], fault_of(turn)) if turn and ended else None


def _goes_on(dial: Dial, session_id: str, cursor: int | None, turn_id: str) -> bool:
    if cursor is None:
        return False
    behind = dial.call("session.items", {"sessionId": session_id, "after": cursor, "limit": 1})["items"]
    return bool(behind) and behind[0]["turnId"] == turn_id


def completion_words(content: str) -> str:
    """What a completion says, from its JSON or the beginning of that; another text stays as it is."""
    try:
        found: Any = json.loads(content)
    except ValueError:
        found = _begun(content)
    if not isinstance(found, dict) or "status" not in found:
        return content
    body = cast("Answer", found)
    said = body.get("error") or body.get("result")
    return f"{body['status']}: {said}" if said else str(body["status"])


def _begun(content: str) -> Answer | None:
    """What is there of a completion whose text was cut."""
    status, said = _STATUS.search(content), _SAID.search(content)
    if not content.startswith("{") or status is None:
        return None
    return {"status": status[1], "result": json.loads(f'{said[1]}"', strict=False) if said else None}


def words_of(kind: str, text: str) -> str:
    """What an input or a message of *kind* says to a person."""
    return completion_words(text) if kind == "completion" else text
