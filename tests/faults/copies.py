"""Copies of the project in which faults are put, so that nobody else ever runs them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from tests.faults.fault import ROOT
from tests.faults.witness import Account

TEST_S: Final = 30
"""No test of a fault takes longer; a fault may make one wait for what never comes."""
RUN_S: Final = 300
"""Nor does a run."""
_PARTS: Final = ("src", "tests", "docs", "pyproject.toml", "README.md")
_NOT_COPIED: Final = shutil.ignore_patterns("__pycache__", ".*")


class Copy:
    """One copy; what runs in it imports the package from it, and nothing of the project's own folder."""

    def __init__(self, folder: Path) -> None:
        """Make it in *folder*, which is empty."""
        self.tree = folder / "project"
        self._witness = folder / "witness.json"
        self.tree.mkdir()
        for name in _PARTS:
            part = ROOT / name
            if part.is_dir():
                shutil.copytree(part, self.tree / name, ignore=_NOT_COPIED)
            else:
                shutil.copy2(part, self.tree / name)

    @contextmanager
    def changed(self, texts: Mapping[str, str]) -> Generator[None]:
        """Have other texts in the files of these paths, inside the block."""
        before = {path: ((self.tree / path).read_bytes(), (self.tree / path).stat()) for path in texts}
        try:
            for path, text in texts.items():
                (self.tree / path).write_text(text, "utf-8")
                stamp = before[path][1].st_mtime_ns + 10**10
                # Python tells by size and time whether what it has compiled is still good.
                os.utime(self.tree / path, ns=(stamp, stamp))
            yield
        finally:
            for path, (text, stat) in before.items():
                (self.tree / path).write_bytes(text)
                os.utime(self.tree / path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def run(self, tests: Sequence[str], *, all_of_them: bool = False) -> tuple[Account | None, str]:
        """Run tests up to the first that fails; returns what was seen, None if nothing ran, and what pytest printed.

        Args:
            tests: As pytest names them.
            all_of_them: Go on behind a failure, and keep what was compiled.
        """
        self._witness.unlink(missing_ok=True)
        words = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        words += ["-p", "tests.faults.witness", "--witness", str(self._witness), "--timeout", str(TEST_S)]
        words += [] if all_of_them else ["-x"]
        try:
            done = subprocess.run(
                [*words, *tests],
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                cwd=self.tree,
                env=self._environment(keep=all_of_them),
                timeout=RUN_S,
            )
        except subprocess.TimeoutExpired:
            return None, f"the tests have not ended in {RUN_S} seconds"
        printed = done.stdout + done.stderr
        if not self._witness.exists():
            return None, printed
        seen = msgspec.json.decode(self._witness.read_bytes(), type=Account)
        own = str(self.tree / "src" / "coterie")
        assert seen.code == own, f"the tests ran {seen.code}, not the copy {own}"
        return seen, printed

    def _environment(self, *, keep: bool) -> dict[str, str]:
        path = os.pathsep.join((str(self.tree / "src"), str(self.tree)))
        own = {"PYTHONPATH": path} | ({} if keep else {"PYTHONDONTWRITEBYTECODE": "1"})
        return dict(os.environ) | own  # noqa: TID251 - tests are no part of the settings


@contextmanager
def copies(count: int) -> Generator[list[Copy]]:
    """So many copies, which go when the block ends."""
    with tempfile.TemporaryDirectory(prefix="coterie-faults-") as name:
        folders = [Path(name).resolve() / str(number) for number in range(count)]
        for folder in folders:
            folder.mkdir()
        yield [Copy(folder) for folder in folders]
