"""The first minutes of a person who has a key and has written no file."""

import signal
from collections.abc import Generator
from typing import Final

import pytest
from tests.host.conftest import end_background
from tests.host.program import Models, Seat, scripted

REPLY: Final = "Hello from the model."
WAYS: Final = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OLLAMA_HOST", "[[models]]")
"""How a model is found, as every text about none has to say."""


@pytest.fixture(scope="module")
def models() -> Generator[Models]:
    """A model that lets in one key."""
    with scripted(f'api_key: the-key\nrules:\n  - reply: {{text: "{REPLY}", chunk_chars: 5, delay_ms: 2}}\n') as models:
        yield models


@pytest.fixture
def home(seat: Seat) -> Generator[Seat]:
    """A person whose background host is stopped when the test has ended, however it ended."""
    yield seat
    end_background(seat)


def _openai(url: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "the-key", "OPENAI_BASE_URL": f"{url}/v1"}


def test_with_one_key_and_no_file_a_run_answers(home: Seat, models: Models) -> None:
    """The host is started on the way and stays; the second command finds it, and `down` ends it."""
    home.variables = _openai(models.server.url)
    ended = home.run("run", "hi")
    assert (ended.status, ended.out) == (0, f"{REPLY}\n"), ended
    assert "\x1b" not in ended.err
    assert str(home.data) in ended.err
    assert not (home.data / "config.toml").exists()

    home.variables = {}
    again = home.run("run", "and again", "--json").json
    assert (again["status"], again["text"]) == ("completed", REPLY)
    assert home.run("verify", "--json").json["ok"]

    assert home.run("down", "--json").json["stopped"]
    assert not (home.data / "host.json").exists()
    assert "coterie up" in home.run("session", "list").fault("HOST_UNAVAILABLE")


def test_another_vendors_key_does_as_well(home: Seat, models: Models) -> None:
    """The wire is another one; the person sees no difference."""
    home.variables = {"ANTHROPIC_API_KEY": "the-key", "ANTHROPIC_BASE_URL": models.server.url}
    told = home.run("run", "hi", "--json").json
    assert (told["status"], told["text"]) == ("completed", REPLY)


def test_without_a_key_every_way_to_one_is_named_and_the_host_still_runs(home: Seat) -> None:
    """Alone, `coterie` shows the host; a run then fails with the ways, and a start says them."""
    about = home.run("up", "--detach", "--port", "0", "--json").json
    alone = home.run()
    assert alone.status == 0
    assert f"{about['url']}/" in alone.out
    assert "coterie run" in alone.out
    assert "\x1b" not in alone.out

    ended = home.run("run", "hi")
    assert (ended.status, ended.out) == (1, "")
    (line,) = [line for line in ended.err.splitlines() if "MODEL_NOT_CONFIGURED" in line]
    assert not [way for way in WAYS if way not in line]
    (shown,) = home.run("--json").json["sessions"]
    assert (shown["title"], shown["status"]) == ("hi", "failed")

    # The way down is free for the next host as soon as it has ended.
    assert home.run("down", "--json").json == {"stopped": True, "pid": about["pid"]}
    with home.start("up", "--port", "0", "--no-open") as process:
        said = list[str]()
        while not said or "coterie down" not in said[-1]:
            said.append(process.line())
        assert not [way for way in WAYS if way not in " ".join(said)]
        assert home.run("session", "list", "--json").json["sessions"][0]["title"] == "hi"
        assert process.stop(signal.SIGINT) == 0
        assert not process.err
