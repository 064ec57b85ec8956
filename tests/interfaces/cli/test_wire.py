"""What happens when the host, or the way to it, misbehaves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.cli.conftest import (
    BOUND_S,
    BREAK,
    MESSAGE,
    PROGRAM,
    SESSION,
    Line,
    Stub,
    change,
    failure,
    running_program,
    write_host,
)

from coterie.core.errors import HostUnavailableError
from coterie.interfaces.cli.dial import Event, parse
from coterie.interfaces.cli.follow import Lost, Opened, Start, follow

HOST = """
import http.server, json, os, signal, sys
from pathlib import Path
data, epoch, stubborn = Path(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def do_POST(self):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"ok": True, "epoch": epoch}}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
def stop(*args):
    if stubborn: return
    (data / "host.json").unlink()
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def test_no_host_is_told_with_what_to_do(line: Line, data: Path) -> None:
    """The directory is named, for another one may have a host."""
    found = line("session", "list")
    assert found.exit_code == 1
    assert found.stderr.startswith(f"HOST_UNAVAILABLE: No host runs on {data}; start one with `coterie up")
    assert found.stdout == ""


def test_a_host_that_died_is_not_called(line: Line, data: Path) -> None:
    """Another program may listen on its port by now, and would be given the token."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait(BOUND_S)
    write_host(data, "http://127.0.0.1:1", pid=gone.pid)
    found = line("session", "list")
    assert found.exit_code == 1
    assert f"process {gone.pid} does not run" in found.stderr


def test_a_host_that_does_not_answer_is_told(line: Line, data: Path) -> None:
    """One line, no traceback."""
    write_host(data, "http://127.0.0.1:1")
    found = line("session", "list")
    assert found.exit_code == 1
    assert found.stderr.startswith("HOST_UNAVAILABLE: ")
    assert "refused" in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"url": 1}', "\x00"])
def test_a_host_file_that_is_none_is_told(line: Line, data: Path, text: str) -> None:
    """A person may have edited it."""
    (data / "host.json").write_text(text, "utf-8")
    found = line("session", "list")
    assert found.exit_code == 1
    assert found.stderr.startswith("HOST_UNAVAILABLE: ")
    assert "host.json" in found.stderr


def test_a_missing_token_is_told(line: Line, data: Path) -> None:
    """It belongs to the account that started the host."""
    write_host(data, "http://127.0.0.1:1")
    (data / "token").unlink()
    found = line("session", "list")
    assert found.exit_code == 1
    assert "token" in found.stderr


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"{}", b'{"result": 3}'])
@pytest.mark.parametrize("status", [200, 404])
def test_a_foreign_server_is_told_from_a_host(line: Line, stub: Stub, body: bytes, status: int) -> None:
    """Its answer is not read as one of ours."""
    stub.status = status
    stub.answers = [body]
    found = line("session", "list")
    assert found.exit_code == 1
    assert found.stderr.count("\n") == 1
    assert found.stderr.split(":")[0] in {"HOST_UNAVAILABLE", "INTERNAL"}


@pytest.mark.parametrize(
    ("code", "status"), [("INVALID_ARGUMENT", 2), ("NOT_FOUND", 1), ("HOST_RUNNING", 3), ("FROM_A_NEWER_HOST", 1)]
)
def test_a_refusal_ends_with_the_status_of_its_code(line: Line, stub: Stub, code: str, status: int) -> None:
    """A code that this program does not know is shown all the same."""
    stub.answers = [failure(code, "No.")]
    found = line("session", "list")
    assert (found.exit_code, found.stderr) == (status, f"{code}: No.\n")


def test_an_error_names_candidates_and_limits_that_its_text_does_not(line: Line, stub: Stub) -> None:
    """What a person may do next has to be on the line."""
    stub.answers = [failure("QUEUE_FULL", "Full.", limit="inbox_max", value=8, candidates=["a", "b"])]
    assert line("session", "list").stderr == "QUEUE_FULL: Full. (candidates: a, b; limit: inbox_max = 8)\n"
    stub.answers = [failure("NOT_FOUND", "No x. Near: a, b.", candidates=["a", "b"])]
    assert line("session", "list").stderr == "NOT_FOUND: No x. Near: a, b.\n"
    told = json.loads(line("session", "list", "--json").stderr)
    assert told == {
        "errorCode": "NOT_FOUND",
        "message": "No x. Near: a, b.",
        "retryable": False,
        "candidates": ["a", "b"],
    }


@pytest.mark.parametrize("first", [BREAK, failure("STORAGE_UNKNOWN", "?"), failure("HOST_UNAVAILABLE", "?")])
def test_a_mutation_of_unknown_outcome_is_repeated_with_its_key(line: Line, stub: Stub, first: bytes) -> None:
    """With the key the host does it once, however often it hears of it."""
    stub.says(first, {"released": 1})
    found = line("release")
    assert (found.exit_code, found.stdout) == (0, "Released 1 session.\n"), found.output
    assert len(stub.calls) == 2
    assert stub.calls[0] == stub.calls[1]
    assert stub.calls[0][1]["idempotencyKey"]


def test_a_mutation_is_not_repeated_for_ever(line: Line, stub: Stub) -> None:
    """Twice is enough to bridge a broken connection."""
    stub.says(BREAK)
    assert line("release").stderr.startswith("HOST_UNAVAILABLE: ")
    assert len(stub.calls) == 2


def test_each_command_has_a_key_of_its_own(line: Line, stub: Stub) -> None:
    """Two prompts with the same words are two prompts."""
    stub.says({"released": 0})
    line("release")
    line("release")
    assert stub.calls[0][1]["idempotencyKey"] != stub.calls[1][1]["idempotencyKey"]


def test_a_long_wait_is_made_of_short_calls(line: Line, stub: Stub) -> None:
    """No connection has to last for an hour."""
    nap: dict[str, Any] = {"timedOut": True, "messages": [{"id": "msg_1", "status": "running", "sessionId": SESSION}]}
    stub.says(nap, nap, {**nap, "timedOut": False})
    found = line("wait", MESSAGE, "--any", "--json")
    assert found.exit_code == 0
    assert [params["timeoutMs"] <= 25_000 for _, params in stub.calls] == [True] * 3
    assert stub.calls[0][1]["mode"] == "any"


@pytest.mark.parametrize("words", [("wait",), ("wait", "msg_1", "--idle", "lead")])
def test_wait_takes_messages_or_a_session(line: Line, words: tuple[str, ...]) -> None:
    """Both at once is no question that the host answers."""
    assert line(*words).exit_code == 2


def test_options_of_the_home_page_are_not_dropped_before_a_command(line: Line, data: Path) -> None:
    """`coterie --data D down` must not stop the host of another directory."""
    found = line("--data", str(data), "session", "list")
    assert found.exit_code == 2
    assert "behind the name of the command" in found.stderr


@pytest.mark.parametrize("words", [(), ("run", "hi")])
def test_a_host_is_started_where_none_runs(line: Line, stub: Stub, data: Path, words: tuple[str, ...]) -> None:
    """The first use of the program needs no second terminal."""
    (data / "host.json").unlink()
    line.surroundings.start = lambda data: write_host(data, stub.url)
    stub.answers = [failure("INTERNAL", "far enough")]
    found = line(*words)
    assert line.surroundings.started == [data]
    assert "Started a host" in found.stderr
    assert found.stderr.endswith("INTERNAL: far enough\n")


def test_events_are_read_as_the_standard_says() -> None:
    """Comments, several data lines, missing blanks and an unfinished end."""
    text = b': beat\r\n\r\nevent:change\r\nid: 7\r\ndata: {"a":\r\ndata: 1}\r\n\r\nretry: 5\n\ndata: {}\n\ndata: {"b"'
    assert list(parse(text.splitlines(keepends=True))) == [Event("change", "7", {"a": 1}), Event("message", "", {})]


def test_a_stream_goes_on_behind_the_last_event(stub: Stub, data: Path) -> None:
    """Nothing is shown twice and nothing is left out, and the pauses grow while nothing comes."""
    stub.events = [change(5) + change(6), change(7), b"", b"", change(8)]
    pauses = list[float]()
    seen = list[str]()
    with closing(follow(Start(data, SESSION, "4"), pause=pauses.append)) as followed:
        for happened in followed:
            if isinstance(happened, Event):
                seen.append(happened.id)
            if seen[-1:] == ["8"]:
                break
    assert seen == ["5", "6", "7", "8"]
    assert [path.rpartition("=")[2] for path in stub.streams] == ["4", "6", "7", "7", "7"]
    assert pauses == [0.1, 0.1, 0.2, 0.5]


def test_a_stream_finds_a_host_that_starts_again_elsewhere(stub: Stub, data: Path) -> None:
    """With port 0 each start has another address."""
    stub.events = [change(5), change(6)]
    write_host(data, stub.url)
    followed = follow(Start(data, None, None), pause=lambda _: write_host(data, stub.url))
    with closing(followed):
        assert next(followed) == Opened(again=False, hang_up=followed.close)
        assert isinstance(next(followed), Event)
        (data / "host.json").unlink()
        assert isinstance(next(followed), Lost)
        assert next(followed) == Opened(again=True, hang_up=followed.close)


def test_tail_prints_one_json_a_line_and_ends_on_an_interrupt(stub: Stub, data: Path) -> None:
    """Ctrl-C is the way to end it, not a fault of it."""
    delta = json.dumps({"sessionId": SESSION, "turnId": "turn_1", "text": "hi"})
    stub.events = [b"event: cursor\nid: 4\ndata: {}\n\n" + change(5), f"event: delta\ndata: {delta}\n\n".encode()]
    with running_program("tail", SESSION, "--data", str(data), "--json") as running:
        assert running.stdout is not None
        lines = [json.loads(running.stdout.readline()) for _ in range(2)]
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=BOUND_S)
    assert lines[0]["event"] == "change"
    assert (lines[0]["id"], lines[0]["ref"]) == ("5", "turn_5")
    assert lines[1] == {"event": "delta", "sessionId": SESSION, "turnId": "turn_1", "text": "hi"}
    assert running.returncode == 130
    assert "Traceback" not in said


def test_tail_tells_what_has_become_of_what_has_changed(stub: Stub, data: Path) -> None:
    """An id alone tells a person nothing; titles stay on their line, and a gap is told."""
    delta = json.dumps({"sessionId": SESSION, "turnId": "turn_1", "text": "a\n\x1b[2J"})
    stub.says(
        {"turnId": "turn_5", "kind": "task", "status": "failed", "errorCode": "PROVIDER_AUTH"},
        {"session": {"title": "A\nB"}},
        {"message": sent("msg_6", "C\nD")},
    )
    stub.events = [
        change(5) + f"event: delta\ndata: {delta}\n\n".encode(),
        change(6).replace(b"turn_6", b"msg_6").replace(b'"turn"', b'"message"'),
        b"event: reset\nid: 9\ndata: {}\n\n",
    ]
    with running_program("tail", SESSION, "--data", str(data)) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(3)]
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=BOUND_S)
    assert lines[0] == "now A B task turn failed PROVIDER_AUTH\n"
    assert lines[1] == "now C D → other task running: Count.\n"
    assert "gone" in lines[2]
    assert "The host ended the stream. Trying again in 0.1 s." in said
    assert "Connected again." in said


def test_tail_goes_on_where_a_session_is_deleted(stub: Stub, data: Path) -> None:
    """Its turns went with it; that it is gone is a line of its own."""
    gone = change(6).replace(b'"turn"', b'"deleted"')
    stub.answers = [failure("NOT_FOUND", "There is no such thing.")]
    stub.events = [change(5) + gone]
    with running_program("tail", SESSION, "--data", str(data)) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=BOUND_S)
    assert line == f"now {SESSION} deleted\n"


def sent(id_: str, title: str) -> dict[str, str]:
    """A message as the ledger has it."""
    told = {"sourceTitle": title, "targetTitle": "other", "kind": "task", "status": "running"}
    return {"id": id_, "sourceSessionId": SESSION, "targetSessionId": "ses_2", "content": "Count.", **told}


def test_an_interrupt_leaves_the_turn_and_says_so(stub: Stub, data: Path) -> None:
    """Ctrl-C stops the watching, not the work."""
    receipt = {"inputId": "inp_1", "turnId": "turn_1", "status": "running"}
    stub.says({"session": {"id": SESSION, "revision": 3}}, {"items": []}, receipt)
    stub.events = [b'event: delta\ndata: {"turnId": "turn_1", "text": "hi\\n"}\n\n']
    with running_program("prompt", SESSION, "hi", "--wait", "--data", str(data)) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "hi\n"
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=BOUND_S)
    assert running.returncode == 130
    assert f"`coterie interrupt {SESSION}` stops it" in said
    assert "Traceback" not in said


def test_an_interrupt_leaves_a_queued_prompt_and_says_so(stub: Stub, data: Path) -> None:
    """To interrupt the session would stop another turn than this one's."""
    receipt = {"inputId": "inp_1", "status": "queued", "position": 1}
    queue = {"blockedBy": "running", "inputs": [{"inputId": "inp_1"}]}
    stub.says({"session": {"id": SESSION, "revision": 3}}, {"items": []}, receipt, queue)
    with running_program("prompt", SESSION, "hi", "--wait", "--data", str(data)) as running:
        assert running.stderr is not None
        assert "Queued at position 1" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=BOUND_S)
    assert running.returncode == 130
    assert f"`coterie queue remove {SESSION} inp_1` takes it out" in said


def test_a_stream_is_not_hoped_for_for_ever(stub: Stub, data: Path) -> None:
    """A script must not hang on a host that stays away."""
    stub.events = [change(5)]
    pauses = list[float]()
    followed = follow(Start(data, SESSION, "4", tries_max=2), pause=pauses.append)
    with closing(followed):
        assert next(followed) == Opened(again=False, hang_up=followed.close)
        (data / "host.json").unlink()
        with pytest.raises(HostUnavailableError):
            list(followed)
    assert len(pauses) == 2


@contextmanager
def hosting(data: Path, epoch: int, *more: str) -> Generator[subprocess.Popen[str]]:
    """A process that answers as a host of the first epoch, whatever its own is."""
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(data), str(epoch), *more], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        write_host(data, f"http://127.0.0.1:{host.stdout.readline().strip()}", pid=host.pid)
        try:
            yield host
        finally:
            host.kill()


def test_down_stops_the_host_and_waits_for_its_end(line: Line, data: Path) -> None:
    """A second `up` right after it must find the directory free."""
    with hosting(data, 1) as host:
        found = line("down", "--json")
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout) == {"stopped": True, "pid": host.pid}
        assert not (data / "host.json").exists()
        assert host.wait(BOUND_S) == 0


def test_down_stops_no_process_that_has_not_proved_to_be_the_host(line: Line, data: Path) -> None:
    """Case 104: a number in a file may be another program's by now."""
    with hosting(data, 2) as host:
        found = line("down")
        assert found.exit_code == 1
        assert "nothing was stopped" in found.stderr
        assert host.poll() is None


def test_down_does_not_wait_for_ever(line: Line, data: Path) -> None:
    """A host that does not end is named."""
    with hosting(data, 1, "stubborn") as host:
        found = line("down", "--timeout", "0.1")
        assert found.exit_code == 1
        assert f"The host {host.pid} has not ended within 0.1 s" in found.stderr


def test_down_without_a_host_says_so(line: Line) -> None:
    """There is nothing to stop, and a script may want to know."""
    assert line("down").stderr.startswith("HOST_UNAVAILABLE: No host runs")


def test_a_locale_without_the_characters_does_not_end_a_command(stub: Stub, data: Path) -> None:
    """A title may have any character; a terminal may not."""
    item = {"number": 1, "turnId": "turn_1", "kind": "reply", "createdAt": "now", "text": "réader 読"}
    stub.says({"items": [item]})
    for more in ((), ("--json",)):
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM, "session", "items", SESSION, "--data", str(data), *more],
            env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            timeout=BOUND_S,
            check=False,
        )
        assert (found.returncode, found.stderr) == (0, b"")
        assert b"ader" in found.stdout
        if more:
            assert json.loads(found.stdout)["items"] == [item]


def test_the_program_starts_without_what_only_a_host_needs() -> None:
    """Each start of each command pays for each import."""
    # What measures coverage loads a database of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # noqa: TID251 - handed on
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import coterie.interfaces.cli.app"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "coterie.interfaces.cli.app" in loaded
    heavy = {"fastapi", "pydantic", "pydantic_ai", "uvicorn", "starlette", "sqlite3", "openai", "anthropic", "httpx2"}
    assert not loaded & heavy
