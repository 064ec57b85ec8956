"""Faults that hosts of agents are known for, as a process among others can meet them; each test names its case."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.contract.test_sqlite import open_sqlite
from tests.host.conftest import seat_in
from tests.host.program import Host, Models, RpcError, Seat, scripted

from coterie.bootstrap.engine import locked
from coterie.bootstrap.files import make_data_directory, read_token, write_private
from coterie.core.errors import ConfigInvalidError, DatabaseUnusableError
from coterie.testing.ledger import Ledger

HANG: Final = "never answer this"
SCRIPT: Final = f"""
rules:
  - when: {{user: "(?s){HANG}"}}
    reply: {{hang: true}}
  - when: {{user: look, last: user}}
    reply: {{calls: [{{tool: bash, arguments: {{command: "printf 'é\\\\377項'; pwd"}}}}]}}
  - reply: {{text: "Es war 項 😀."}}
"""
STRICT: Final = {"LC_ALL": "C", "PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error::EncodingWarning"}
"""A locale that says nothing, in which each file must be opened with its encoding."""
CLIENTS: Final = 8
EACH: Final = 25
PLACES: Final = 120


@pytest.fixture(scope="module")
def models() -> Generator[Models]:
    """A model that looks around, answers, or never does."""
    with scripted(SCRIPT) as models:
        yield models


@dataclass(frozen=True)
class Crowd:
    """A host with a session to which many have written at once, more than there are places for."""

    seat: Seat
    host: Host
    full: str
    """The session: it runs something that never ends."""
    accepted: dict[str, str]
    """Content by message."""
    refused: list[str]
    """The code of each refusal."""


def _write(host: Host, target: str, client: int) -> tuple[dict[str, str], list[str]]:
    """Send to *target* as others do; returns what was accepted, and the codes of what was not."""
    source, accepted, refused = host.session(f"client {client}"), dict[str, str](), list[str]()
    for number in range(EACH):
        content = f"{client}-{number} ".ljust(8_000, "項")
        given = {"kind": "message", "idempotencyKey": content[:8]}
        try:
            sent = host.send(source, target, content, **given)
            accepted[sent["messageId"]] = content
            if number % 5 == 0:
                # As a client that did not hear the first answer.
                assert host.send(source, target, content, **given)["messageId"] == sent["messageId"]
        except RpcError as error:
            refused.append(error.code)
    return accepted, refused


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory, models: Models) -> Generator[Crowd]:
    """Eight clients that write to one session."""
    folder = tmp_path_factory.mktemp("crowd")
    seat, data = seat_in(folder), folder / "data"
    models.configure(data, f"[limits]\ninbox_max = {PLACES}\n")
    with seat.host(data) as host, ThreadPoolExecutor(CLIENTS) as clients:
        full = host.session("full")
        host.ask("session.prompt", sessionId=full, text=HANG)
        models.until(lambda server: server.answering == 1)
        found = list(clients.map(partial(_write, host, full), range(CLIENTS)))
        accepted = {id_: content for one, _ in found for id_, content in one.items()}
        yield Crowd(seat, host, full, accepted, [code for _, codes in found for code in codes])


def test_many_who_write_to_one_session_at_once_lose_nothing(crowd: Crowd) -> None:
    """Cases 128 and 129: what is accepted is there, whole and once; with what was refused that is all there was."""
    host = crowd.host

    def kept(message_id: str) -> str:
        return cast("str", host.ask("collaboration.message", messageId=message_id)["message"]["content"])

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert list(clients.map(kept, crowd.accepted)) == list(crowd.accepted.values())
    assert len(set(crowd.accepted.values())) == PLACES
    assert Counter(crowd.refused) == {"AGENT_BUSY": CLIENTS * EACH - PLACES}
    assert host.ask("queue.list", sessionId=crowd.full)["waiting"] == PLACES


def _send(crowd: Crowd, door: str, source: str, target: str) -> tuple[str | None, dict[str, Any]]:
    """Send a task that is never answered through one of the doors; returns the code of a refusal, or the receipt."""
    given = {"asSessionId": source, "sessionId": target, "content": HANG, "kind": "task"}
    match door:
        case "rpc":
            try:
                return None, crowd.host.ask("collaboration.send", **given)
            except RpcError as error:
                return error.code, {}
        case "rest":
            with closing(crowd.host.connect()) as connection:
                connection.request("POST", "/api/v1/messages", json.dumps(given), crowd.host.headers())
                answer = cast("dict[str, Any]", json.loads(connection.getresponse().read()))
            return (answer["error"]["data"]["errorCode"], {}) if "error" in answer else (None, answer)
        case _:
            words = ("send", "--from", source, "--to", target, "--kind", "task", HANG)
            ended = crowd.seat.run(*words, "--json", "--data", crowd.host.data)
            return (json.loads(ended.err)["errorCode"], {}) if ended.status else (None, ended.json)


def test_every_door_starts_queues_refuses_and_answers_alike(crowd: Crowd) -> None:
    """Cases 21, 67, 69 and 216: a receipt comes before the work is done, and each sender gets its own answer."""
    doors, host = ("rpc", "rest", "cli"), crowd.host
    sources, targets = ({door: host.session(f"{what} {door}") for door in doors} for what in ("from", "for"))

    started, queued = ({door: _send(crowd, door, sources[door], targets[door]) for door in doors} for _ in range(2))
    refused = [_send(crowd, door, sources[door], crowd.full)[0] for door in doors]
    for target in targets.values():
        host.ask("collaboration.cancel", sessionId=target)
    host.idle(*sources.values(), *targets.values())

    assert [receipt["status"] for _, receipt in started.values()] == ["running"] * 3
    assert [(receipt["status"], receipt["position"]) for _, receipt in queued.values()] == [("queued", 1)] * 3
    assert refused == ["AGENT_BUSY"] * 3
    for door in doors:
        told = [host.completion(receipt["messageId"]) for _, receipt in (started[door], queued[door])]
        assert {(one["targetSessionId"], one["status"]) for one in told} == {(sources[door], "completed")}
        assert sorted(host.delivered(sources[door])) == sorted((one["content"], one["id"]) for one in told)


def test_a_name_means_who_has_it_when_something_is_sent(crowd: Crowd) -> None:
    """Case 43: one that was taken away means nobody, one that two have means neither, and nothing is sent."""
    host, source = crowd.host, crowd.host.session("alice's lead")
    first, second = host.session("alice"), host.session("bob")
    for session in (first, second):
        host.ask("session.rename", sessionId=session, title="carol")

    gone, twice = crowd.seat.run_all(
        *(("send", "--from", source, "--to", name, "hello", "--data", host.data) for name in ("bob", "carol"))
    )

    assert "bob" in gone.fault("NOT_FOUND")
    assert {first, second} <= set(twice.fault("INVALID_ARGUMENT", 2).replace(",", " ").split())
    assert [host.ask("collaboration.status", sessionId=one)["recentExchanges"] for one in (source, first, second)] == [
        [],
        [],
        [],
    ]


def test_names_and_texts_of_any_script_pass_in_any_surroundings(tmp_path: Path, models: Models) -> None:
    """Cases 139, 140, 145 and 147: no encoding is left to the locale, and no path has to be short."""
    data, home, project = (tmp_path / name for name in ("项 目 é", "家 é", "プロジェクト"))
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    for folder in (home, project, deep):
        folder.mkdir(parents=True)
    seat = Seat(home, {**STRICT, "TMPDIR": str(deep)})
    models.configure(data)
    title, asked = "Ünï 代理 עברית 😀", "look, s'il vous plaît: 項"
    with seat.host(data) as host:
        lead = cast("str", host.ask("session.create", title="lead 😀", permissionMode="auto")["session"]["id"])
        created = host.ask("session.create", title=title, projectPath=str(project), permissionMode="auto")
        worker = cast("str", created["session"]["id"])
        words = ("send", "--from", lead, "--to", title, "--key", "clé 項", "--json", asked)
        host.settled([seat.run(*words, "--data", data).json["messageId"]])
        host.idle(worker)
        items = host.ask("session.items", sessionId=worker)["items"]
        listed, shown, drawn = seat.run_all(
            ("session", "list", "--json", "--data", data),
            ("session", "items", title, "--data", data),
            ("map", title, "--data", data),
        )
        assert not host.process.err
    assert [one["text"] for one in items if one["kind"] == "session"] == [asked]
    assert [one["text"] for one in items if one["kind"] == "tool_result"] == [f"é\ufffd項{project}\nexit status 0"]
    assert {one["title"] for one in listed.json["sessions"]} == {"lead 😀", title}
    assert "Es war 項 😀." in shown.out
    assert (drawn.status, title in drawn.out) == (0, True)


def test_a_host_whose_system_knows_ascii_only_stores_all_texts_and_says_what_it_cannot_do(
    seat: Seat, tmp_path: Path, models: Models
) -> None:
    """Case 139: such a system can spell no other folder; that is told, and what is stored is whole all the same."""
    ascii_only = Seat(seat.home, {**STRICT, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    data, project = tmp_path / "项 目 é", tmp_path / "項"
    models.configure(data)
    project.mkdir()
    with ascii_only.host(data) as host:
        session = host.session("Ünï 代理 😀")
        with pytest.raises(RpcError) as caught:
            host.ask("session.create", projectPath=str(project))
        host.ask("session.prompt", sessionId=session, text="Grüße 項")
        host.idle(session)
        texts = [one["text"] for one in host.ask("session.items", sessionId=session)["items"]]
        listed, said = ascii_only.run_all(
            ("session", "list", "--data", data), ("prompt", session, "Grüße", "--data", data)
        )
    assert caught.value.code == "INVALID_ARGUMENT"
    assert texts == ["Grüße 項", "Es war 項 😀."]
    assert (listed.status, listed.out.isascii(), session in listed.out) == (0, True, True)
    assert "surrogate" in said.fault("INVALID_ARGUMENT", 2)


def _of_another_user(folder: Path) -> Path:
    """A folder that belongs to somebody else."""
    if os.geteuid():
        return Path("/usr")
    folder.mkdir()
    os.chown(folder, 12_345, -1)
    return folder


def test_a_directory_that_somebody_else_has_prepared_is_refused(tmp_path: Path) -> None:
    """Case 147: neither their folder nor a link in the place of a file of ours; what a link leads to stays as it is."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine", "utf-8")
    mine.chmod(0o644)
    for name in ("token", "lock", ".host.json.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).symlink_to(mine)

    with pytest.raises(ConfigInvalidError, match=r"theirs|usr"):
        make_data_directory(_of_another_user(tmp_path / "theirs"))
    with pytest.raises(ConfigInvalidError, match="token"):
        read_token(tmp_path / "token")
    with pytest.raises(ConfigInvalidError, match="lock"), locked(tmp_path / "lock"):
        raise AssertionError("the lock is a file of somebody")
    with pytest.raises(OSError, match="symbolic"):
        write_private(tmp_path / ".host.json.new" / "host.json", "{}")

    assert (mine.read_text("utf-8"), mine.stat().st_mode & 0o777) == ("mine", 0o644)


async def test_a_start_waits_for_a_ledger_that_is_written_to_and_never_goes_on_without_it(tmp_path: Path) -> None:
    """Case 131: it says what it has waited for, and the next start has everything."""
    path = tmp_path / "coterie.db"
    first, refused, again = (Ledger(open_sqlite, path) for _ in range(3))
    await first.start()
    session = await first.session("kept")
    await first.store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnusableError, match=r"database is locked.*Close the program"):
            await refused.start()
        other.execute("ROLLBACK")

    await again.start()

    assert (await again.known(session)).title == "kept"
    assert (await again.prompt(session)).turn_id is not None
    await again.store.close()


def test_a_command_that_does_not_say_who_sends_is_told_so(seat: Seat) -> None:
    """Case 50: what is missing is named, with a status of its own, and no host has to run for that."""
    ended = seat.run("send", "--to", "reader", "hello")
    assert (ended.status, ended.out) == (2, "")
    assert "--from" in ended.err
