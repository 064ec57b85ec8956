"""Which files of a project are read for an agent that works in it."""

import os
from pathlib import Path

import pytest

from coterie.core.turn.instructions import NOTES_CHARS_MAX
from coterie.runtime.tools.project_notes import ProjectNotes


def _read(folder: Path, *closed: Path) -> list[tuple[str, str]]:
    return [(note.name, note.text) for note in ProjectNotes(closed)(str(folder))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder two steps below the root of a repository, with a note at each step and one above."""
    deep = tmp_path / "repository" / "part" / "deep"
    deep.mkdir(parents=True)
    for step in (deep, *deep.parents[:3]):
        (step / "AGENTS.md").write_text(f"of {step.name}")
    return deep


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch])
def test_the_chain_goes_from_the_root_of_the_repository_to_the_folder(folder: Path, made: object) -> None:
    """The nearest last, nothing from above the root; in a worktree `.git` is a file."""
    assert callable(made)
    made(folder.parents[1] / ".git")
    assert _read(folder) == [
        ("../../AGENTS.md", "of repository"),
        ("../AGENTS.md", "of part"),
        ("AGENTS.md", "of deep"),
    ]


def test_without_a_repository_only_the_folder_itself_speaks(folder: Path) -> None:
    """Whatever lies above is not known to belong to the project."""
    assert _read(folder) == [("AGENTS.md", "of deep")]
    (folder / "AGENTS.md").unlink()
    assert _read(folder) == []


def test_links_out_of_the_project_are_not_followed(folder: Path, tmp_path: Path) -> None:
    """A repository from somewhere must not carry a private file to a model; a link inside it is a file of its own."""
    (folder.parents[1] / ".git").mkdir()
    (tmp_path / "secret").write_text("a key")
    for name in (folder, folder.parent):
        (name / "AGENTS.md").unlink()
    (folder / "AGENTS.md").symlink_to(tmp_path / "secret")
    (folder.parent / "AGENTS.md").symlink_to(folder.parents[1] / "AGENTS.md")
    assert _read(folder) == [("../../AGENTS.md", "of repository"), ("../AGENTS.md", "of repository")]


def test_what_is_no_file_or_closed_says_nothing(folder: Path) -> None:
    """A pipe would hold the thread for ever; the data directory is closed to agents in every way."""
    (folder / "AGENTS.md").unlink()
    os.mkfifo(folder / "AGENTS.md")
    assert _read(folder) == []
    (folder.parents[1] / ".git").mkdir()
    assert [name for name, _ in _read(folder, folder.parent)] == ["../../AGENTS.md"]
    assert _read(folder, folder.parents[1]) == []


def test_a_huge_file_is_read_as_far_as_it_can_be_used(folder: Path) -> None:
    """Bytes that are no text are replaced, and no more is held than is shown."""
    (folder / "AGENTS.md").write_bytes(b"\xff\x00" + b"x" * 10_000_000)
    ((_, text),) = _read(folder)
    assert text.startswith("\ufffd\ufffdxxx")
    assert NOTES_CHARS_MAX < len(text) <= 4 * NOTES_CHARS_MAX + 4
