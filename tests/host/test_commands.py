"""What commands of an agent see and leave behind, with a host that is a process of its own."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.host.program import BOUND_S, Host, Models, Seat, scripted

from coterie.bootstrap.files import COMMANDS
from coterie.runtime.tools.leftover import MARK
from coterie.runtime.tools.shell import can_confine

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="nothing tells here what a process was started with")
KEY: Final = "sk-of-the-vendor"
LOOK: Final = "env; cat /proc/$PPID/environ; cat $HOME/data/token $HOME/data/coterie.db"
STAY: Final = "trap '' TERM; exec 3> pipe; sleep 1000 & (sleep 1000; true) & echo $$ >&3; wait"
SCRIPT: Final = f"""
rules:
  - when: {{user: look, last: user}}
    reply: {{calls: [{{tool: bash, arguments: {{command: {json.dumps(LOOK)}}}}}]}}
  - when: {{user: stay, last: user}}
    reply: {{calls: [{{tool: bash, arguments: {{command: {json.dumps(STAY)}}}}}]}}
  - reply: {{text: "Done."}}
"""


@pytest.fixture
def data(seat: Seat) -> Path:
    """A data directory at home, not made yet."""
    return seat.home / "data"


@pytest.fixture
def models(data: Path) -> Generator[Models]:
    """A model that runs commands."""
    with scripted(SCRIPT) as models:
        models.configure(data)
        yield models


@pytest.fixture
def project(seat: Seat, models: Models) -> Path:
    """A folder to work in, with a pipe that tells who lives."""
    del models
    folder = seat.home / "project"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    return folder


def working(host: Host, project: Path, words: str) -> str:
    """Prompt a new session that may run commands; returns it."""
    created = host.ask("session.create", title=words, projectPath=str(project), permissionMode="auto")
    session_id = cast("str", created["session"]["id"])
    host.ask("session.prompt", sessionId=session_id, text=words)
    return session_id


def says(pipe: int) -> bytes:
    """What comes out of a pipe next; nothing when all who could write into it are gone."""
    assert select.select([pipe], [], [], BOUND_S)[0], "somebody lives and holds the pipe"
    return os.read(pipe, 100)


def test_a_command_sees_no_secret_of_its_host(seat: Seat, data: Path, project: Path) -> None:
    """Whatever it prints goes to a vendor: not the keys in the host's variables, nor the token, nor the ledger."""
    with Seat(seat.home, {"VENDOR_API_KEY": KEY}).host(data) as host:
        session_id = working(host, project, "look")
        host.idle(session_id)
        items = cast("list[dict[str, Any]]", host.ask("session.items", sessionId=session_id)["items"])
        (printed,) = [item["text"] for item in items if item["kind"] == "tool_result"]
        health, got = host.ask("app.health"), host.ask("session.get", sessionId=session_id)
        assert f"HOME={seat.home}" in printed
        assert not list((data / COMMANDS).iterdir())
        own_variables = printed.partition("/proc/")[0]
        assert KEY not in own_variables
        if can_confine():
            assert KEY not in printed
            assert host.token not in printed
            assert "SQLite format" not in printed
        assert bool(health.get("unconfined")) is bool(got.get("unconfined")) is not can_confine()


@LINUX
@guarantee("I9")
def test_the_commands_of_a_killed_host_end_at_the_latest_with_the_next_start(
    seat: Seat, data: Path, project: Path
) -> None:
    """Nobody waits for them any more, and the turn that started them is told as interrupted."""
    pipe = os.open(project / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with seat.host(data) as host:
            working(host, project, "stay")
            assert int(says(pipe)) > 0
            assert len(list((data / COMMANDS).iterdir())) == 1
            host.process.kill()
        assert not select.select([pipe], [], [], 0)[0], "they ended by themselves, so this shows nothing"
        with seat.host(data) as host:
            assert host.about["interrupted"] == 1
            assert says(pipe) == b""
            assert not list((data / COMMANDS).iterdir())
    finally:
        os.close(pipe)


@LINUX
def test_a_group_with_the_number_of_a_lost_command_is_left_alone(seat: Seat, data: Path) -> None:
    """Numbers of processes come again: by then they may be the person's own work."""
    marked = {**seat.environment(), MARK: "0" * 16}
    with (
        subprocess.Popen(["sleep", "1000"], start_new_session=True, env=seat.environment()) as other,
        subprocess.Popen(["sleep", "1000"], start_new_session=True, env=marked) as known,
    ):
        (data / COMMANDS).mkdir(parents=True)
        for group in (other.pid, known.pid):
            (data / COMMANDS / f"{group}-{'0' * 16}").touch()
        (data / COMMANDS / "of-somebody-else").touch()
        try:
            with seat.host(data):
                assert known.wait(BOUND_S) == -signal.SIGKILL
                assert other.poll() is None
                assert [one.name for one in (data / COMMANDS).iterdir()] == ["of-somebody-else"]
        finally:
            other.kill()
            known.kill()
