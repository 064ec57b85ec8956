"""What has changed, in words, as it is by now."""

from collections.abc import Callable
from itertools import takewhile
from typing import Final

from rich.text import Text

from coterie.core.codes import Code
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.differences import diff_lines
from coterie.interfaces.cli.display import one_line, shortened
from coterie.interfaces.cli.endings import turn_of, words_of
from coterie.interfaces.cli.failure import AnswerError

TEXT_CHARS_MAX: Final = 60
"""Characters of a message that its line shows."""
KEPT_MAX: Final = 1000
"""Messages and turns whose last told state is remembered."""
_RESULTS_MAX: Final = 64
"""Results of one step of a turn that are looked through for what was changed."""
_WORDS: Final = {
    "permission": "a question was asked or answered; `coterie approve` shows what waits for you",
    "budget": "its chain has spent its budget; `coterie release` lets it go on",
    "held": "its queue is held",
    "released": "its queue goes on",
    "deleted": "deleted",
}
"""What a person is told of a session; of its items and inputs the turns and messages tell enough."""


class Teller:
    """Tells of changes, and of nothing twice: a turn's line comes when it runs and when it has ended."""

    def __init__(self, dial: Callable[[], Dial], *, both_ends: bool) -> None:
        self._dial = dial
        """Finds the host, which may have started again elsewhere."""
        self._both_ends = both_ends
        """Whether a message is told at both its ends; a stream over all sessions tells it at its source."""
        self._titles: dict[str, str] = {}
        self._states: dict[str, str] = {}
        self._item = 0
        """Number of the last item whose difference was told."""

    def line(self, change: Answer) -> str | None:
        """Return what there is to say about a change, None for nothing new.

        Raises:
            HostError: The host did not say what has become of it.
        """
        session_id, kind, ref = change["sessionId"], change["kind"], change["ref"]
        match kind:
            case "message":
                return self._message(session_id, ref)
            case "turn":
                return self._turn(session_id, ref)
            case "session":
                return self._session(session_id, ref)
            case _ if kind in _WORDS:
                return f"{self._name(session_id)}  {_WORDS[kind]}"
            case _:
                return None

    def diffs(self, change: Answer) -> list[Text]:
        """Return what the tools have changed whose results were written with a change.

        Raises:
            HostError: The host did not say.
        """
        last = int(change["ref"])
        asked = {"sessionId": change["sessionId"], "after": max(last - _RESULTS_MAX, self._item), "limit": _RESULTS_MAX}
        items: list[Answer] = self._dial().call("session.items", asked)["items"]
        self._item = last
        heard = reversed([item for item in items if item["number"] <= last])
        results = list(takewhile(lambda item: item["kind"] == "tool_result", heard))
        return [line for item in reversed(results) if item.get("diff") for line in diff_lines(item["diff"])]

    def _is_new(self, ref: str, state: str) -> bool:
        known = self._states.pop(ref, None)
        self._states[ref] = state
        if len(self._states) > KEPT_MAX:
            del self._states[next(iter(self._states))]
        return known != state

    def _message(self, session_id: str, message_id: str) -> str | None:
        message = self._dial().call("collaboration.message", {"messageId": message_id})["message"]
        if not self._both_ends and message["sourceSessionId"] != session_id:
            return None
        if not self._is_new(message_id, message["status"]):
            return None
        source = self._titled(message["sourceSessionId"], message["sourceTitle"])
        target = self._titled(message["targetSessionId"], message["targetTitle"])
        text = shortened(one_line(words_of(message["kind"], message["content"])), TEXT_CHARS_MAX)
        return f"{source} → {target}  {message['kind']}  {message['status']}: {text}"

    def _turn(self, session_id: str, turn_id: str) -> str | None:
        turn = turn_of(self._dial(), turn_id)
        # Where there is none, its session is deleted, which has a line of its own.
        if turn is None or not self._is_new(turn_id, turn["status"]):
            return None
        reason = f"  {turn['errorCode']}" if turn.get("errorCode") else ""
        return f"{self._name(session_id)}  {turn['kind']} turn  {turn['status']}{reason}"

    def _session(self, session_id: str, ref: str) -> str:
        if ref != session_id:
            return f"{self._name(session_id)}  has spawned {self._name(ref)}"
        # What it is called may be what has changed.
        self._titles.pop(session_id, None)
        return f"{self._name(session_id)}  created or changed ({session_id})"

    def _name(self, session_id: str) -> str:
        """A session by its title, its id where it is deleted."""
        title = self._titles.get(session_id) or self._read_title(session_id)
        return session_id if title is None else self._titled(session_id, title)

    def _read_title(self, session_id: str) -> str | None:
        try:
            return str(self._dial().call("session.get", {"sessionId": session_id})["session"]["title"])
        except AnswerError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None

    def _titled(self, session_id: str, title: str) -> str:
        """A title, with the end of the id where another session is called so too."""
        self._titles[session_id] = title
        clashes = any(other != session_id and called == title for other, called in self._titles.items())
        return f"{title} {session_id[-4:]}" if clashes else title
