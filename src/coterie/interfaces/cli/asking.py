"""Tool calls that wait for leave, and what agents ask, put to the person where they already look."""

from collections.abc import Sequence
from typing import Final

from coterie.core.text import is_blank
from coterie.interfaces.cli.approvals import show_call
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.ears import forget_typed
from coterie.interfaces.cli.failure import AnswerError, line_of
from coterie.interfaces.cli.questions import how, said, show_question
from coterie.interfaces.cli.terminal import Terminal

_SHOWN_LINES: Final = 12
_DECISIONS: Final = {"y": "once", "yes": "once", "s": "session", "session": "session", "n": "deny", "no": "deny"}
"""Whole words, so that `you must not` is no yes."""
_SAID: Final = {"once": "Approved once.", "session": "Approved for this session.", "deny": "Denied."}
_DECLINE: Final = "/deny"
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
        if one["kind"] == "question":
            self._take_words(one, line)
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
        if one["kind"] == "question":
            show_question(self._terminal, one)
            self._terminal.remark(how(one), _STYLE)
        else:
            show_call(self._terminal, one, lines_max=_SHOWN_LINES)
            self._terminal.remark(_choices(one), _STYLE)

    def _take_words(self, one: Answer, line: str) -> None:
        word, _, reason = line.partition(" ")
        if is_blank(line):
            self._terminal.remark(how(one), _STYLE)
        elif word == _DECLINE:
            given = {"requestId": one["requestId"], "decision": "deny", "comment": reason.strip() or None}
            self._send("permissions.resolve", given, "Declined.")
        else:
            self._send("permissions.answer", {"requestId": one["requestId"], "answer": said(one, line)}, "Answered.")

    def _resolve(self, one: Answer, decision: str, note: str | None = None) -> None:
        given = {"requestId": one["requestId"], "decision": decision, "comment": note or None}
        self._send("permissions.resolve", given, _SAID[decision])

    def _send(self, operation: str, given: Answer, done: str) -> None:
        try:
            self._terminal.dial().act(operation, given)
        except AnswerError as error:
            self._end(line_of(error))
        else:
            self._end(done)

    def _end(self, text: str) -> None:
        self._open, self._noting = None, False
        self._terminal.remark(text)


def tell(terminal: Terminal, request: Answer) -> None:
    """Show a call or a question to one who may be elsewhere, and how it is answered."""
    request_id = request["requestId"]
    if request["kind"] == "question":
        if not terminal.as_json:
            show_question(terminal, request)
        terminal.remark(
            f'It waits for your answer: `coterie answer {request_id} "text"` or `coterie deny {request_id}` in another '
            "terminal.",
            _STYLE,
        )
        return
    if not terminal.as_json:
        show_call(terminal, request)
    terminal.remark(
        f"It waits for your leave: `coterie approve {request_id}` or `coterie deny {request_id}` in another terminal.",
        _STYLE,
    )


def _may(one: Answer, decision: str) -> bool:
    """Whether an answer is offered: below a ceiling, a call is approved once or not at all."""
    return decision != "session" or not one.get("ceilingSessionId")


def _choices(one: Answer) -> str:
    session = "[s] this session, " if _may(one, "session") else ""
    return f"[y] once, {session}[n] no, [?] all lines"
