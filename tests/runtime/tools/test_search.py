"""The search program, called as a function: what runs in a process of its own no coverage sees."""

import os
from pathlib import Path

import pytest

from coterie.runtime.tools import _search


def request(pattern: str, *paths: Path) -> _search.Request:
    return _search.Request(
        pattern=pattern,
        ignore_case=False,
        paths=[str(path) for path in paths],
        matches_max=2,
        line_chars_max=20,
        file_bytes_max=200,
        cpu_s_max=1,
    )


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    contents = [b"x\nneedle\r\n\n", b"\0needle", b"needle" * 50, b"." * 60 + b"needle" + b"." * 60]
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(paths[0])
    return [*paths, tmp_path / "pipe", tmp_path / "link", tmp_path / "gone"]


def test_only_text_files_of_a_bounded_size_are_searched(files: list[Path]) -> None:
    """Links were resolved before, so one that is there now is new and may lead anywhere."""
    answer = _search.search(request("needle", *files))
    assert answer == _search.Answer(
        flaw=None, matches=[(0, 2, "needle"), (3, 1, "….....needle.........…")], goes_on=False, too_large=1
    )


def test_a_search_ends_when_it_has_enough(files: list[Path]) -> None:
    """The end of the last line starts no other, so three lines match an empty expression here."""
    answer = _search.search(request("", files[0]))
    assert answer["matches"] == [(0, 1, "x"), (0, 2, "needle")]
    assert answer["goes_on"]
    assert _search.search(request("^$", files[0]))["matches"] == [(0, 3, "")]


def test_a_wrong_expression_is_a_flaw() -> None:
    """The model reads what the compiler says."""
    assert _search.search(request("("))["flaw"] == "missing ), unterminated subpattern at position 0"
