"""Asking a person about a tool call in the place where it came up."""

from typing import Final

from coterie.core.codes import Code
from coterie.interfaces.cli.approvals import show_call
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.failure import AnswerError
from coterie.interfaces.cli.terminal import Terminal

_OVER: Final = frozenset({Code.NOT_FOUND, Code.CONFLICT})
"""Somebody else has answered, or the turn has ended."""
_LINES: Final = 40
"""Lines of a change that are shown before somebody asks for all of it."""

_DECISIONS: Final = {"y": "once", "yes": "once", "n": "deny", "no": "deny"}
"""Whole words, so that `you must not` is no yes."""
_FOR_THE_SESSION: Final = {"s": "session", "session": "session"}


def ask(terminal: Terminal, request: Answer) -> None:
    """Show a call, and let the person answer it where there is one; else say how it is answered elsewhere.

    Raises:
        HostError: The host refused for another reason than that the question is over.
    """
    if not terminal.as_json:
        show_call(terminal, request, lines_max=_LINES)
    decision = _decision(terminal, request)
    if decision is None:
        terminal.remark(
            f"It waits for your leave: `coterie approve {request['requestId']}` or "
            f"`coterie deny {request['requestId']}` in another terminal.",
            "bold yellow",
        )
        return
    comment = terminal.answer("Why? (Enter for nothing) ") if decision == "deny" else None
    given = {"requestId": request["requestId"], "decision": decision, "comment": comment or None}
    try:
        terminal.dial().act("permissions.resolve", given)
    except AnswerError as error:
        if error.code not in _OVER:
            raise
        terminal.remark("The question is over: it was answered elsewhere, or its turn has ended.", "yellow")


def _decision(terminal: Terminal, request: Answer) -> str | None:
    """What the person decides; None where nobody can be asked, or the input has ended."""
    # A grant for the session would not count where somebody else's ceiling holds.
    decisions = _DECISIONS if request.get("ceilingSessionId") else _DECISIONS | _FOR_THE_SESSION
    session = ", [s] always in this session" if decisions is not _DECISIONS else ""
    while True:
        word = terminal.answer(f"May it run? [y] once{session}, [n] no, [?] show all lines: ", anew=True)
        if word is None:
            return None
        key = word.strip().lower()
        if key == "?":
            show_call(terminal, request)
        elif key in decisions:
            return decisions[key]
