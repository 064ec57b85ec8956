"""Small projects in Python, each with one fault that its own test shows."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.host.program import Models, Seat

_VARIABLES: Final = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
"""Its pytest is as it comes, whatever plugins there are beside it. What was compiled in the same second, of as many
characters, would pass for the new file."""
_PYTHON: Final = "\n".join(
    (
        "#!/bin/sh",
        *(f"export {name}={value}" for name, value in _VARIABLES.items()),
        f'exec {shlex.quote(sys.executable)} "$@"',
    )
)
_PERSON: Final = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Person"), ("EMAIL", "person@example.org"))
}
REPAIR: Final = Path(__file__).parents[2] / "docs/examples/model_server/repair.yaml"
"""A model that repairs them, by what its tools answer alone."""


@dataclass(frozen=True)
class Project:
    """What a project is made of."""

    path: str
    """The file with the fault."""
    files: Mapping[str, str]
    right: str
    """The file without it."""
    tests: int

    def make(self, folder: Path) -> Path:
        """Put it into a new *folder*."""
        for name, text in {".gitignore": "__pycache__/\n", **self.files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        return folder


SHOP: Final = Project(
    "money.py",
    {
        "money.py": 'CENTS = 100\n\n\ndef price(euros, cents):\n    """Cents."""\n    return euros * CENTS - cents\n',
        "test_money.py": "from money import price\n\n\ndef test_cents_are_added():\n    assert price(2, 50) == 250\n",
    },
    'CENTS = 100\n\n\ndef price(euros, cents):\n    """Cents."""\n    return euros * CENTS + cents\n',
    1,
)
CLOCK: Final = Project(
    "clock/units.py",
    {
        "clock/__init__.py": "",
        "clock/units.py": "def hours_of_a_day():\n    return 12\n\n\ndef days_of_a_week():\n    return 7\n",
        "checks/test_units.py": (
            "from clock import units\n\n\n"
            "def test_week():\n    assert units.days_of_a_week() == 7\n\n\n"
            "def test_day():\n    assert units.hours_of_a_day() == 24\n"
        ),
    },
    "def hours_of_a_day():\n    return 24\n\n\ndef days_of_a_week():\n    return 7\n",
    2,
)


def git(folder: Path, *words: str, status: int = 0) -> str:
    """Run git as the person who owns the project, to the end that is expected; returns what it says."""
    environment = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C.UTF-8", **_PERSON}
    ended = subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=False, capture_output=True, encoding="utf-8"
    )
    assert ended.returncode == status, ended
    return ended.stdout


def commit(folder: Path, subject: str) -> None:
    """Commit all that there is, in a new repository where there is none."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", subject)


def passes(folder: Path) -> bool:
    """Whether the tests of a project pass, run as its owner would."""
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = {"PATH": os.defpath, **_VARIABLES}
    return subprocess.run(line, cwd=folder, env=environment, check=False, capture_output=True).returncode == 0


def worker_seat(home: Path, models: Models) -> Seat:
    """A person with a new *home*, whose agents find Python and speak with *models*."""
    programs = home / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(_PYTHON, "utf-8")
    (programs / "python").chmod(0o755)
    seat = Seat(home, {"PATH": f"{programs}{os.pathsep}{os.defpath}"})
    models.configure(seat.data)
    return seat
