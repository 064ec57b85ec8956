"""What the README tells a person to type is typed here, so that it cannot go stale.

Only the data directory, the port, the key and the address of the model are the test's own. What would install something
is looked at, not run: `make package` installs.
"""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.host.conftest import end_background, seat_in
from tests.host.program import BOUND_S, Models, Seat, scripted

from coterie.settings import PORT

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "README.md").read_text("utf-8")
DATA: Final = "/tmp/coterie-try"
DEMO, TEST, FIRST, THEN, HOST, CALLS = BLOCKS = cast("list[str]", re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))

ANSWER: Final = "Two, three and five."
RULES: Final = f"""
api_key: the-key
rules:
  - when: {{user: "(?i)prime numbers"}}
    reply: {{text: "{ANSWER}"}}
  - reply: {{text: "Hello."}}
"""


@pytest.fixture(scope="module")
def models() -> Generator[Models]:
    """A model that lets in one key."""
    with scripted(RULES) as models:
        yield models


@pytest.fixture
def seat(tmp_path: Path, models: Models) -> Generator[Seat]:
    """A person with one key, in an empty folder, whose background host is stopped behind the test."""
    seat = seat_in(tmp_path)
    seat.folder = tmp_path / "project"
    seat.folder.mkdir()
    seat.variables = {"OPENAI_API_KEY": "the-key", "OPENAI_BASE_URL": f"{models.server.url}/v1"}
    yield seat
    end_background(seat)


def typed(seat: Seat, script: str) -> str:
    """Type *script* into a shell that finds `coterie` and `python3`, and return what was printed."""
    programs = seat.home / "bin"
    programs.mkdir()
    for name, words in (("coterie", "-m coterie "), ("python3", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words}"$@"\n', "utf-8")
        program.chmod(0o755)
    around = seat.environment()
    ended = subprocess.run(
        ["sh", "-eu"],
        check=False,
        capture_output=True,
        encoding="utf-8",
        input=script,
        env={**around, "PATH": f"{programs}:{around['PATH']}"},
        cwd=seat.folder,
        timeout=2 * BOUND_S,
    )
    assert ended.returncode == 0, ended
    return ended.stdout


def changed(text: str, **replacements: str) -> str:
    """Put the test's own values into *text*, each for something that is in it."""
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new)
    return text


def answers(text: str) -> list[dict[str, Any]]:
    """The results of calls, which are printed with nothing between them."""
    found = list[dict[str, Any]]()
    while text := text.lstrip():
        answer, end = json.JSONDecoder().raw_decode(text)
        found.append(answer["result"])
        text = text[end:]
    return found


@pytest.mark.parametrize(("block", "last"), [(DEMO, "/coterie demo"), (TEST, "/pytest")], ids=["demo", "test"])
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_what_the_page_lets_make_do_is_there(block: str, last: str, tmp_path: Path) -> None:
    """Each makes an environment of its own, so that only what it would run is asked."""
    (line,) = block.splitlines()
    make, *target = shlex.split(line)
    assert make == "make"
    would = [make, "--dry-run", "--no-print-directory", *target]
    # Without the variables by which the `make` that runs these tests speaks to its like.
    bare = seat_in(tmp_path).environment()
    done = subprocess.run(would, check=True, capture_output=True, encoding="utf-8", env=bare, cwd=ROOT)
    assert last in done.stdout.splitlines()[-1]


def test_one_key_and_one_command_answer(seat: Seat, models: Models) -> None:
    """The first minute of a person with a key: whether it is true decides whether there is a second."""
    seat.variables = {"ANTHROPIC_BASE_URL": models.server.url}
    install, rest = FIRST.split("\n", 1)
    assert install.startswith("pip install . ")
    assert typed(seat, changed(rest, **{"ANTHROPIC_API_KEY=…": "ANTHROPIC_API_KEY=the-key"})) == "Hello.\n"


def test_the_commands_after_it_do_what_stands_beside_them(seat: Seat) -> None:
    """`tail` is watched from the beginning, for all may be over when it comes; SESSION is the title that was given."""
    told = dict[str, str]()
    for line in THEN.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "coterie"
        if words == ["tail"]:
            with seat.start(*words, "--after", "0") as tail:
                told["tail"] = tail.line()
                tail.stop(signal.SIGINT)
            continue
        ended = seat.run(*("lead" if word == "SESSION" else word for word in words))
        assert ended.status == 0, ended
        told[" ".join(words[:1])] = ended.out
    assert list(told) == ["", "session", "prompt", "tail", "down"]
    assert "http://127.0.0.1:" in told[""]
    assert str(seat.folder) in told["session"]
    assert "ses_" in told["tail"]
    assert not (seat.data / "host.json").exists()
    assert (seat.data / "coterie.db").exists()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_two_terminals_carry_a_task_and_its_result(seat: Seat, tmp_path: Path) -> None:
    """The page's calls, and then its sentence below them: the same task again is a replay."""
    data = tmp_path / "data"
    program, *words = shlex.split(changed(HOST, **{DATA: str(data)}))
    assert program == "coterie"
    sent = re.search(r"TASK=\$\((rpc .*?) \| field ", CALLS, re.DOTALL)
    assert sent
    with seat.start(*words, "--port", "0", "--json") as host:
        url = host.said()["url"]
        calls = changed(CALLS, **{DATA: str(data), f"http://127.0.0.1:{PORT}": url})
        waited, result, again = answers(typed(seat, f"{calls}\n{sent[1]}\n"))
    assert [one["status"] for one in waited["messages"]] == ["completed"]
    assert (result["message"]["sourceTitle"], result["message"]["targetTitle"]) == ("lead", "worker")
    assert result["message"]["result"] == ANSWER
    assert (again["replayed"], again["messageId"]) == (True, result["message"]["id"])


def test_the_page_leads_nowhere_that_is_not_there() -> None:
    """A page that moved is missed by the first reader, not by its author."""
    targets = cast("list[str]", re.findall(r"\]\(([^)#:]+)\)", PAGE))
    assert len(targets) > len(BLOCKS)
    assert not [target for target in targets if not (ROOT / target).exists()]
