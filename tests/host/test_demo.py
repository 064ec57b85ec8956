"""The demonstration on folders that nobody has prepared for it."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast
from xml.etree import ElementTree as ET

from tests.host.program import Seat

SMALL: Final = "x = 1\n"
MESSAGE: Final = {"id", "kind", "status", "sourceSessionId", "targetSessionId", "turnId", "replyToMessageId"}


def fill(folder: Path, contents: Mapping[str, int]) -> None:
    """Make the files."""
    for name, lines in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SMALL * lines, "utf-8")


def largest_named(folder: Path, answer: str) -> str:
    """The Python file of *folder* that *answer* names with its true size."""
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*.py")}
    (named,) = [name for name, size in sizes.items() if f"is {name} ({size} bytes)" in answer]
    return named


def complete(told: dict[str, Any]) -> None:
    """Two tasks, two completions, all done; each session and message by its links."""
    lead, *readers = told["sessions"]
    assert lead["createdBySessionId"] is None
    assert [reader["createdBySessionId"] for reader in readers] == [lead["id"], lead["id"]]
    messages = cast("list[dict[str, Any]]", told["messages"])
    tasks, completions = ([one for one in messages if one["kind"] == kind] for kind in ("task", "completion"))
    assert len(messages) == 4
    assert {one["status"] for one in messages} == {"completed"}
    assert {one["targetSessionId"] for one in tasks} == {reader["id"] for reader in readers}
    assert {one["sourceSessionId"] for one in tasks} == {lead["id"]}
    answered = {one["replyToMessageId"]: one for one in completions}
    assert set(answered) == {one["id"] for one in tasks}
    for task in tasks:
        completion = answered[task["id"]]
        assert (completion["sourceSessionId"], completion["targetSessionId"]) == (
            task["targetSessionId"],
            task["sourceSessionId"],
        )
        assert task["turnId"] != completion["turnId"]


def shaped(told: dict[str, Any]) -> dict[str, Any]:
    """The same, if it has the documented shape and nothing else."""
    assert set(told) == {"sessions", "messages", "answer", "verify"}
    assert all(set(one) == {"id", "title", "createdBySessionId"} for one in told["sessions"])
    assert all(set(one) == MESSAGE for one in told["messages"])
    assert set(told["verify"]) == {"ok", "checked"}
    assert told["verify"]["ok"]
    assert told["verify"]["checked"] > 10
    return told


def test_the_demo_names_the_true_largest_file_of_a_folder(seat: Seat, tmp_path: Path) -> None:
    """What it says comes from real tools on real files, whatever their names."""
    folder = tmp_path / "Müllers Prüfstand"
    fill(folder, {"größte Datei.py": 400, "a.py": 3, "sub/b.py": 90, "sub/größer_noch.txt": 900, ".hidden/c.py": 9})
    told = shaped(seat.run("demo", folder, "--json").json)
    complete(told)
    assert largest_named(folder, told["answer"]) == "größte Datei.py"


def test_the_demo_draws_who_told_whom_and_leaves_the_folder_as_it_was(seat: Seat, tmp_path: Path) -> None:
    """Its ledger is a temporary one, and it draws for a pipe as for a screen, without what only a screen reads.

    It works in the current folder where none is named, and where there is no TODO it says so.
    """
    seat.folder = folder = tmp_path / "проект"
    fill(folder, {"main.py": 40, "deep/er/數據.py": 700})
    before = sorted(folder.rglob("*"))
    ended = seat.run("demo")
    assert (ended.status, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    lines = ended.out.splitlines()
    heads = next(number for number, line in enumerate(lines) if line.split() == ["Lead", "Largest", "file", "TODOs"])
    arrows = [line for line in lines[heads + 1 :] if line.endswith("completed") and "─" in line]
    labels = [one for line in arrows for one in ("task", "completion") if one in line]
    assert labels == ["task"] * 2 + ["completion"] * 2
    assert [("▶" in line, "◀" in line) for line in arrows] == [(True, False)] * 2 + [(False, True)] * 2
    assert largest_named(folder, ended.out) == "deep/er/數據.py"
    assert "There are no TODOs in this folder." in ended.out
    assert "verify: ok" in lines[-1]
    assert sorted(folder.rglob("*")) == before
    assert not seat.data.exists()


def test_the_demo_runs_with_a_model_of_ones_own(seat: Seat, tmp_path: Path) -> None:
    """The address and the name are all that it takes; here the same script speaks from another process."""
    folder = tmp_path / "own"
    fill(folder, {"one.py": 1, "two.py": 2})
    (folder / "two.py").write_text("# TODO: more\n", "utf-8")
    script = tmp_path / "demo.yaml"
    script.write_bytes(files("coterie.bootstrap").joinpath("demo.yaml").read_bytes())
    with seat.start("model-server", script, "--port", "0", "--json") as models:
        url = f"{models.said()['url']}/v1"
        ended = seat.run("demo", folder, "--provider", url, "--model", "any-name", "--json")
    told = shaped(ended.json)
    complete(told)
    assert largest_named(folder, told["answer"]) == "two.py"
    assert "TODOs are in two.py, line 1" in told["answer"]


def test_a_demo_that_was_kept_can_be_looked_at_afterwards(seat: Seat, tmp_path: Path) -> None:
    """Its ledger is a data directory as any other, and the map of its chain names who took part."""
    folder, data = tmp_path / "kept", tmp_path / "ledger"
    fill(folder, {"one.py": 1})
    complete(shaped(seat.run("demo", folder, "--data", data, "--json").json))
    assert seat.run("verify", "--data", data, "--json").json["ok"]
    with seat.host(data):
        drawn = seat.run("map", "Lead", "--data", data, "--svg", "-")
    assert (drawn.status, drawn.err) == (0, "")
    texts = {"".join(element.itertext()) for element in ET.fromstring(drawn.out).iter()}
    assert {"Lead", "Largest file", "TODOs"} <= texts
