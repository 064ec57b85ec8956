"""What `tail` says of changes: names instead of ids, states once, and nothing where nothing is to be said."""

from dataclasses import dataclass
from typing import Any

import pytest
from tests.interfaces.cli.conftest import Line, Stub, failure

from coterie.interfaces.cli.dial import Dial
from coterie.interfaces.cli.telling import KEPT_MAX, Teller

ONE, TWO = f"ses_{'1' * 32}", f"ses_{'2' * 32}"


@dataclass
class Heard:
    """A teller on the stub."""

    stub: Stub
    teller: Teller

    def __call__(self, kind: str, ref: str, *answers: dict[str, Any] | bytes, session: str = ONE) -> str | None:
        """Tell of a change, which the host answers so."""
        self.stub.says(*answers)
        return self.teller.line({"sessionId": session, "kind": kind, "ref": ref})


@pytest.fixture
def heard(stub: Stub, line: Line) -> Heard:
    """A teller on a stream over all sessions."""
    return Heard(stub, Teller(lambda: Dial.to(line.surroundings.home), both_ends=False))


def session(title: str) -> dict[str, Any]:
    """A session as the host shows it."""
    return {"session": {"title": title}}


def message(status: str, content: str = "Count.", **more: str) -> dict[str, Any]:
    """A message from the first session to the second."""
    ends = {"sourceSessionId": ONE, "sourceTitle": "lead", "targetSessionId": TWO, "targetTitle": "reader"}
    return {"message": {**ends, "kind": "task", "status": status, "content": content, **more}}


def test_a_turn_is_told_when_it_runs_and_when_it_has_ended(heard: Heard) -> None:
    """What is shown is its state by now, so a late look would tell its end twice."""
    running, ended = ({"turnId": "t", "kind": "prompt", "status": one} for one in ("running", "completed"))
    assert heard("turn", "t", running, session("lead")) == "lead  prompt turn  running"
    assert heard("turn", "t", running) is None
    assert heard("turn", "t", ended) == "lead  prompt turn  completed"
    heard("session", ONE, session("head"))
    assert heard("turn", "t", ended) is None


def test_a_message_is_told_once_a_state_with_the_start_of_its_text(heard: Heard) -> None:
    """Both ends note it, and each binding notes it again."""
    assert heard("message", "m", message("queued", "x" * 99)) == f"lead → reader  task  queued: {'x' * 60}…"
    assert heard("message", "m", message("queued"), session=TWO) is None
    assert heard("message", "m", message("queued")) is None
    completion = '{"status": "completed", "result": "seven"}'
    told = heard("message", "n", message("running", completion, kind="completion"))
    assert told == "lead → reader  completion  running: completed: seven"


def test_equal_titles_are_told_apart_by_the_ends_of_their_ids(heard: Heard) -> None:
    """Else a message would seem to go from a session to itself."""
    assert heard("message", "m", message("queued", targetTitle="lead")) == "lead → lead 2222  task  queued: Count."
    assert heard("message", "m", message("running", targetTitle="lead")) == (
        "lead 1111 → lead 2222  task  running: Count."
    )


def test_a_session_is_told_by_its_title_and_once_by_its_id(heard: Heard) -> None:
    """The title is what a person knows, the id what a command may need."""
    assert heard("session", ONE, session("lead")) == f"lead  created or changed ({ONE})"
    assert heard("session", TWO, session("reader")) == "lead  has spawned reader"
    assert heard("held", ONE) == "lead  its queue is held"
    assert heard("deleted", ONE) == "lead  deleted"


def test_a_session_that_is_gone_is_told_by_its_id(heard: Heard) -> None:
    """Nobody knows its title; a fault of the host is none of these."""
    assert heard("deleted", ONE, failure("NOT_FOUND", "There is no session.")) == f"{ONE}  deleted"


@pytest.mark.parametrize("kind", ["items", "input", "a kind of a newer host"])
def test_what_turns_and_messages_tell_is_left_out(heard: Heard, kind: str) -> None:
    """A line without a word about what happened tells nothing."""
    assert heard(kind, "ref") is None


def test_only_so_many_states_are_remembered(heard: Heard) -> None:
    """A stream may last for months."""
    for number in range(KEPT_MAX + 1):
        heard("message", f"m{number}", message("queued"))
    assert heard("message", f"m{KEPT_MAX}", message("queued")) is None
    assert heard("message", "m0", message("queued")) is not None


def test_what_tools_have_changed_is_told_once_and_cut(heard: Heard) -> None:
    """Only of the results that were just written, in their order."""
    diff = "--- a/x\n+++ b/x\n@@ -1 +1,30 @@\n" + "".join(f"+\t{n}\x1b\n" for n in range(30))
    page: list[dict[str, Any]] = [
        {"number": 4, "kind": "tool_result", "diff": "+old\n"},
        {"number": 5, "kind": "reply"},
        {"number": 6, "kind": "tool_result", "diff": "-a\n"},
        {"number": 7, "kind": "tool_result"},
        {"number": 8, "kind": "tool_result", "diff": diff},
        {"number": 9, "kind": "tool_result", "diff": "+later\n"},
    ]
    heard.stub.says({"items": page}, {"items": page[-1:]})
    lines = heard.teller.diffs({"sessionId": ONE, "kind": "items", "ref": "8"})
    assert [line.plain for line in lines[:5]] == [
        "    -a",
        "    --- a/x",
        "    +++ b/x",
        "    @@ -1 +1,30 @@",
        "    +\t0",
    ]
    assert [line.plain for line in lines[-2:]] == ["    +\t16", "    … 13 more lines …"]
    assert [str(line.style) for line in lines[:5]] == ["red", "bold", "bold", "cyan", "green"]
    assert [line.plain for line in heard.teller.diffs({"sessionId": ONE, "kind": "items", "ref": "9"})] == [
        "    +later"
    ]
    assert [given["after"] for _, given in heard.stub.calls] == [0, 8]
