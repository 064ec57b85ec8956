"""A person at a real terminal: `chat` and `run` with their questions, against a host in a process of its own."""

import json
import os
import signal
import termios
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from tests.host.conftest import end_background
from tests.host.program import Models, Seat, scripted
from tests.host.screen import CTRL_C, CTRL_D, Screen, screen

RULES: Final = r"""
rules:
  - when: {user: "^hang", last: user}
    reply: {hang: true}
  - when: {user: "forge", last: user}
    reply: {text: "a\e]0;title\a\e[2Jb &#x202e;c"}
  - when: {user: "halves", last: user}
    reply: {text: ["One half.\n\n", "Never said."], delay_ms: 600000}
  - when: {user: "wide", last: user}
    reply: {text: "word word word word word word word word word word word word word word word word word word word"}
  - when: {user: "write (?P<name>[\\w.]+)", last: user}
    reply: {calls: [{tool: write, arguments: {path: "${user.name}", content: new}}]}
  - when: {user: "read (?P<name>\\S+)", last: user}
    reply: {calls: [{tool: read, arguments: {path: "${user.name}"}}]}
  - when: {user: "slow", last: user}
    reply: {text: "letters come", chunk_chars: 2, delay_ms: 50}
  - when: {user: "print", last: user}
    reply: {calls: [{tool: bash, arguments: {command: "echo printed"}}]}
  - when: {last: tool}
    reply: {text: "It says ${tool}"}
  - reply: {text: "# Primes\n\nThese are **three**:\n\n- two\n- three\n- five\n", chunk_chars: 5}
"""
CHOICES: Final = "[y] once, [s] this session, [n] no, [?] all lines"
CHOICES_BELOW: Final = "[y] once, [n] no, [?] all lines"
PASTED: Final = "\x1b[200~{}\x1b[201~"
NARROW: Final = 40
PROMPT: Final = "\n> "


@pytest.fixture(scope="module")
def models() -> Generator[Models]:
    """Models that answer, call tools, and hang."""
    with scripted(RULES) as models:
        yield models


@pytest.fixture
def home(seat: Seat, models: Models) -> Generator[Seat]:
    """A person with a model, whose sessions ask; the background host is stopped behind the test."""
    seat.folder = seat.home / "project"
    seat.folder.mkdir()
    models.configure(seat.data)
    yield seat
    end_background(seat)


def written(seat: Seat) -> Path:
    """The file that the model wants to write."""
    assert seat.folder is not None
    return seat.folder / "new.txt"


def begun(shown: Screen) -> str:
    """Wait for the first prompt of a new session, and return its id."""
    shown.until("session ")
    session_id = shown.until("\n").strip()
    shown.until("> ")
    return session_id


def kill_host(seat: Seat) -> None:
    """End the background host as a power cut would."""
    os.kill(json.loads((seat.data / "host.json").read_text("utf-8"))["pid"], signal.SIGKILL)


def test_a_reply_is_shown_as_markdown_and_the_chat_is_left_and_taken_up_again(home: Seat) -> None:
    """The host is started on the way; the history of lines is the person's alone; the last items come back."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        shown.enter("primes,\\")
        shown.until("… ")
        shown.enter("please")
        reply = shown.until(PROMPT)
        assert "Primes" in reply
        assert "These are three:" in reply
        assert "• two" in reply
        assert "#" not in reply
        assert "**" not in reply
        shown.type(CTRL_D)
        assert shown.ended() == 0
    history = home.data / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "please" in history.read_text("utf-8")
    (first, *_) = home.run("session", "items", session_id, "--json").json["items"]
    assert first["text"] == "primes,\nplease"
    with screen(home, "chat", session_id) as shown:
        shown.until("These are **three**")
        shown.until("> ")
        shown.enter("/quit")
        assert shown.ended() == 0


def test_a_session_of_a_chat_is_called_by_what_is_first_said_in_it(home: Seat) -> None:
    """Sessions that are all untitled cannot be told apart; one that has a title keeps it."""
    with screen(home, "chat", "--mode", "ask") as shown:
        begun(shown)
        for line in ("primes, please", "slow", "/new other", "primes again"):
            shown.enter(line)
            shown.until(PROMPT)
    titles = [one["title"] for one in home.run("session", "list", "--json").json["sessions"]]
    assert sorted(titles) == ["other", "primes, please"]


def test_a_tool_call_runs_after_the_person_has_said_yes_and_not_before(home: Seat) -> None:
    """What was typed before the question was seen does not answer it."""
    with screen(home, "chat", "--mode", "ask") as shown:
        begun(shown)
        shown.enter("write new.txt")
        asked = shown.until(CHOICES)
        assert shown.has_rung
        assert "new.txt" in asked
        assert not written(home).exists()
        for words in ("perhaps", "you must not", "stop!"):
            shown.enter(words)
            shown.until("That is no answer.")
        shown.enter("?")
        shown.until(CHOICES)
        shown.enter("Yes")
        shown.until("Approved once.")
        shown.until("It says")
        assert written(home).read_text("utf-8") == "new"


def test_a_call_that_is_denied_with_a_note_does_not_run_and_its_model_is_told(home: Seat) -> None:
    """The note is the next line."""
    with screen(home, "chat", "--mode", "ask", "--no-bell") as shown:
        begun(shown)
        shown.enter("write new.txt")
        shown.until(CHOICES)
        assert not shown.has_rung
        shown.enter("n")
        shown.until("Why not?")
        shown.enter("use another name")
        shown.until("Denied.")
        assert "· write:" in shown.until("It says")
        assert "use another name" in shown.until(PROMPT)
        assert not written(home).exists()


def test_a_question_that_is_answered_elsewhere_ends_with_a_line_that_says_so(home: Seat) -> None:
    """Two terminals, one answer."""
    with screen(home, "chat", "--mode", "ask") as shown:
        begun(shown)
        shown.enter("write new.txt")
        shown.until(CHOICES)
        (asked,) = home.run("approve", "--json").json["requests"]
        assert home.run("approve", asked["requestId"]).status == 0
        shown.until("It was answered elsewhere")
        shown.until("It says")
        assert written(home).exists()


def test_a_run_at_a_terminal_asks_in_place(home: Seat) -> None:
    """No second terminal is needed; for this session the same call is not asked about again."""
    with screen(home, "run", "write new.txt", "--mode", "ask") as shown:
        shown.until(CHOICES)
        assert not written(home).exists()
        shown.enter("s")
        shown.until("Approved for this session.")
        shown.until("It says")
        assert shown.ended() == 0
    assert written(home).exists()
    assert len(home.run("grants", "--json").json["grants"]) == 1


def test_what_was_typed_before_a_question_does_not_answer_it(home: Seat) -> None:
    """A person who types ahead has not seen it."""
    with screen(home, "run", "write new.txt", "--mode", "ask") as shown:
        shown.enter("y")
        shown.until(CHOICES)
        shown.enter("perhaps")
        shown.until("That is no answer.")
        assert "Approved" not in shown.shown
        assert not written(home).exists()


def test_ctrl_d_in_a_question_leaves_it_open_for_another_terminal(home: Seat) -> None:
    """The end of all lines is no answer."""
    with screen(home, "run", "write new.txt", "--mode", "ask") as shown:
        shown.until(CHOICES)
        shown.type(CTRL_D)
        session_id = shown.until("The turn goes on: `coterie tail ses_") + shown.until("`")
        assert shown.ended() != 0
    with screen(home, "chat", "ses_" + session_id.rpartition("ses_")[2].rstrip("`")) as shown:
        shown.until(CHOICES)
        shown.type(CTRL_D)
        shown.until("goes on with it.")
        assert shown.ended() == 0
    assert len(home.run("approve", "--json").json["requests"]) == 1
    assert not written(home).exists()


def test_a_prompt_that_waits_asks_in_place(home: Seat) -> None:
    """As `run` does."""
    assert home.run().status == 0
    session_id = home.run("session", "new", "--mode", "ask", "--json").json["session"]["id"]
    with screen(home, "prompt", session_id, "write new.txt", "--wait") as shown:
        shown.until(CHOICES)
        shown.enter("y")
        shown.until("It says")
        assert shown.ended() == 0
    assert written(home).exists()


def test_below_a_ceiling_no_leave_for_the_session_is_offered_or_taken(home: Seat) -> None:
    """Case 173. What a weaker session asks for is allowed once or not at all."""
    assert home.run().status == 0
    for title, mode in (("lead", "ask"), ("worker", "auto")):
        assert home.run("session", "new", "--title", title, "--mode", mode).status == 0
    assert home.run("send", "--from", "lead", "--to", "worker", "write new.txt").status == 0
    with screen(home, "chat", "worker") as shown:
        asked = shown.until("[?] all lines")
        assert asked.endswith(CHOICES_BELOW)
        assert "the ceiling of lead" in asked
        shown.enter("s")
        shown.until(f"That is no answer. {CHOICES_BELOW}")
        assert not written(home).exists()
        shown.enter("y")
        shown.until("Approved once.")
        shown.until("It says")
    assert home.run("grants", "--json").json["grants"] == []


def test_a_question_is_shown_in_two_terminals_and_answered_in_one(home: Seat) -> None:
    """The other one is told, and both show what comes of it."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        with screen(home, "chat", session_id) as other:
            other.until("> ")
            shown.enter("write new.txt")
            shown.until(CHOICES)
            other.enter("")
            other.until(CHOICES)
            other.enter("y")
            other.until("It says")
            shown.until("It was answered elsewhere")
            shown.until("It says")
    assert written(home).exists()


def test_lines_that_are_pasted_together_are_one_prompt(home: Seat) -> None:
    """Else each of them would begin a turn, or steer it."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        # A terminal marks what is pasted where it is asked to.
        assert b"\x1b[?2004h" in shown.raw
        shown.enter(PASTED.format("primes:\n\n/quit\nplease"))
        shown.until("These are three:")
        shown.until(PROMPT)
        (first, *rest) = home.run("session", "items", session_id, "--json").json["items"]
        assert (first["text"], len(rest)) == ("primes:\n\n/quit\nplease", 1)


def test_a_window_that_is_made_narrower_is_filled_and_not_overrun(home: Seat) -> None:
    """Neither by words nor by blanks behind them."""
    with screen(home, "chat", "--mode", "ask") as shown:
        begun(shown)
        shown.enter("wide")
        assert max(map(len, shown.until(PROMPT).splitlines())) > 2 * NARROW
        termios.tcsetwinsize(shown.terminal, (30, NARROW))
        shown.enter("wide")
        lines = shown.until(PROMPT).splitlines()[:-1]
        assert lines[-2].startswith("word")
        assert max(map(len, lines)) <= NARROW
        assert [line for line in lines if line.endswith(" ")] == []


def test_a_host_that_stops_in_the_middle_of_a_reply_is_started_again_by_the_next_prompt(home: Seat) -> None:
    """What had come stays on the screen; the person is told what became of the turn."""
    with screen(home, "chat", "--mode", "ask") as shown:
        begun(shown)
        shown.enter("halves")
        shown.until("One half.")
        assert home.run("down").status == 0
        shown.until("Trying again")
        shown.type(CTRL_C)
        shown.until(PROMPT)
        shown.enter("primes")
        shown.until("1 turn was interrupted by the last stop")
        assert "Never said." not in shown.until("These are three:")


def test_ctrl_c_stops_the_turn_and_not_the_chat(home: Seat, models: Models) -> None:
    """A line typed meanwhile was for that turn: it stays in the history, as what no model has read."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        shown.enter("hang")
        models.until(lambda server: server.answering > 0)
        shown.enter("primes")
        shown.until("The turn sees it with its next model request.")
        shown.type(CTRL_C)
        shown.until("Stopping the turn")
        shown.until("The turn was cancelled.")
        shown.until(PROMPT)
        said = home.run("session", "items", session_id, "--json").json["items"]
        assert [(one["text"], one.get("unread", False)) for one in said] == [("hang", False), ("primes", True)]
        shown.enter("primes")
        shown.until("These are three:")
        shown.until(PROMPT)
        shown.until("Ctrl-C again leaves.", press=CTRL_C)
        shown.until("goes on with it.", press=CTRL_C)
        assert shown.ended() == 0


def test_what_a_killed_host_holds_is_told_and_goes_on_by_release(home: Seat, models: Models) -> None:
    """A prompt waits behind a hanging turn; a power cut; the next chat starts a host and the person says go."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        shown.enter("hang")
        models.until(lambda server: server.answering > 0)
        assert home.run("prompt", session_id, "primes").status == 0
        kill_host(home)
        shown.until("Trying again")
        shown.type(CTRL_C)
        shown.until(PROMPT)
        shown.enter("/queue")
        shown.until("primes")
        shown.until("1 waiting, held since the last stop of the host")
        shown.until("> ")
        shown.enter("/release")
        shown.until("Released 1 session.")
        shown.until("These are three:")


def test_what_happened_at_the_prompt_is_shown_once(home: Seat) -> None:
    """A second terminal works on the same session; its live text is old when the first one looks again."""
    with screen(home, "chat", "--mode", "auto") as shown:
        session_id = begun(shown)
        for text in ("primes", "print", "primes"):
            home.run("run", text, "--session", session_id)
        shown.enter("")
        said = shown.until(PROMPT)
        assert said.count("· from you, elsewhere: ") == 3
        assert said.count("These are three:") == 2
        shown.enter("slow")
        told = shown.until(PROMPT)
        assert "letters come" in told
        assert "three" not in told
        assert "printed" not in told


def test_words_of_models_move_no_cursor_and_change_no_title(home: Seat) -> None:
    """Neither as they are nor as references of Markdown, which become characters after the reply was cleaned."""
    with screen(home, "chat", "--mode", "ask") as shown:
        begun(shown)
        before = len(shown.raw)
        shown.enter("forge")
        shown.until("[2Jb")
        shown.until(PROMPT)
        said = shown.raw[before:]
        assert b"\x1b[2J" not in said
        assert b"\x1b]" not in said
        assert "\u202e" not in said.decode()


def test_slash_commands_act_on_the_session_and_a_wrong_one_is_refused_with_the_nearest(home: Seat) -> None:
    """Each is a command of the program, about the session of the chat."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        for line, answer in (
            ("/help", "/release"),
            ("/relaese", "did you mean /release?"),
            ("/mode auto", "auto"),
            ("/mode wild", "accept-edits"),
            ("/status", session_id),
            ("/queue", "Nothing waits."),
            ("/release", "Nothing was held."),
            ("/new other", "session ses_"),
            ("/sessions", "other"),
            ("/switch nobody", "NOT_FOUND"),
            (f"/switch {session_id}", "> "),
            ("/status", session_id),
        ):
            shown.enter(line)
            shown.until(f"{line}\n")
            shown.until(answer)
        shown.enter("read none.txt")
        shown.until("· read {")
        shown.until("· read: ")


def test_commands_work_while_a_turn_runs_and_are_not_said_to_it(home: Seat, models: Models) -> None:
    """Nobody wants a model to be told to quit; a path is no command."""
    with screen(home, "chat", "--mode", "ask") as shown:
        session_id = begun(shown)
        shown.enter("hang")
        models.until(lambda server: server.answering > 0)
        for line, answer in (
            ("/status", session_id),
            ("/staus", "did you mean /status?"),
            ("/switch other", "A turn runs here"),
            ("/items", "hang"),
            ("/etc/hosts", "The turn sees it"),
        ):
            shown.enter(line)
            shown.until(f"{line}\n")
            shown.until(answer)
        shown.enter("/quit")
        shown.until("goes on with it.")
        assert shown.ended() == 0
    said = home.run("session", "items", session_id, "--json").json["items"]
    assert [one["text"] for one in said if one["kind"] == "person"] == ["hang"]
    assert home.run("status", session_id, "--json").json["status"] == "running"


def test_without_a_terminal_chat_refuses_and_names_run(home: Seat) -> None:
    """Nothing is started for a pipe."""
    assert "`coterie run" in home.run("chat", stdin="hi\n").fault("INVALID_ARGUMENT", 2)
    as_json = home.run("chat", "--json")
    assert as_json.status == 2
    assert "coterie run --json" in as_json.err
    assert not (home.data / "host.json").exists()
