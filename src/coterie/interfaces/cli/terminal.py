"""The terminal as a command sees it: two streams, one data directory, the way to its host."""

import io
import shlex
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.text import Text

from coterie.core.errors import HostUnavailableError, InvalidArgumentError
from coterie.interfaces.cli.dial import Dial
from coterie.interfaces.cli.display import interrupted, json_line, one_line, plain
from coterie.interfaces.cli.environment import Environment
from coterie.interfaces.cli.naming import session_id_of

PIPED_COLUMNS: Final = 200
"""Width of a table that no terminal shows: wide enough that ids and titles stay on one line."""


class Terminal:
    """Results go to the output stream, and nothing else does; progress and remarks go to the error stream."""

    def __init__(self, environment: Environment, data: Path | None = None, *, as_json: bool = False) -> None:
        self.environment = environment
        self.as_json = as_json
        self._named = data
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A title may have characters that the locale has not; that must not end the command.
                stream.reconfigure(errors="backslashreplace")
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    @cached_property
    def data(self) -> Path:
        """The data directory."""
        try:
            return self.environment.data_directory(self._named)
        except RuntimeError as error:
            raise InvalidArgumentError(f"The data directory {str(self._named)!r} is no path: {error}") from error

    def dial(self) -> Dial:
        """Find the running host.

        Raises:
            HostUnavailableError: There is none.
        """
        return Dial.to(self.data)

    def dial_or_start(self) -> Dial:
        """Find the running host, or start one in the background.

        Raises:
            HostError: It does not start.
        """
        try:
            dial = self.dial()
            dial.call("app.health")
        except HostUnavailableError:
            with self.busy(f"starting a host on {self.data}"):
                self.environment.start_host(self.data)
            named = f" --data {shlex.quote(str(self._named))}" if self._named is not None else ""
            self.remark(f"Started a host on {self.data}; `coterie down{named}` stops it.")
            dial = self.dial()
            if dial.host.interrupted:
                self.remark(interrupted(dial.host.interrupted))
        return dial

    def session(self, name: str) -> str:
        """Return the id of the session that *name* means."""
        return session_id_of(self.dial(), name)

    def json(self, value: Mapping[str, Any]) -> None:
        """Write one line of JSON."""
        encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
        self.write(json_line(value, unicode=encoding == "utf8") + "\n")

    def write(self, text: str) -> None:
        """Write *text* as it is, at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def show(self, *shown: RenderableType) -> None:
        """Show tables and lines to a person."""
        for one in (plain(one) if isinstance(one, str) else one for one in shown):
            self._out.print(one, markup=False, highlight=False, emoji=False, soft_wrap=isinstance(one, str))

    def remark(self, text: str, style: str = "dim") -> None:
        """Say something about the work to a person; programs are not told."""
        if not self.as_json:
            self._err.print(one_line(text), style=style, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def aside(self, lines: Iterable[Text]) -> None:
        """Show lines about the work to a person, with their white space."""
        if not self.as_json:
            for line in lines:
                self._err.print(line, emoji=False, soft_wrap=True)

    def is_sure(self, question: str) -> bool | None:
        """Ask a person, who has to say yes; None where nobody can be asked."""
        if not (_is_terminal(sys.stdin) and self._err.is_terminal):
            return None
        sys.stderr.write(f"{one_line(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def is_attended(self) -> bool:
        """Whether a person is there who sees a question and can answer it."""
        there = _is_terminal(sys.stdin) and _is_terminal(sys.stdout) and self._err.is_terminal
        return there and not self.as_json

    def ring(self) -> None:
        """Sound the terminal's bell."""
        sys.stderr.write("\a")
        sys.stderr.flush()

    def busy(self, text: str) -> AbstractContextManager[object]:
        """Show that something takes its time, where somebody looks."""
        if self.as_json or not self._err.is_terminal:
            return nullcontext()
        return self._err.status(one_line(text), spinner="line")


def _is_terminal(stream: Any) -> bool:
    # A stream that the program was started without is None.
    return stream is not None and stream.isatty()


def _console(stream: Any) -> Console:
    console = Console(file=stream)
    if not console.is_terminal:
        console.width = PIPED_COLUMNS
    return console
