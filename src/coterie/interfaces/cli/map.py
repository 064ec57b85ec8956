"""`map`: who sent what to whom in a chain."""

from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from coterie.core.codes import Code
from coterie.core.errors import HostError, InvalidArgumentError
from coterie.interfaces.cli import tables
from coterie.interfaces.cli.chains import Chain, chain_of
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.drawing import draw_svg
from coterie.interfaces.cli.naming import whole_message_id
from coterie.interfaces.cli.sequence import rows
from coterie.interfaces.cli.terminal import Terminal


class NoMessageError(HostError):
    """The session has no part in any chain."""

    code = Code.NOT_FOUND


@dataclass(frozen=True, slots=True)
class Picture:
    """A sequence diagram as wide as the console; colour only repeats what its states say."""

    chain: Chain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it line by line."""
        for line, state in rows(self.chain.people, self.chain.arrows, options.max_width):
            yield Text(line if state else line.rstrip(), no_wrap=True, overflow="ignore") + tables.state(state)


@dataclass(frozen=True, kw_only=True)
class Map(Command):
    """Draw who sent what to whom in a chain.

    A chain is all that followed from one input of a person; of a session it is the one with its newest message.
    Solid arrows are messages, dashed ones say what became of them.
    """

    example: ClassVar[str] = "coterie map lead --svg chain.svg"

    subject: Annotated[
        str,
        typer.Argument(
            metavar="CHAIN|SESSION",
            help="Whole id of a chain or of a message in it, or a session as other commands take it.",
        ),
    ]
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Write a picture in SVG; `-` writes it to the output stream."),
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Read the whole chain and draw it."""
        to_stream = self.svg == Path("-")
        if to_stream and terminal.as_json:
            raise InvalidArgumentError("--json and --svg - both write to the output stream; take one of them.")
        dial = terminal.dial()
        answer = _whole(dial, self._named(terminal, dial))
        chain = chain_of(answer)
        if self.svg is not None:
            # Character references hold in every encoding that the stream, or a reader of the file, may have.
            picture = draw_svg(chain).encode("ascii", "xmlcharrefreplace")
            if to_stream:
                terminal.write(picture.decode("ascii"))
                return
            _write(self.svg, picture)
            terminal.remark(f"Wrote {self.svg}.")
        if terminal.as_json:
            terminal.json(answer)
        elif self.svg is None:
            terminal.show(f"{chain.id}: {_used(answer['budget'])}", "", Picture(chain))

    def _named(self, terminal: Terminal, dial: Dial) -> Answer:
        if self.subject.startswith("chn_"):
            return {"chainId": self.subject}
        if self.subject.startswith("msg_"):
            return {"messageId": whole_message_id(self.subject)}
        session = dial.call("collaboration.status", {"sessionId": terminal.session(self.subject)})
        exchanges: list[Answer] = session["recentExchanges"]
        if not exchanges:
            raise NoMessageError(
                f"The session {session['title']!r} has neither sent nor got a message, so there is no chain to draw; "
                f"`coterie send --from {session['sessionId']} --to SESSION TEXT` makes one."
            )
        return {"messageId": exchanges[0]["messageId"]}


def _whole(dial: Dial, named: Answer) -> Answer:
    """The chain with the messages of all its pages; its budget is that of the last one."""
    messages = list[Answer]()
    cursor: str | None = None
    while True:
        page = dial.call("collaboration.chain", {**named, "cursor": cursor})
        messages += page["messages"]
        cursor = page.pop("cursor", None)
        if cursor is None:
            return {**page, "messages": messages}


def _write(path: Path, picture: bytes) -> None:
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise InvalidArgumentError(f"The picture cannot be written to {path}: {error.strerror}.") from error


def _used(budget: Answer) -> str:
    used = [
        f"{budget['messages']} of {budget['messagesMax']} messages sent",
        f"{budget['sessions']} of {budget['sessionsMax']} sessions spawned",
    ]
    if budget["costUsd"]:
        used.append(f"{_money(budget['costUsd'])} of {_money(budget['costMaxUsd'])} US dollars spent")
    return ", ".join(used)


def _money(dollars: float) -> str:
    """Cents, and below one dollar four digits that count, so that near sums differ."""
    if not 0 < dollars < 1:
        return f"{dollars:.2f}"
    whole, _, digits = f"{dollars:.{3 - floor(log10(dollars))}f}".partition(".")
    return f"{whole}.{digits.rstrip('0'):0<2}"
