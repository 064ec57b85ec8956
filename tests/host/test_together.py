"""Sessions that work together on files and commands, seen and answered by a person at a terminal."""

import json
import os
import secrets
import select
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.host.program import BOUND_S, Host, Process, Seat, scripted
from tests.host.projects import commit, git, worker_seat

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="nothing tells here what a process was started with")
MARK: Final = f"mark-{secrets.token_hex(16)}"
"""In the command line and the variables of all that delegations run."""
STAY: Final = f"export MARK={MARK}; exec 3> pipe; sleep 1000 & (sleep 1000; true) & echo >&3; wait"
BROKEN, HANGING, QUICK, STAYING = 1, 1, 3, 5
PARTS: Final = [
    *({"prompt": "break"} for _ in range(BROKEN)),
    *({"prompt": "hang"} for _ in range(HANGING)),
    *({"prompt": "quick"} for _ in range(QUICK)),
    *({"prompt": "stay", "agent": "shell"} for _ in range(STAYING)),
]
SHARES: Final = json.dumps([{"tool": "task", "arguments": part} for part in PARTS])
RULES: Final = r"""
rules:
  - when: {last: user, user: '^Let (?P<one>\w+) and (?P<two>\w+) replace (?P<old>\w+ in \S+)'}
    reply:
      calls:
        - tool: session_task
          arguments: {action: spawn, title: "${user.one}", task: "${user.one} for ${user.old}"}
        - tool: session_task
          arguments: {action: spawn, title: "${user.two}", task: "${user.two} for ${user.old}"}
  - when: {last: user, user: '"content": "(?P<new>\w+) for (?P<old>\w+) in (?P<path>[\w.]+)"'}
    reply:
      calls: [{tool: edit, arguments: {path: "${user.path}", old: "${user.old}", new: "${user.new}"}}]
  - when: {last: user, user: '^Let worker'}
    reply: {calls: [{tool: session_task, arguments: {action: list}}]}
  - when: {requests_since_user: 1, user: '^Let worker (?P<task>.+)'}
    capture: {id: {from: tool_results, pattern: '"sessionId": ?"(ses_\w+)", ?"title": ?"worker"'}}
    reply:
      calls:
        - tool: session_task
          arguments: {action: send, sessionId: "${id}", message: "${user.task}", kind: task}
  - when: {last: user, user: '"content": "write (?P<path>\S+)"'}
    reply: {calls: [{tool: write, arguments: {path: "${user.path}", content: "by a worker"}}]}
  - when: {user: '^break$'}
    reply: {error: {status: 400}}
  - when: {user: '^hang$'}
    reply: {hang: true}
"""
SCRIPT: Final = f"""{RULES}
  - when: {{last: user, user: '^Share it out'}}
    reply: {{calls: {SHARES}}}
  - when: {{last: user, user: '^stay$'}}
    reply: {{calls: [{{tool: bash, arguments: {{command: "{STAY}"}}}}]}}
  - reply: {{text: "Done."}}
"""


@pytest.fixture
def seat(tmp_path: Path) -> Generator[Seat]:
    """A person without a host yet."""
    with scripted(SCRIPT) as models:
        yield worker_seat(tmp_path / "home", models)


@pytest.fixture
def host(seat: Seat) -> Generator[Host]:
    """The person's host."""
    with seat.host(seat.data) as host:
        yield host


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that is committed."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "colours.txt").write_text("red\n", "utf-8")
    commit(folder, "first")
    return folder


def begin(host: Host, project: Path, title: str, mode: str) -> str:
    """Create a session and return its id."""
    created = host.ask("session.create", title=title, projectPath=str(project), permissionMode=mode)
    return cast("str", created["session"]["id"])


def until_asked(tail: Process) -> None:
    """Wait until a session has asked something."""
    while tail.said().get("kind") != "permission":
        pass


def test_two_workers_edit_one_line_and_the_second_is_merged_by_the_person(
    seat: Seat, host: Host, project: Path
) -> None:
    """Nothing reaches the files of a person by itself, and what the refusal advises leads out of the conflict."""
    file = project / "colours.txt"
    lead = begin(host, project, "lead", "auto")
    assert seat.run("prompt", lead, "Let green and blue replace red in colours.txt", "--wait").status == 0
    workers = {one["title"]: one["id"] for one in host.ask("session.list")["sessions"]}
    host.idle(*workers.values())
    branch = host.ask("session.get", sessionId=workers["blue"])["session"]["branch"]
    assert (file.read_text("utf-8"), git(project, "status", "--porcelain")) == ("red\n", "")

    assert seat.run("session", "apply", "green").status == 0
    assert file.read_text("utf-8") == "green\n"
    advice = seat.run("session", "apply", "blue").fault("CONFLICT")
    assert "In conflict: colours.txt." in advice
    assert f"commit what you have there and run `git merge {branch}`" in advice
    assert file.read_text("utf-8") == "green\n"
    assert git(project, "status", "--porcelain") == " M colours.txt\n"

    commit(project, "green")
    assert "colours.txt" in git(project, "merge", branch, status=1)
    file.write_text("green and blue\n", "utf-8")
    commit(project, "both")
    for act in (("apply", "blue"), ("drop", "green"), ("drop", "blue")):
        assert seat.run("session", *act).status == 0
    assert file.read_text("utf-8") == "green and blue\n"
    assert git(project, "branch", "--list", "coterie/*") == ""
    assert git(project, "status", "--porcelain") == ""


@guarantee("I11")
def test_a_worker_in_auto_asks_for_a_lead_in_ask_and_the_question_says_so(
    seat: Seat, host: Host, project: Path
) -> None:
    """Else the weaker one could have anything done by the stronger one."""
    lead, worker = begin(host, project, "lead", "ask"), begin(host, project, "worker", "auto")
    with seat.start("tail", worker, "--after", "0", "--json") as tail:
        assert seat.run("prompt", lead, "Let worker write notes.txt", "--wait").status == 0
        until_asked(tail)
    (question,) = seat.run("approve", "--json").json["requests"]
    told = [question[name] for name in ("sessionId", "tool", "subject", "mode", "ceilingSessionId", "ceilingTitle")]
    assert told == [worker, "write", "notes.txt", "ask", lead, "lead"]
    assert "worker: write notes.txt  (edit risk; mode ask, the ceiling of lead)" in seat.run("approve").out
    assert "approve it once" in seat.run("approve", question["requestId"], "--session").fault("PERMISSION_DENIED")
    assert not (project / "notes.txt").exists()

    assert seat.run("approve", question["requestId"], "--json").json["decision"] == "once"
    host.idle(worker)
    assert (project / "notes.txt").read_text("utf-8") == "by a worker"
    assert host.ask("session.get", sessionId=worker)["session"]["permissionMode"] == "auto"


def marked() -> list[str]:
    """Processes that have the mark in their command line or variables."""
    found = list[str]()
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if MARK.encode() in (process / "environ").read_bytes() + (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


def says(pipe: int) -> bytes:
    """What comes out of a pipe next; nothing when all who could write into it are gone."""
    assert select.select([pipe], [], [], BOUND_S)[0], "somebody lives and holds the pipe"
    return os.read(pipe, 1)


def lines_of(pipe: int, count: int) -> None:
    """Wait until so many lines have come out of a pipe."""
    while count > 0:
        count -= says(pipe).count(b"\n")


def reports(host: Host, session_id: str) -> list[dict[str, Any]]:
    """What the transcript has of delegations."""
    items = host.ask("session.items", sessionId=session_id, limit=512)["items"]
    return [item["delegation"] for item in items if item["kind"] == "report"]


@LINUX
@pytest.mark.parametrize("by", ["interrupt", "down"])
def test_delegations_that_hang_break_and_run_commands_all_end_with_their_turn(
    seat: Seat, project: Path, by: str
) -> None:
    """No process is left when the turn has ended or the host has stopped, and each delegation has a report."""
    agents = project / ".coterie" / "agents"
    agents.mkdir(parents=True)
    (agents / "shell.md").write_text("---\ndescription: Runs.\ntools: bash\n---\n", "utf-8")
    os.mkfifo(project / "pipe")
    pipe = os.open(project / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with seat.host(seat.data) as host, seat.start("tail", "--after", "0", "--json") as tail:
        session_id = begin(host, project, "lead", "auto")
        assert seat.run("prompt", session_id, "Share it out.").status == 0
        lines_of(pipe, STAYING)
        while len(reports(host, session_id)) < BROKEN + QUICK:
            tail.said()
        status = host.ask("collaboration.status", sessionId=session_id)
        assert len(status["delegations"]) == HANGING + STAYING
        assert len(marked()) >= 2 * STAYING

        assert seat.run(*({"interrupt": ["interrupt", session_id], "down": ["down"]}[by])).status == 0
        if by == "interrupt":
            host.idle(session_id)
            status = host.ask("collaboration.status", sessionId=session_id)
            assert (status["status"], status.get("delegations")) == ("cancelled", None)
        else:
            host.process.popen.wait(BOUND_S)
        assert marked() == []
        assert says(pipe) == b""
    os.close(pipe)
    with seat.host(seat.data) as host:
        ended = reports(host, session_id)
    expected = {"completed": QUICK, "failed": BROKEN, "stopped": HANGING + STAYING}
    assert Counter(one["status"] for one in ended) == expected
    assert len({one["id"] for one in ended}) == sum(expected.values())
