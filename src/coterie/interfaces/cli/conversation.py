"""One prompt from its words to its outcome, with the reply shown as it is written.

Live text is a courtesy: it may be lost or come late, and the transcript is what counts. So the end of each reply is
written from its item, and live text that comes after its item is dropped.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from coterie.core.turn.todo import TODO
from coterie.interfaces.cli.asking import Asking, tell
from coterie.interfaces.cli.dial import Answer, Dial, Event, fresh_key
from coterie.interfaces.cli.differences import diff_lines
from coterie.interfaces.cli.display import plain, shortened
from coterie.interfaces.cli.ears import Ears, Heard, Typed
from coterie.interfaces.cli.endings import fault_of
from coterie.interfaces.cli.follow import Lost, Opened, Start, follow
from coterie.interfaces.cli.tables import arguments_of
from coterie.interfaces.cli.terminal import Terminal

_PAGE: Final = 512
_SHOWN_CHARS_MAX: Final = 100
_TRIES_MAX: Final = 12
"""Vain tries to reach the host again; the turn may go on without us."""
_UNSETTLED: Final = frozenset({"running"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the turn of a prompt ended."""

    session_id: str
    turn_id: str
    status: str
    text: str
    """The last reply."""
    error: str | None

    def wire(self) -> dict[str, Any]:
        """As JSON values."""
        said = {"sessionId": self.session_id, "turnId": self.turn_id, "status": self.status, "text": self.text}
        return said | ({"error": self.error} if self.error else {})


class Paper(Protocol):
    """What replies are written on."""

    def write(self, text: str) -> None:
        """Write more of a reply."""
        ...

    def end(self) -> None:
        """The reply is whole, or will not go on."""
        ...


class PlainPaper:
    """Shows a reply letter by letter, as it is."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def write(self, text: str) -> None:
        """See `Paper`."""
        if not self._terminal.as_json:
            self._terminal.write(plain(text))

    def end(self) -> None:
        """See `Paper`."""


class Voice:
    """Writes the replies of a turn."""

    def __init__(self, terminal: Terminal, paper: Paper | None = None) -> None:
        self._terminal = terminal
        self._paper = paper or PlainPaper(terminal)
        self._live = ""
        """What has come of the reply that is being written."""
        self._late = ""
        """What was written from an item before its live text came."""
        self._printed = ""
        """The line that a tool has begun to print."""

    def live(self, text: str, call_id: str | None) -> None:
        """Write live text of a reply, or tell what a tool prints, line by line beside the replies."""
        if call_id is None:
            self.delta(text)
        else:
            self._print(text)

    def delta(self, text: str) -> None:
        """Write live text."""
        if self._late.startswith(text):
            self._late = self._late.removeprefix(text)
            return
        self._late = ""
        self._live += text
        self._paper.write(text)

    def item(self, item: Answer) -> None:
        """Write what is missing of a reply, and tell of the tools it calls."""
        if item["kind"] == "reply":
            self._reply(item["text"])
            for call in item.get("calls") or ():
                self._terminal.remark(f"· {call['name']} {shortened(arguments_of(call), _SHOWN_CHARS_MAX)}")
        elif item["kind"] == "tool_result":
            self._print("\n")
            if item.get("error"):
                self._terminal.remark(f"· {item.get('tool')}: {shortened(item['text'], _SHOWN_CHARS_MAX)}", "yellow")
            elif item.get("tool") == TODO:
                for line in item["text"].splitlines():
                    self._terminal.remark(f"│ {line}")
            self._terminal.aside(diff_lines(item["diff"]) if item.get("diff") else ())

    def stop(self) -> None:
        """End the line of a reply that will not go on."""
        if self._live:
            self._paper.write("\n")
        self._paper.end()
        self._live = ""

    def _reply(self, text: str) -> None:
        rest = text.removeprefix(self._live)
        if self._live and rest == text:
            # What came live belongs to a try that the host gave up, so the reply is written anew.
            self._paper.write("\n")
            self._paper.end()
        self._late += rest
        self._paper.write(rest)
        if text and not text.endswith("\n"):
            self._paper.write("\n")
        self._paper.end()
        self._live = ""

    def _print(self, text: str) -> None:
        *lines, self._printed = (self._printed + text).split("\n")
        for line in filter(str.strip, lines):
            self._terminal.remark(f"│ {shortened(line, _SHOWN_CHARS_MAX)}")


def is_queued(dial: Dial, receipt: Answer, session_id: str) -> bool:
    """Whether a prompt waits for more than a moment: for the turn that runs, or for a person."""
    if receipt.get("turnId"):
        return False
    queue = dial.call("queue.list", {"sessionId": session_id})
    waits = receipt["inputId"] in {one["inputId"] for one in queue["inputs"]}
    return waits and queue.get("blockedBy") != "slot"


def new_items(dial: Dial, session_id: str, after: int) -> list[Answer]:
    """The items of a session behind number *after*, to the end."""
    found = list[Answer]()
    while True:
        given = {"sessionId": session_id, "after": found[-1]["number"] if found else after, "limit": _PAGE}
        page: list[Answer] = dial.call("session.items", given)["items"]
        found += page
        if len(page) < _PAGE:
            return found


class Conversation:
    """A prompt to a session, and the turn that answers it."""

    def __init__(self, terminal: Terminal, session_id: str, text: str) -> None:
        self._terminal = terminal
        self._voice = Voice(terminal)
        self._session_id = session_id
        self._prompt = {"sessionId": session_id, "text": text}
        self._key = fresh_key()
        self._turn_id: str | None = None
        self._item = 0
        self._text = ""
        self._input_id: str | None = None
        self._asking = Asking(terminal) if terminal.is_attended() else None
        """Asks a person who is there."""
        self._asked: set[str] = set()
        """Questions that were shown to one who may be elsewhere."""
        self.accepted = False
        """Whether the host has taken the prompt."""

    def hold(self) -> Outcome:
        """Send the prompt, show the reply, return the outcome.

        Raises:
            HostError: The host refused, or was out of reach for too long.
        """
        dial = self._terminal.dial()
        session = dial.call("session.get", {"sessionId": self._session_id})["session"]
        self._new_items()
        start = Start(self._terminal.data, self._session_id, str(session["revision"]), _TRIES_MAX)
        try:
            # The stream is opened before the prompt is sent, so that no word of the reply comes too early.
            with closing(self._happenings(start)) as happenings:
                for happened in happenings:
                    outcome = self._heard(happened)
                    if outcome is not None:
                        return outcome
        except KeyboardInterrupt:
            self._terminal.remark(self._left())
            raise
        finally:
            self._voice.stop()
        raise AssertionError("a stream is followed without end")

    def _happenings(self, start: Start) -> Generator[Heard]:
        """What happens, and, while a question is open, what the person types."""
        if self._asking is None:
            yield from follow(start)
            return
        with closing(Ears(start)) as ears:
            while True:
                yield ears.next(typed=self._asking.is_open)

    def _left(self) -> str:
        """What goes on without us, and how to stop it."""
        if self._turn_id is not None:
            return (
                f"The turn goes on: `coterie tail {self._session_id}` shows it, "
                f"`coterie interrupt {self._session_id}` stops it."
            )
        if self._input_id is not None:
            return (
                "The prompt stays in the queue: "
                f"`coterie queue remove {self._session_id} {self._input_id}` takes it out."
            )
        return f"Perhaps the prompt was not sent: `coterie status {self._session_id}` tells."

    def _heard(self, happened: Heard) -> Outcome | None:
        match happened:
            case Opened(again=again):
                self._send()
                if again:
                    self._questions()
                return self._look() if again else None
            case Typed(line):
                self._typed(line)
            case Lost(reason, _):
                self._voice.stop()
                self._terminal.remark(f"{reason} Trying again.", "yellow")
            case Event(name="delta", data=data) if data.get("turnId") == self._turn_id:
                self._voice.live(data["text"], data.get("callId"))
            case Event(name="change", data=data):
                return self._changed(data.get("kind"))
            case Event(name="reset"):
                self._questions()
                return self._look()
            case Event():
                pass
        return None

    def _changed(self, kind: str | None) -> Outcome | None:
        if kind == "turn":
            if self._turn_id is None:
                self._send()
            return self._look()
        if kind == "items":
            self._show()
        elif kind == "permission":
            self._questions()
        return None

    def _send(self) -> None:
        """Send the prompt; sent again with its key it does nothing, and tells the turn that it has got."""
        dial = self._terminal.dial()
        receipt = dial.act("session.prompt", self._prompt, self._key)
        first, self.accepted = not self.accepted, True
        self._turn_id, self._input_id = receipt.get("turnId"), receipt["inputId"]
        if first and is_queued(dial, receipt, self._session_id):
            self._terminal.remark(f"Queued at position {receipt.get('position')}; it starts when the session is free.")

    def _new_items(self) -> list[Answer]:
        found = new_items(self._terminal.dial(), self._session_id, self._item)
        self._item = found[-1]["number"] if found else self._item
        return found

    def _show(self) -> None:
        """Show the new items of the turn."""
        if self._turn_id is None:
            return
        for item in self._new_items():
            if item["turnId"] != self._turn_id:
                continue
            self._voice.item(item)
            if item["kind"] == "reply":
                self._text = item["text"]

    def _typed(self, line: str | None) -> None:
        if line is None:
            # Whoever ends the input wants to be asked no more; the question stays for another terminal.
            self._asking = None
            raise KeyboardInterrupt
        if self._asking is not None:
            self._asking.take(line)
            self._questions()

    def _questions(self) -> None:
        """Ask for what the turn may not do by itself, or show it, once each."""
        if self._turn_id is None:
            return
        pending: list[Answer] = self._terminal.dial().call("permissions.pending")["requests"]
        requests = [one for one in pending if one.get("turnId") == self._turn_id]
        if self._asking is not None:
            if requests:
                self._voice.stop()
            self._asking.refresh(requests)
            return
        for one in requests:
            if one["requestId"] in self._asked:
                continue
            self._asked.add(one["requestId"])
            self._voice.stop()
            tell(self._terminal, one)

    def _look(self) -> Outcome | None:
        """Return the outcome, if the turn has one."""
        if self._turn_id is None:
            return None
        turn = self._terminal.dial().call("session.turn", {"turnId": self._turn_id})
        if turn["status"] in _UNSETTLED:
            return None
        self._show()
        return Outcome(self._session_id, self._turn_id, turn["status"], self._text, fault_of(turn))
