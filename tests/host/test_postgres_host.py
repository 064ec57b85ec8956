"""The program with its ledger on a server: the same promises, other words where the server is not fit for one."""

import signal
from collections.abc import Generator
from pathlib import Path
from typing import Final

import psycopg
import pytest
from tests.guarantees import guarantee
from tests.host.program import Models, Seat, scripted
from tests.postgres import needs_postgres, server

pytestmark = needs_postgres

HANG: Final = "never answer this"
SCRIPT: Final = f"""
rules:
  - when: {{user: "(?s){HANG}"}}
    reply: {{hang: true}}
  - reply: {{text: "All is well."}}
"""


@pytest.fixture
def models() -> Generator[Models]:
    """A model that answers, or never does."""
    with scripted(SCRIPT) as models:
        yield models


def on(url: str) -> str:
    """What a configuration file says of a ledger."""
    return f'[store]\nurl = "{url}"\n'


@guarantee("I7")
@guarantee("I9")
def test_a_host_on_postgresql_that_is_killed_goes_on_where_its_ledger_says(
    seat: Seat, models: Models, tmp_path: Path
) -> None:
    """Nothing but the ledger is left of it, and that is not in its data directory."""
    data, url = tmp_path / "data", server().fresh("host")
    models.configure(data, on(url))
    with seat.host(data) as host:
        lead, worker = host.session("lead"), host.session("worker")
        done = host.send(lead, worker, "Is all well?")["messageId"]
        assert [one["status"] for one in host.settled([done])] == ["completed"]
        host.idle(lead, worker)
        assert host.completion(done)["content"].count("All is well.") == 1
        cut_off, waiting = (host.send(lead, worker, content)["messageId"] for content in (HANG, "And then?"))
        models.until(lambda server: server.answering == 1)
        host.process.kill()
    assert not list(data.glob("coterie.db*"))

    with seat.host(data) as host:
        assert (host.about["interrupted"], host.about["held"]) == (1, 2)
        assert host.states([done, cut_off, waiting]) == ["completed", "interrupted", "queued"]
        elsewhere = tmp_path / "elsewhere"
        models.configure(elsewhere, on(url))
        second, checked, released = seat.run_all(
            ("up", "--data", elsewhere, "--port", "0", "--no-open"),
            ("verify", "--data", data, "--json"),
            ("release", "--data", data, "--json"),
        )
        assert "Another host has the ledger" in second.fault("HOST_RUNNING", 3)
        assert checked.json["ok"]
        assert released.json["released"] == 2
        assert [one["status"] for one in host.settled([waiting])] == ["completed"]
        host.idle(lead, worker)
        assert len(host.delivered(worker)) == len(host.delivered(lead)) == 3
        assert host.process.stop(signal.SIGTERM) == 0
        assert not host.process.err
    assert seat.run("verify", "--data", data, "--json").json["ok"]


def test_a_server_that_is_not_fit_for_a_ledger_is_told_in_one_line(seat: Seat, tmp_path: Path) -> None:
    """With its code and what to do, and never with the password."""
    unsafe = server().fresh("unsafe")
    with psycopg.connect(unsafe, autocommit=True) as connection:
        connection.execute("ALTER DATABASE unsafe SET synchronous_commit = off")
    urls = {"away": "postgresql://one:secret@127.0.0.1:1/db", "unsafe": unsafe, "empty": server().fresh("empty")}
    for name, url in urls.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(on(url), "utf-8")

    away, unsafe_up, unchecked, nothing = seat.run_all(
        ("up", "--data", tmp_path / "away", "--port", "0", "--no-open"),
        ("up", "--data", tmp_path / "unsafe", "--port", "0", "--no-open"),
        ("verify", "--data", tmp_path / "away"),
        ("verify", "--data", tmp_path / "empty"),
    )

    for ended in (away, unchecked):
        assert "cannot be reached" in ended.fault("STORAGE_ERROR")
        assert "secret" not in ended.err
    assert "synchronous_commit = on" in unsafe_up.fault("STORAGE_ERROR")
    assert "ledger" in nothing.fault("NOT_FOUND")
