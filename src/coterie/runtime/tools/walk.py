"""The files of a project: what lies below a folder, less what `.gitignore` files and habit leave out."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

from coterie.runtime.tools.arguments import UnfitError
from coterie.runtime.tools.ground import Ground, open_file
from coterie.runtime.tools.pattern import PathPattern

FILES_SEEN_MAX: Final = 200_000
SKIPPED: Final = frozenset({".git", ".venv", "node_modules", "__pycache__"})
_IGNORE_BYTES_MAX: Final = 256_000
_STARS: Final = re.compile(r"\*+")
_STARS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class FileFound:
    """One regular file."""

    path: Path
    """Links resolved."""
    name: str
    """As tools show it: relative to the project folder."""
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class _Rules:
    """One `.gitignore` file and the folder that it speaks for."""

    folder: Path
    spec: GitIgnoreSpec


_RulesLine = tuple[_Rules, ...]
"""The rules that hold in a folder, outermost first."""


def files_below(ground: Ground, start: Path, pattern: PathPattern | None) -> tuple[list[FileFound], bool]:
    """Return the files below *start*, by name, and whether that is all of them.

    A start that is left out itself was asked for by name: what holds above it is not applied below.

    Args:
        ground: Where the walk must stay.
        start: A folder that `Ground.locate` returned.
        pattern: What the path below *start* must fit.
    """
    found = list[FileFound]()
    for seen, (entry, relative) in enumerate(_entries(ground, start)):
        if seen >= FILES_SEEN_MAX:
            return _by_name(found), False
        if pattern is not None and not pattern.matches(relative):
            continue
        file = _file_of(ground, entry)
        if file is not None:
            found.append(file)
    return _by_name(found), True


def _by_name(found: list[FileFound]) -> list[FileFound]:
    return sorted(found, key=lambda file: file.name)


def _entries(ground: Ground, start: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield what is no folder below *start*, and its path from there, in a fixed order."""
    stack: list[tuple[Path, _RulesLine]] = [(start, _rules_above(ground, start))]
    while stack:
        folder, above = stack.pop()
        rules = _rules_in(folder, above)
        folders = list[tuple[Path, _RulesLine]]()
        for entry in _listed(folder):
            path = folder / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in SKIPPED or _is_ignored(path, rules, is_folder=is_folder):
                continue
            if not is_folder:
                yield entry, path.relative_to(start).as_posix()
            elif not ground.is_closed(path):
                folders.append((path, rules))
        stack.extend(reversed(folders))


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # Gone since, or not ours to read: there is nothing to show.
        return []


def _file_of(ground: Ground, entry: os.DirEntry[str]) -> FileFound | None:
    """The regular file behind *entry*, unless it is something else or a link to where tools may not go."""
    path = Path(entry.path)
    try:
        real = path.resolve() if entry.is_symlink() else path
        if not entry.is_file() or (real is not path and not ground.contains(real)):
            return None
        status = entry.stat()
    except (OSError, RuntimeError):
        return None
    return FileFound(real, ground.name(path), status.st_size, status.st_mtime_ns)


def _rules_above(ground: Ground, start: Path) -> _RulesLine:
    """The rules of the folders from the root down to the one that holds *start*; none if they leave *start* out."""
    rules: _RulesLine = ()
    folder = ground.root
    for part in start.relative_to(ground.root).parts:
        rules = _rules_in(folder, rules)
        folder /= part
        if part in SKIPPED or _is_ignored(folder, rules, is_folder=True):
            return ()
    return rules


def _rules_in(folder: Path, above: _RulesLine) -> _RulesLine:
    """*above*, and the rules of *folder* itself."""
    path = folder / ".gitignore"
    try:
        with open_file(path, ".gitignore") as file:
            text = file.read(_IGNORE_BYTES_MAX).decode("utf-8", "replace")
    except (UnfitError, OSError):
        return above
    lines = [line for line in text.splitlines() if _is_usable(line)]
    return (*above, _Rules(folder, GitIgnoreSpec.from_lines(lines)))


def _is_usable(line: str) -> bool:
    """Whether *line* is a pattern, and one that is matched in a moment: many stars try very many splits of a name."""
    if len(_STARS.findall(line)) > _STARS_MAX:
        return False
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _is_ignored(path: Path, rules: _RulesLine, *, is_folder: bool) -> bool:
    """Whether the innermost rule that knows *path* leaves it out."""
    for rule in reversed(rules):
        verdict = rule.spec.check_file(path.relative_to(rule.folder).as_posix() + ("/" if is_folder else "")).include
        if verdict is not None:
            return verdict
    return False
