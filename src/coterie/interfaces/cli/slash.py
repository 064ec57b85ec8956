"""What a person types in `chat` behind a slash: the terminal's own commands, about the session of the chat."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast, get_args

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli.chat import new_session
from coterie.interfaces.cli.lifecycle import Configure
from coterie.interfaces.cli.queues import List as Queue
from coterie.interfaces.cli.sessions import List, Release, Status
from coterie.interfaces.cli.talk import Mode
from coterie.interfaces.cli.terminal import Terminal


@dataclass(frozen=True, slots=True)
class Next:
    """How the chat goes on."""

    session_id: str | None
    """The session; None leaves."""
    again: bool = False
    """Show its last items."""


_Act: TypeAlias = Callable[[Terminal, str, str], Next]
"""Takes the terminal, the session, and what follows the name."""


def _new(terminal: Terminal, _: str, title: str) -> Next:
    return Next(new_session(terminal, title=title or None))


def _sessions(terminal: Terminal, session_id: str, _: str) -> Next:
    List().run(terminal)
    return Next(session_id)


def _switch(terminal: Terminal, _: str, name: str) -> Next:
    if not name:
        raise InvalidArgumentError("/switch needs the name of a session; /sessions lists them.")
    found = terminal.dial().call("session.get", {"sessionId": terminal.session(name)})["session"]
    return Next(str(found["id"]))


def _status(terminal: Terminal, session_id: str, _: str) -> Next:
    Status(session=session_id).run(terminal)
    return Next(session_id)


def _queue(terminal: Terminal, session_id: str, _: str) -> Next:
    Queue(session=session_id).run(terminal)
    return Next(session_id)


def _release(terminal: Terminal, session_id: str, _: str) -> Next:
    Release(session=session_id).run(terminal)
    return Next(session_id)


def _mode(terminal: Terminal, session_id: str, mode: str) -> Next:
    modes = get_args(Mode)
    if mode not in modes:
        raise InvalidArgumentError(f"/mode takes one of {', '.join(modes)}.")
    Configure(session=session_id, mode=cast("Mode", mode)).run(terminal)
    return Next(session_id)


def _items(_: Terminal, session_id: str, __: str) -> Next:
    return Next(session_id, again=True)


def _quit(_: Terminal, __: str, ___: str) -> Next:
    return Next(None)


def _help(terminal: Terminal, session_id: str, _: str) -> Next:
    terminal.show(*(f"{name:10} {about}" for name, (about, _) in _COMMANDS.items()))
    return Next(session_id)


_COMMANDS: Final[dict[str, tuple[str, _Act]]] = {
    "/help": ("list these", _help),
    "/new": ("go to a new session in the current folder; a title may follow", _new),
    "/sessions": ("list sessions", _sessions),
    "/switch": ("go to another session: NAME, id or part of it", _switch),
    "/status": ("what this session does", _status),
    "/queue": ("what waits for this session, and why", _queue),
    "/release": ("let go on what is held in it", _release),
    "/mode": ("what it may do unasked: ask, accept-edits, auto", _mode),
    "/items": ("its last items again", _items),
    "/quit": ("leave; so do Ctrl-D and Ctrl-C", _quit),
}


ELSEWHERE: Final = frozenset({"/new", "/switch"})
"""Those that go to another session."""


def is_command(line: str) -> bool:
    """Whether *line* is meant for the terminal; one that begins with a path is meant for the session."""
    return line.startswith("/") and "/" not in line.split(maxsplit=1)[0][1:]


def perform(terminal: Terminal, session_id: str, line: str) -> Next:
    """Do what a line that begins with a slash says.

    Raises:
        HostError: It is no command, or the host refused.
    """
    name, _, rest = line.partition(" ")
    if name not in _COMMANDS:
        near = difflib.get_close_matches(name, _COMMANDS, 1)
        meant = f"did you mean {near[0]}?" if near else "/help lists the commands."
        raise InvalidArgumentError(f"There is no {name}; {meant}")
    return _COMMANDS[name][1](terminal, session_id, rest.strip())
