"""What is wrong is told in one line with its code and what to do, and nothing is lost by it."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.host.conftest import end_background, seat_in
from tests.host.program import Ended, Host, Seat

KEYED: Final = """
api_key: the-right-key
rules:
  - reply: {text: "You are let in."}
"""
CONTENT_CHARS_MAX: Final = 65_536


@dataclass(frozen=True)
class Ground:
    """A host that runs, and the person beside it."""

    seat: Seat
    host: Host
    reader: str

    def run(self, *words: str, stdin: str = "") -> Ended:
        """Run a command on the host's data directory."""
        return self.seat.run(*words, "--data", self.host.data, stdin=stdin)

    def run_all(self, *commands: tuple[str, ...]) -> list[Ended]:
        """Run commands on it beside each other."""
        return self.seat.run_all(*((*words, "--data", self.host.data) for words in commands))

    def written(self) -> list[dict[str, Any]]:
        """All sessions with their revisions: every write raises one."""
        return cast("list[dict[str, Any]]", self.host.ask("session.list", limit=100)["sessions"])


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ground]:
    """A host with two sessions, and with a key that its provider refuses."""
    folder = tmp_path_factory.mktemp("bad")
    seat, script = seat_in(folder), folder / "script.yaml"
    script.write_text(KEYED, "utf-8")
    with seat.start("model-server", script, "--port", "0", "--json") as models:
        seat.variables = {"OPENAI_API_KEY": "the-wrong-key", "OPENAI_BASE_URL": f"{models.said()['url']}/v1"}
        with seat.host(folder / "data") as host:
            host.session("lead")
            yield Ground(seat, host, host.session("reader"))


def test_a_session_that_is_not_there_is_told_with_the_near_ones(ground: Ground) -> None:
    """Most wrong names are misspelt, so the right one is shown, and its id."""
    before = ground.written()
    told = ground.run_all(
        ("prompt", "redaer", "hi"),
        ("session", "show", "redaer"),
        ("send", "hi", "--from", "lead", "--to", "redaer"),
        ("send", "hi", "--from", "redaer", "--to", "lead"),
    )
    for text in (ended.fault("NOT_FOUND") for ended in told):
        assert "redaer" in text
        assert "reader" in text
        assert ground.reader in text
    assert ground.written() == before


def test_what_cannot_be_meant_is_refused_and_leaves_nothing(ground: Ground) -> None:
    """Usage faults have an exit status of their own."""
    before = ground.written()
    told = ground.run_all(
        ("prompt", "reader", " \n "),
        ("send", "\t", "--from", "lead", "--to", "reader"),
        ("run", ""),
        ("session", "new", "--folder", "no/such/folder"),
        ("send", "hi", "--from", "lead", "--to", "lead"),
    )
    for ended in told:
        ended.fault("INVALID_ARGUMENT", 2)
    assert ground.written() == before


@pytest.mark.parametrize(
    "words", [("prompt", "reader", "-"), ("send", "-", "--from", "lead", "--to", "reader")], ids=["prompt", "send"]
)
def test_a_text_that_is_too_long_is_refused_by_the_name_of_its_limit(ground: Ground, words: tuple[str, ...]) -> None:
    """Who meets a limit wants to know which setting it is."""
    before = ground.written()
    text = ground.run(*words, stdin="ä" * (CONTENT_CHARS_MAX + 1)).fault("LIMIT_EXCEEDED")
    assert "content_chars_max" in text
    assert str(CONTENT_CHARS_MAX) in text.replace(",", "")
    assert ground.written() == before


def test_a_command_that_is_misspelt_is_no_traceback(ground: Ground) -> None:
    """The parser's own words are more than a line; its status is that of usage."""
    ended = ground.run("statsu", "reader")
    assert ended.status == 2
    assert "Traceback" not in ended.err


def test_a_provider_that_refuses_the_key_is_told_with_the_place_of_the_key(ground: Ground) -> None:
    """The key itself is never shown; where it comes from is."""
    ended = ground.run("prompt", "reader", "hi", "--wait")
    assert (ended.status, ended.out) == (1, "")
    (line,) = [line for line in ended.err.splitlines() if "PROVIDER_AUTH" in line]
    assert "OPENAI_API_KEY" in line
    assert "401" in line
    assert "the-wrong-key" not in ended.err
    ended = ground.run("prompt", "reader", "hi", "--wait", "--json")
    assert ended.status == 1
    told = json.loads(ended.out)
    assert told["status"] == "failed"
    assert "PROVIDER_AUTH" in told["error"]
    assert not ended.err


@pytest.mark.parametrize("more", [(), ("--detach",)], ids=["here", "detached"])
def test_a_second_host_on_a_data_directory_names_the_first(ground: Ground, more: tuple[str, ...]) -> None:
    """Case 124: one process for a directory; the second ends with a status of its own, and the first goes on."""
    text = ground.run("up", "--port", "0", *more).fault("HOST_RUNNING", 3)
    assert str(ground.host.about["pid"]) in text
    assert str(ground.host.data) in text
    assert ground.host.ask("app.health")["ok"]
    assert ground.run("session", "list", "--json").json["sessions"]


def test_a_fault_is_json_where_json_was_asked_for(ground: Ground) -> None:
    """Programs read the same code from one line of the error stream."""
    ended = ground.run("up", "--port", "0", "--json")
    assert (ended.status, ended.out) == (3, "")
    assert json.loads(ended.err)["errorCode"] == "HOST_RUNNING"
    ended = ground.run("session", "show", "redaer", "--json")
    assert (ended.status, ended.out) == (1, "")
    assert json.loads(ended.err)["candidates"]


def test_a_port_that_is_taken_is_told_before_anything_is_made(ground: Ground, seat: Seat, tmp_path: Path) -> None:
    """Another program's port is no reason to touch a ledger."""
    port = ground.host.url.rpartition(":")[2]
    text = seat.run("up", "--data", tmp_path / "data", "--port", port).fault("PORT_IN_USE")
    assert port in text
    assert "--port" in text
    assert not (tmp_path / "data" / "coterie.db").exists()


def test_a_command_starts_its_host_on_another_port_where_the_usual_one_is_taken(ground: Ground, seat: Seat) -> None:
    """Two people of one machine, or two directories of one person, do not have to know of each other."""
    seat.data.mkdir(parents=True)
    port = ground.host.url.rpartition(":")[2]
    (seat.data / "config.toml").write_text(f"[server]\nport = {port}\n", "utf-8")
    try:
        url = seat.run("--json").json["url"].rstrip("/")
    finally:
        end_background(seat)
    assert url.startswith("http://127.0.0.1:")
    assert url != ground.host.url


@pytest.mark.parametrize("token", [None, "wrong"], ids=["none", "wrong"])
def test_a_terminal_without_the_right_token_is_not_let_in(
    ground: Ground, seat: Seat, tmp_path: Path, token: str | None
) -> None:
    """Whoever has `host.json` alone has nothing."""
    (tmp_path / "host.json").write_bytes((ground.host.data / "host.json").read_bytes())
    if token is not None:
        (tmp_path / "token").write_text(token, "utf-8")
    code = "HOST_UNAVAILABLE" if token is None else "UNAUTHENTICATED"
    assert "token" in seat.run("session", "list", "--data", tmp_path).fault(code)


def test_an_address_that_others_can_reach_is_refused(seat: Seat, tmp_path: Path) -> None:
    """Case 177: a token over plain HTTP is for this machine only."""
    addresses = ("0.0.0.0", "::", "example.org")
    told = seat.run_all(*(("up", "--data", tmp_path / one[:1], "--host", one) for one in addresses))
    for address, ended in zip(addresses, told, strict=True):
        assert address in ended.fault("PUBLIC_BIND_REFUSED", 2)
    assert not list(tmp_path.rglob("coterie.db"))


CONFIGS: Final = (
    ("[server]\nprot = 1\n", 2, "'port'"),
    ("[limits]\n\nturn_max = 1\n", 3, "'turns_max'"),
    ('[server]\nport = "http"\n', 2, "65535"),
    ("[server\n", 1, "TOML"),
    ('[[models]]\nkey = "a/b"\napi = "openai-chatt"\n', 3, "'openai-chat'"),
)
"""What stands in the file, the line that is wrong, and what its reader is told."""


def test_a_setting_that_cannot_be_meant_is_told_with_its_line(seat: Seat, tmp_path: Path) -> None:
    """File, line and the nearest word, so that nobody has to search."""
    folders = [tmp_path / f"data-{number}" for number in range(len(CONFIGS))]
    for folder, (text, _, _) in zip(folders, CONFIGS, strict=True):
        folder.mkdir()
        (folder / "config.toml").write_text(text, "utf-8")
    told = seat.run_all(*(("up", "--data", folder, "--port", "0") for folder in folders))
    for folder, ended, (_, line, hint) in zip(folders, told, CONFIGS, strict=True):
        text = ended.fault("CONFIG_INVALID", 2)
        assert f"{folder / 'config.toml'}, line {line}: " in text
        assert hint in text
        assert not (folder / "coterie.db").exists()


def test_a_rule_that_names_no_tool_is_told_with_the_nearest(seat: Seat, tmp_path: Path) -> None:
    """Else somebody would rely on it."""
    (tmp_path / "config.toml").write_text('[permissions]\ndeny = ["bahs(git push*)"]\n', "utf-8")
    told = seat.run("up", "--data", tmp_path, "--port", "0").fault("CONFIG_INVALID", 2)
    assert "'bahs(git push*)'" in told
    assert "bash" in told


def test_a_model_whose_library_is_not_there_is_told_with_the_command_that_adds_it(seat: Seat, tmp_path: Path) -> None:
    """The vendor's SDK is an extra of the package; here something else stands before it."""
    data, shadow = tmp_path / "data", tmp_path / "shadow"
    data.mkdir()
    (shadow / "google").mkdir(parents=True)
    (shadow / "google" / "__init__.py").touch()
    (data / "config.toml").write_text('[[models]]\nkey = "google/gemini"\napi = "google"\n', "utf-8")
    seat.variables = {"PYTHONPATH": str(shadow)}
    text = seat.run("up", "--data", data, "--port", "0").fault("EXTRA_MISSING")
    assert "pip install 'coterie[google]'" in text
    assert f"{data / 'config.toml'}:2" in text
    assert not (data / "coterie.db").exists()


def test_a_host_that_is_started_by_a_command_tells_its_fault_through_it(seat: Seat, tmp_path: Path) -> None:
    """`run` starts the host, so its reader sees what the host said, and not that it ended."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "config.toml").write_text("[server]\nprot = 1\n", "utf-8")
    assert "line 2" in seat.run("run", "hi", "--data", data).fault("CONFIG_INVALID", 2)
    assert not (data / "coterie.db").exists()


@pytest.fixture(scope="module")
def sound_database(ground: Ground) -> bytes:
    """The database of a host with some sessions, whole."""
    with (
        closing(sqlite3.connect(f"file:{ground.host.data / 'coterie.db'}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(":memory:")) as target,
    ):
        source.backup(target)
        return target.serialize()


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO schema_version (version) VALUES (99)")
        connection.commit()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _overwritten(path: Path) -> None:
    path.write_bytes(b"These are the notes of somebody else.\n" * 500)


def _one_byte_of_the_head(path: Path) -> None:
    path.write_bytes(b"X" + path.read_bytes()[1:])


DAMAGES: Final = (
    (_newer, "SCHEMA_NEWER"),
    (_cut, "DATABASE_CORRUPT"),
    (_overwritten, "DATABASE_CORRUPT"),
    (_one_byte_of_the_head, "DATABASE_CORRUPT"),
)


@pytest.mark.parametrize(("damage", "code"), DAMAGES, ids=lambda value: getattr(value, "__name__", value).strip("_"))
def test_a_database_that_is_not_ours_to_open_stays_as_it_is(
    seat: Seat, tmp_path: Path, sound_database: bytes, *, damage: Any, code: str
) -> None:
    """A newer version's file, a damaged one, somebody else's: each is told and not touched."""
    path = tmp_path / "data" / "coterie.db"
    path.parent.mkdir()
    path.write_bytes(sound_database)
    damage(path)
    before = path.read_bytes()
    for words in (("up", "--port", "0"), ("verify",)):
        text = seat.run(*words, "--data", path.parent).fault(code)
        assert str(path) in text
        assert path.read_bytes() == before
    assert not (path.parent / "host.json").exists()
    log = path.with_name("coterie.db-wal")
    assert not log.exists() or not log.stat().st_size


def test_something_else_in_the_place_of_our_files_is_told(seat: Seat, tmp_path: Path) -> None:
    """Whatever stands there is somebody's: it is named, and left."""
    places = [tmp_path / name / name for name in ("coterie.db", "lock", "config.toml", "token")]
    for place in places:
        place.mkdir(parents=True)
    file = tmp_path / "file"
    file.write_text("notes", "utf-8")
    told = seat.run_all(*(("up", "--data", one, "--port", "0") for one in (file, *(place.parent for place in places))))
    for place, ended in zip((file, *places), told, strict=True):
        code = ended.err.partition(":")[0]
        assert str(place if place == file else place.parent) in ended.fault(code, ended.status)
        assert ended.status in {1, 2}
        assert place.exists()
        assert not (place.parent / "host.json").exists()


def test_a_data_directory_that_cannot_be_made_is_told(seat: Seat) -> None:
    """A place where nobody may write, root included."""
    text = seat.run("up", "--data", "/proc/coterie", "--port", "0").fault("CONFIG_INVALID", 2)
    assert "/proc/coterie" in text
    assert "--data" in text


@pytest.mark.parametrize("make", [None, Path.touch], ids=["no file", "an empty file"])
def test_verify_without_a_ledger_is_one_line(seat: Seat, tmp_path: Path, make: Any) -> None:
    """What was never made is not sound, and is not made by looking."""
    path = tmp_path / "coterie.db"
    if make is not None:
        make(path)
    ended = seat.run("verify", "--data", tmp_path)
    assert ended.status == 1
    ended.fault(ended.err.partition(":")[0])
    assert not path.exists() or not path.read_bytes()


def test_what_a_dead_host_left_does_not_stand_in_the_way(seat: Seat, tmp_path: Path) -> None:
    """A killed host cannot take away its `host.json`: commands say that it is gone, and the next start goes over it."""
    data = tmp_path / "data"
    with seat.host(data) as host:
        host.process.kill()
    assert (data / "host.json").exists()
    for words in (("session", "list"), ("down",)):
        text = seat.run(*words, "--data", data).fault("HOST_UNAVAILABLE")
        assert str(host.about["pid"]) in text
        assert "coterie up" in text
    with seat.host(data) as host:
        assert seat.run("session", "list", "--data", data, "--json").json["sessions"] == []


def test_a_demo_of_a_folder_that_is_not_there_is_refused(seat: Seat, tmp_path: Path) -> None:
    """Before anything is started."""
    assert "nowhere" in seat.run("demo", tmp_path / "nowhere").fault("INVALID_ARGUMENT", 2)
    assert "--model" in seat.run("demo", tmp_path, "--provider", "http://127.0.0.1:9").fault("INVALID_ARGUMENT", 2)


def test_a_wrong_script_is_told_with_its_line(seat: Seat, tmp_path: Path) -> None:
    """The model server has a file of its own to be wrong in."""
    script = tmp_path / "script.yaml"
    script.write_text("rules:\n  - repyl: {text: hi}\n", "utf-8")
    text = seat.run("model-server", script).fault("CONFIG_INVALID", 2)
    assert f"{script}:2: " in text
    assert "`reply`" in text
