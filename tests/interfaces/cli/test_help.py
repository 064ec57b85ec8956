"""The help: each command says what it does, shows it at work, and describes what it takes."""

import shlex
from typing import Final

import pytest
from tests.interfaces.cli.conftest import Line

from coterie.interfaces.cli.app import COMMANDS, GROUPS
from coterie.interfaces.cli.command import Command

ALL: Final[list[tuple[tuple[str, ...], type[Command]]]] = [
    *(((name,), command) for name, command in COMMANDS),
    *(((group.name, name), command) for group in GROUPS for name, command in group.commands),
]
NAMES: Final = [" ".join(words) for words, _ in ALL]
AT_A_TERMINAL: Final = "chat"
"""It refuses before it looks for a host where no terminal is."""


@pytest.mark.parametrize(("words", "command"), ALL, ids=NAMES)
def test_a_command_explains_itself(line: Line, words: tuple[str, ...], command: type[Command]) -> None:
    """Summary, example and a text for every option, without control characters."""
    found = line(*words, "--help")
    assert found.exit_code == 0
    assert (command.__doc__ or "").splitlines()[0] in found.stdout
    assert f"  {command.example}\n" in found.stdout
    assert "--data DIR" in found.stdout
    assert "--json" in found.stdout
    assert "\x1b" not in found.stdout
    options = found.stdout.partition("Options:")[2].splitlines()
    described = [row for row in options if row.startswith("  -")]
    assert all(len(row.split("  ")) > 2 or _continues(options, row) for row in described)


def _continues(rows: list[str], row: str) -> bool:
    return rows[rows.index(row) + 1].startswith("      ")


@pytest.mark.parametrize(("words", "command"), ALL, ids=NAMES)
def test_an_example_is_a_command_line(line: Line, words: tuple[str, ...], command: type[Command]) -> None:
    """It gets as far as the host that is not there, so nothing in it is misspelt."""
    typed = shlex.split(command.example)
    assert typed[: len(words) + 1] == ["coterie", *words]
    found = line(*typed[1:], "--data", "nowhere")
    if words == (AT_A_TERMINAL,):
        assert "needs a terminal" in found.stderr
        return
    assert found.exit_code == 1, found.output
    assert found.stderr.splitlines()[-1].partition("HOST_UNAVAILABLE")[1]


def test_the_summaries_fit_a_line(line: Line) -> None:
    """A list of commands whose texts are cut says nothing."""
    for words in ((), *((group.name,) for group in GROUPS)):
        assert "..." not in line(*words, "--help").stdout.partition("Commands:")[2]


def test_completion_of_shells_is_on(line: Line) -> None:
    """Names of commands are long to type."""
    assert "--install-completion" in line("--help").stdout
