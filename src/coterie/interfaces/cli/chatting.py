"""The talk of `chat`: lines of a person, and all that a session says until it is at rest."""

import os
import readline
import time
from contextlib import suppress
from typing import Final

from coterie.core.errors import HostError, InvalidArgumentError
from coterie.core.session.session import title_from
from coterie.core.text import is_blank
from coterie.interfaces.cli import tables
from coterie.interfaces.cli.asking import Asking
from coterie.interfaces.cli.conversation import Voice, new_items
from coterie.interfaces.cli.dial import Answer, Event, HostFile
from coterie.interfaces.cli.display import shortened
from coterie.interfaces.cli.ears import Ears, Heard, Typed
from coterie.interfaces.cli.endings import ending, fault_of, words_of
from coterie.interfaces.cli.failure import AnswerError, line_of
from coterie.interfaces.cli.follow import Lost, Opened, Start
from coterie.interfaces.cli.markdown import Blocks
from coterie.interfaces.cli.slash import ELSEWHERE, is_command, perform
from coterie.interfaces.cli.terminal import Terminal

HISTORY_FILE: Final = "chat_history"
_HISTORY_LINES_MAX: Final = 1000
_LAST_ITEMS: Final = 6
_LONG_S: Final = 5.0
"""A person may have looked away from a turn that took longer."""
_STILL: Final = ("held: ", "waiting")
"""How `blockedBy` begins where nothing starts before a person does something."""
_HELD: Final = {"restart": "since the last stop of the host", "archived": "for the session is archived"}


class Leave(Exception):
    """The person has had enough."""


class Watch:
    """One session, shown from its end on."""

    def __init__(self, terminal: Terminal, session_id: str, *, bell: bool) -> None:
        self.session_id = session_id
        self._terminal = terminal
        self._bell = bell
        self._host = terminal.dial().host
        self._ears = self._listening()
        self._voice = Voice(terminal, Blocks())
        self._asking = Asking(terminal, bell=bell)
        self._item = 0
        self._own = list[str]()
        """What was typed here, so that it is not shown again."""
        self._ended = set[str]()
        """Turns whose end was told."""
        self._shown = set[str]()
        """Turns of which something was shown from their items."""
        self._running: str | None = None
        self._lost = self._rests = self._looked = False

    def begin(self) -> None:
        """Show the last items, and go on with what runs."""
        for item in self._new_items()[-_LAST_ITEMS:]:
            self._terminal.show(*tables.item_lines(item), "")
        last = self._status().get("lastTurn")
        if last is not None and last["status"] != "running":
            self._ended.add(last["turnId"])
        self.follow()

    def listen_to(self, host: HostFile) -> None:
        """Listen to the host that runs now, if it is another one than before."""
        if host != self._host:
            ears = self._listening()
            self._ears.close()
            self._host, self._ears = host, ears

    def again(self) -> None:
        """Show the last items again."""
        self._item = 0
        for item in self._new_items()[-_LAST_ITEMS:]:
            self._terminal.show(*tables.item_lines(item), "")

    def prompt(self, text: str) -> None:
        """Say something to the session, and show what comes of it."""
        if self._item == 0:
            self._entitle(text)
        self._terminal.dial().act("session.prompt", {"sessionId": self.session_id, "text": text})
        self._own.append(text.strip())
        self.follow()

    def _entitle(self, text: str) -> None:
        """Call a session without a title by what is first said in it, as those of `run` are called."""
        session = self._terminal.dial().call("session.get", {"sessionId": self.session_id})["session"]
        if session["title"] == title_from(""):
            self._terminal.dial().act("session.rename", {"sessionId": self.session_id, "title": title_from(text)})

    def follow(self) -> None:
        """Show what the session says and asks until it is at rest.

        Raises:
            Leave: The person does not want to see the end.
        """
        began_s, stopping = time.monotonic(), False
        self._rests = self._looked = False
        try:
            while not self._rests:
                try:
                    self._step()
                except KeyboardInterrupt as pressed:
                    if stopping:
                        raise Leave from pressed
                    stopping = True
                    self._interrupt()
        finally:
            self._voice.stop()
        if self._bell and time.monotonic() - began_s > _LONG_S:
            self._terminal.ring()

    def close(self) -> None:
        """Hear no more of it."""
        self._ears.close()

    def _listening(self) -> Ears:
        ears = Ears(Start(self._terminal.data, self.session_id))
        try:
            # From when it is open, nothing is missed.
            ears.next(typed=False)
        except BaseException:
            ears.close()
            raise
        return ears

    def _step(self) -> None:
        if self._looked:
            self._heard(self._ears.next(typed=True))
        else:
            self._looked = True
            self._look()

    def _heard(self, heard: Heard) -> None:
        match heard:
            case Typed(line):
                self._typed(line)
            case Lost(reason, _):
                self._tell_lost(reason)
            case Opened() | Event(name="reset"):
                self._lost = False
                self._look()
            case Event(name="delta", data=data):
                self._live(data)
            case Event(name="change", data=data):
                self._changed(data)
            case Event():
                pass

    def _live(self, data: Answer) -> None:
        # What came while nobody looked is old: its turn is over, and stands there.
        if data["turnId"] == self._running or data["turnId"] not in self._shown:
            self._voice.live(data["text"], data.get("callId"))

    def _typed(self, line: str | None) -> None:
        if line is None:
            raise Leave
        if self._asking.is_open:
            self._asking.take(line)
            self._questions()
        elif is_command(line):
            self._command(line)
        elif not is_blank(line):
            self._steer(line)

    def _command(self, line: str) -> None:
        if line.split(maxsplit=1)[0] in ELSEWHERE:
            self._terminal.remark("A turn runs here: Ctrl-C stops it, Ctrl-D leaves and lets it go on.")
            return
        try:
            then = perform(self._terminal, self.session_id, line)
        except (AnswerError, InvalidArgumentError) as error:
            self._terminal.remark(line_of(error), "bold red")
            return
        if then.session_id is None:
            raise Leave
        if then.again:
            self.again()

    def _steer(self, line: str) -> None:
        try:
            receipt = self._terminal.dial().act("session.steer", {"sessionId": self.session_id, "text": line})
        except AnswerError as error:
            self._terminal.remark(line_of(error), "bold red")
            return
        self._own.append(line)
        told = "The turn sees it with its next model request." if receipt["accepted"] else "It is the next prompt."
        self._terminal.remark(told)

    def _tell_lost(self, reason: str) -> None:
        if not self._lost:
            self._voice.stop()
            self._terminal.remark(f"{reason} Trying again; Ctrl-C goes back to your prompt.", "yellow")
        self._lost = True

    def _changed(self, data: Answer) -> None:
        kind = data.get("kind")
        if kind == "items":
            self._show()
        elif kind == "turn":
            self._show()
            self._tell_end(self._terminal.dial().call("session.turn", {"turnId": data["ref"]}))
            self._look()
        elif kind == "permission":
            self._questions()
        else:
            self._look()

    def _look(self) -> None:
        """Show what is new, ask what is asked, and see whether anything goes on."""
        # Read first: what was said before the session came to rest is then among the items.
        status = self._status()
        self._show()
        self._questions()
        last = status.get("lastTurn")
        self._running = last["turnId"] if last and last["status"] == "running" else None
        if last:
            # Its end may have come while the stream was lost.
            self._tell_end(last)
        if status["status"] == "running":
            return
        if status["waiting"]:
            queue = self._terminal.dial().call("queue.list", {"sessionId": self.session_id})
            if not str(queue.get("blockedBy", "")).startswith(_STILL):
                return
            self._tell_held(status)
        self._rests = True

    def _tell_held(self, status: Answer) -> None:
        held = status.get("held")
        because = _HELD.get(str(held), str(held)) if held else "for a person"
        self._terminal.remark(
            f"{status['waiting']} waiting, held {because}: /queue shows it, /release lets it go on.", "bold yellow"
        )

    def _tell_end(self, turn: Answer) -> None:
        if turn["status"] in {"running", "completed"} or turn["turnId"] in self._ended:
            return
        self._ended.add(turn["turnId"])
        self._voice.stop()
        fault = fault_of(turn)
        was = "" if turn["status"] == "failed" else "was "
        said = ending(turn["status"], fault) if fault else f"{turn['status']}."
        self._terminal.remark(f"The turn {was}{said}", "bold red")

    def _interrupt(self) -> None:
        self._voice.stop()
        # The terminal has written ^C where the cursor was.
        self._terminal.write("\n")
        if self._lost:
            self._rests = True
            return
        stopped = self._terminal.dial().act("session.interrupt", {"sessionId": self.session_id, "cascade": True})
        if stopped["runningTurnIds"]:
            self._terminal.remark("Stopping the turn; Ctrl-C again leaves.", "bold yellow")
        else:
            self._terminal.remark("No turn runs; Ctrl-C again leaves.")

    def _status(self) -> Answer:
        return self._terminal.dial().call("collaboration.status", {"sessionId": self.session_id})

    def _questions(self) -> None:
        asked = self._terminal.dial().call("permissions.pending")["requests"]
        self._asking.refresh([one for one in asked if one.get("turnId") and one["sessionId"] == self.session_id])

    def _new_items(self) -> list[Answer]:
        found = new_items(self._terminal.dial(), self.session_id, self._item)
        self._item = found[-1]["number"] if found else self._item
        return found

    def _show(self) -> None:
        for item in self._new_items():
            self._shown.add(item["turnId"])
            if item["kind"] == "person" and item["text"].strip() in self._own:
                self._own.remove(item["text"].strip())
            elif item["kind"] in {"person", "session"}:
                self._voice.stop()
                origin: Answer = item.get("origin") or {}
                who = origin.get("sourceTitle", "another session") if item["kind"] == "session" else "you, elsewhere"
                said = words_of(origin.get("kind", ""), item["text"])
                self._terminal.remark(f"· from {who}: {shortened(said, tables.PREVIEW_CHARS_MAX)}")
            else:
                self._voice.item(item)


def talk(terminal: Terminal, session_id: str, bell: bool) -> None:  # noqa: FBT001 - called by name of its module
    """Talk with a session, and those that the person goes to from it, until they leave."""
    history = terminal.data / HISTORY_FILE
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_HISTORY_LINES_MAX)
    # So lines that are pasted together are one prompt; not every version does it unasked.
    readline.parse_and_bind("set enable-bracketed-paste on")
    terminal.remark("/help lists the commands, Ctrl-D leaves.")
    watch = Watch(terminal, session_id, bell=bell)
    try:
        watch.begin()
        while True:
            watch = _turn(terminal, watch, _line(), bell=bell)
    except (Leave, KeyboardInterrupt):
        terminal.remark(f"`coterie chat {watch.session_id}` goes on with it.")
    finally:
        watch.close()
        with suppress(OSError):
            # It holds what the person said, so it is theirs before it is written.
            os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
            history.chmod(0o600)
            readline.write_history_file(history)


def _turn(terminal: Terminal, watch: Watch, line: str, *, bell: bool) -> Watch:
    """Do what one line says; returns what to watch from now on."""
    try:
        if is_blank(line):
            # Whoever presses Enter wants to see what has come.
            watch.follow()
            return watch
        watch.listen_to(terminal.dial_or_start().host)
        if not is_command(line):
            watch.prompt(line)
            return watch
        then = perform(terminal, watch.session_id, line)
        if then.session_id is None:
            raise Leave
        if then.session_id != watch.session_id:
            there = Watch(terminal, then.session_id, bell=bell)
            watch.close()
            watch = there
            watch.begin()
        elif then.again:
            watch.again()
        else:
            watch.follow()
    except HostError as error:
        terminal.remark(line_of(error), "bold red")
    except KeyboardInterrupt:
        terminal.remark("Left alone.")
    return watch


def _line() -> str:
    """What the person says next.

    Raises:
        Leave: Nothing more.
    """
    said, pressed = list[str](), False
    while True:
        try:
            line = input("… " if said else "> ")
        except EOFError as error:
            raise Leave from error
        except KeyboardInterrupt as error:
            print()  # noqa: T201 - the next line begins at its start
            if pressed:
                raise Leave from error
            said, pressed = [], True
            print("Ctrl-C again leaves.")  # noqa: T201 - to the person who types
            continue
        pressed = False
        if not line.endswith("\\"):
            return "\n".join([*said, line])
        said.append(line.removesuffix("\\"))
