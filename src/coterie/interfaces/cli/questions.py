"""What agents ask a person: how it looks, and what a line says to it."""

from collections.abc import Sequence

from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.display import one_line, plain
from coterie.interfaces.cli.terminal import Terminal


def show_questions(terminal: Terminal, requests: Sequence[Answer]) -> None:
    """Show questions that wait for words, and how they are answered."""
    if not requests:
        return
    terminal.show("These agents ask you something:")
    for one in requests:
        show_question(terminal, one)
    terminal.show(
        '`coterie answer ID "text"` answers, and so does the number of a choice in place of the text; '
        "`coterie deny ID` declines.",
        "",
    )


def show_question(terminal: Terminal, request: Answer) -> None:
    """Show one question: who asks, what, and the choices."""
    terminal.show("", f"{request['requestId']}  {one_line(request['sessionTitle'])} asks:")
    terminal.show(*(f"    {line}" for line in plain(request["question"]).splitlines()))
    choices = request.get("choices") or ()
    marks = [f"[{number}]" for number in range(1, len(choices) + 1)] if _numbered(request) else ["-"] * len(choices)
    terminal.show(*(f"    {mark} {one_line(choice)}" for mark, choice in zip(marks, choices, strict=True)))


def said(request: Answer, text: str) -> str:
    """What *text* says to a question: the choice of that number, if it is one, else what it is."""
    if _numbered(request):
        choices = {str(number): choice for number, choice in enumerate(request["choices"], 1)}
        return str(choices.get(text.strip(), text))
    return text


def how(request: Answer) -> str:
    """How a line answers."""
    ways = "Answer in words, or by the number of a choice" if _numbered(request) else "Answer in words"
    return f"{ways}; /deny declines, with your reason behind it."


def _numbered(request: Answer) -> bool:
    """Whether choices have numbers: not where one is a number itself, which could then mean two things."""
    choices = request.get("choices") or ()
    return bool(choices) and not any(choice.strip().isdecimal() for choice in choices)
