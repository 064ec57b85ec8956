"""The benchmarks run, and what they count keeps its budget. Times are for people: no test looks at one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
QUESTIONS = ("round_trip", "pairs", "sends", "growth", "delivery", "sidebar")
BOUND_S = 60


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a smoke of the questions that count prints."""
    command = [sys.executable, "-m", "benchmarks", *QUESTIONS]
    data = tmp_path_factory.mktemp("bench")
    run = subprocess.run(
        [*command, "--quick", "--json", "--data", str(data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert not list(data.iterdir()), "nothing is left behind"
    return json.loads(run.stdout)


def test_every_figure_says_what_it_is(found: dict[str, Any]) -> None:
    """Programs compare runs by these names."""
    assert set(found) == {"machine", "figures"}
    assert {figure["question"] for figure in found["figures"]} == set(QUESTIONS)
    for figure in found["figures"]:
        assert set(figure) == {"question", "what", "value", "unit", "budget", "note", "met"}
        assert figure["value"] is not None, figure["note"]
        assert (figure["met"] is None) == (figure["budget"] is None)
    names = [(figure["question"], figure["what"]) for figure in found["figures"]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("budget", "commits"), [("commits-fused", 2), ("commits-fused-read", 3), ("commits-queued", 4)]
)
def test_a_round_trip_has_no_commit_too_many(found: dict[str, Any], budget: str, commits: int) -> None:
    """A flush costs more than everything around it; through the operations there are no more than in the use cases."""
    budgeted = [figure for figure in found["figures"] if figure["budget"] is not None]
    counted = [figure["value"] for figure in budgeted if figure["budget"]["name"] == budget]
    assert counted == [commits, commits]


def test_round_trips_at_once_share_their_commits(found: dict[str, Any]) -> None:
    """Else 32 pairs would be as slow as one."""
    counted = [figure["value"] for figure in found["figures"] if figure["what"].endswith("commits per round trip")]
    assert counted
    assert max(counted) < 1


def test_no_statement_reads_a_whole_table_of_an_old_ledger(found: dict[str, Any]) -> None:
    """Neither without statistics nor with those of a ledger that has rows."""
    counted = [figure["value"] for figure in found["figures"] if figure["what"].startswith("plans: ")]
    assert counted == [0, 0]


def test_a_table_is_put_between_the_marks_of_a_document(tmp_path: Path) -> None:
    """A figure that somebody copies by hand is soon another one."""
    document = tmp_path / "performance.md"
    document.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n", encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks", "delivery", "--quick", "--data", str(tmp_path / "bench")]
    subprocess.run([*command, "--into", str(document)], cwd=ROOT, capture_output=True, timeout=BOUND_S, check=True)
    before, *table, after = document.read_text(encoding="utf-8").splitlines()
    assert (before, after) == ("before", "after")
    assert sum(line.startswith("| delivery") for line in table) == 3
    assert "old" not in table
