"""The page on workspaces: what it tells a person to type is typed as it stands."""

import re
import shlex
from pathlib import Path
from typing import Final, cast

from tests.host.program import scripted
from tests.host.projects import REPAIR, SHOP, commit, git, passes, worker_seat

PAGE: Final = (Path(__file__).parents[2] / "docs/workspaces.md").read_text("utf-8")
JOURNEY: Final = [
    shlex.split(line, comments=True)
    for block in cast("list[str]", re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    for line in block.splitlines()
]


def test_the_journey_ends_with_a_commit_of_what_the_session_has_done(tmp_path: Path) -> None:
    """A person who has never seen a worktree goes by this page."""
    folder = SHOP.make(tmp_path / "shop")
    commit(folder, "first")
    told = dict[str, str]()
    with scripted(REPAIR.read_text("utf-8")) as models:
        seat = worker_seat(tmp_path / "home", models)
        seat.folder = folder
        with seat.host(seat.data):
            for program, *words in JOURNEY:
                if program == "git":
                    git(folder, *words)
                    continue
                ended = seat.run(*words)
                assert ended.status == 0, (words, ended)
                told[" ".join(words[:2])] = ended.out
    assert SHOP.path in told["prompt lead"]
    assert "+    return euros * CENTS + cents" in told["session diff"]
    assert "Applied" in told["session apply"]
    assert git(folder, "show", f"HEAD:{SHOP.path}") == SHOP.right
    assert (git(folder, "status", "--porcelain"), git(folder, "branch", "--list", "coterie/*")) == ("", "")
    assert passes(folder)
