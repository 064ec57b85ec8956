"""Tool calls that wait for leave, asked about where the person already looks."""

from collections.abc import Sequence
from typing import Final

from coterie.interfaces.cli.approvals import show_call
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.ears import forget_typed
from coterie.interfaces.cli.failure import AnswerError, line_of
from coterie.interfaces.cli.terminal import Terminal

_SHOWN_LINES: Final = 12
_DECISIONS: Final = {"y": "once", "yes": "once", "s": "session", "session": "session", "n": "deny", "no": "deny"}
"""Whole words, so that `you must not` is no yes."""
_SAID: Final = {"once": "Approved once.", "session": "Approved for this session.", "deny": "Denied."}
_STYLE: Final = "bold yellow"


class Asking:
    """Puts questions to a person one at a time, and takes the lines that answer them."""

    def __init__(self, terminal: Terminal, *, bell: bool = False) -> None:
        self._terminal = terminal
        self._bell = bell
        self._open: Answer | None = None
        self._noting = False
        """Whether the next line says why not."""
        self._asked: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether the next line is an answer."""
        return self._open is not None

    def refresh(self, requests: Sequence[Answer]) -> None:
        """Take up the questions that are open now: one that is not any more ends, the next one is asked."""
        open_ids = {one["requestId"] for one in requests}
        if self._open is not None and self._open["requestId"] not in open_ids:
            self._end("It was answered elsewhere, or is not asked any more.")
        if self._open is not None:
            return
        one = next((one for one in requests if one["requestId"] not in self._asked), None)
        if one is not None:
            self._ask(one)

    def take(self, line: str) -> None:
        """Take a line as the answer to the open question."""
        one = self._open
        if one is None:
            return
        if self._noting:
            self._resolve(one, "deny", line)
            return
        word = line.lower()
        decision = _DECISIONS.get(word)
        if decision == "deny":
            self._noting = True
            self._terminal.remark("Why not? A line for the model, or an empty one:", _STYLE)
        elif decision is not None and _may(one, decision):
            self._resolve(one, decision)
        else:
            if word == "?":
                show_call(self._terminal, one)
            self._terminal.remark(_choices(one) if word == "?" else f"That is no answer. {_choices(one)}", _STYLE)

    def _ask(self, one: Answer) -> None:
        self._open = one
        self._asked.add(one["requestId"])
        forget_typed()
        if self._bell:
            self._terminal.ring()
        show_call(self._terminal, one, lines_max=_SHOWN_LINES)
        self._terminal.remark(_choices(one), _STYLE)

    def _resolve(self, one: Answer, decision: str, note: str | None = None) -> None:
        given = {"requestId": one["requestId"], "decision": decision, "comment": note or None}
        try:
            self._terminal.dial().act("permissions.resolve", given)
        except AnswerError as error:
            self._end(line_of(error))
        else:
            self._end(_SAID[decision])

    def _end(self, text: str) -> None:
        self._open, self._noting = None, False
        self._terminal.remark(text)


def tell(terminal: Terminal, request: Answer) -> None:
    """Show a call to one who may be elsewhere, and how it is answered."""
    if not terminal.as_json:
        show_call(terminal, request)
    terminal.remark(
        f"It waits for your leave: `coterie approve {request['requestId']}` or `coterie deny {request['requestId']}` "
        "in another terminal.",
        _STYLE,
    )


def _may(one: Answer, decision: str) -> bool:
    """Whether an answer is offered: below a ceiling, a call is approved once or not at all."""
    return decision != "session" or not one.get("ceilingSessionId")


def _choices(one: Answer) -> str:
    session = "[s] this session, " if _may(one, "session") else ""
    return f"[y] once, {session}[n] no, [?] all lines"
