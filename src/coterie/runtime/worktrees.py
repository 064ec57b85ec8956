"""Worktrees by git: implements `ports.workspaces.Workspaces`.

For a worktree its git directory is named, because a session may have written to the `.git` file in its folder.
"""

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.refusal import Refusal
from coterie.core.session.worktree import FILES_MAX, FOLDER, Change, Origin, Worktree
from coterie.core.text import mend
from coterie.runtime.tools.git import Git
from coterie.runtime.tools.native import see_through

_DIFF_BYTES_MAX: Final = 8_000_000
"""How much of a difference is read into memory."""
_ORIGIN_LINES: Final = 4
"""Three answers, and nothing behind the last line end."""
_HALF_MADE: Final = "initializing"
"""Why git locks a worktree that it makes."""
_COMPARE: Final = (
    # Not `diff`, which heeds what a person has configured for their eyes.
    *("diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_APPLY: Final = ("apply", "--whitespace=nowarn")
_WAYS: Final = ((), ("--reverse", "--check"))
_CONFLICT: Final = re.compile(
    r"^error: (.+): (?:patch does not apply|already exists in working directory|No such file or directory)$",
    re.MULTILINE,
)


class Worktrees:
    """The worktrees of one host."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str], *, confined: bool) -> None:
        self._home = data_dir.resolve() / FOLDER
        self._runs = Git(data_dir, environment, confined=confined)
        self._one = asyncio.Lock()
        """Changes of repositories come one after the other."""

    async def origin(self, folder: str) -> Origin | None:
        """See the port."""
        return await asyncio.to_thread(self._origin, folder)

    async def prepare(self, worktree: Worktree) -> None:
        """See the port."""
        async with self._one:
            await see_through(asyncio.to_thread(self._prepare, worktree))

    async def record(self, worktree: Worktree, title: str) -> Change:
        """See the port."""
        async with self._one:
            return await see_through(asyncio.to_thread(self._record, worktree, title))

    async def diff(self, worktree: Worktree) -> tuple[str, Change]:
        """See the port."""
        return await asyncio.to_thread(self._diff, worktree)

    async def apply(self, worktree: Worktree) -> Change:
        """See the port."""
        async with self._one:
            return await see_through(asyncio.to_thread(self._apply, worktree))

    async def drop(
        self, worktree: Worktree, *, force: bool, branch: bool, may: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """See the port."""
        async with self._one:
            if may is not None:
                await may()
            await see_through(asyncio.to_thread(self._drop, worktree, force=force, branch=branch))

    def _git(self, worktree: Worktree, *words: str, own: Path | None = None, **extra: str) -> str:
        """What git says in the repository, or with *own* in the worktree."""
        folder, variables = _where(worktree, own)
        return self._runs.said(folder, *words, tree=worktree.path, extra={**variables, **extra})

    def _is_so(self, worktree: Worktree, *words: str, own: Path | None = None) -> bool:
        folder, variables = _where(worktree, own)
        return self._runs.run(folder, *words, tree=worktree.path, extra=variables).returncode == 0

    def _origin(self, folder: str) -> Origin | None:
        path = Path(folder)
        if not any((step / ".git").exists() for step in (path, *path.parents)):
            return None
        try:
            told = self._runs.said(folder, "rev-parse", "--show-toplevel", "--show-prefix", "HEAD^{commit}").split("\n")
        except RefusedError:
            return None
        if len(told) != _ORIGIN_LINES:
            # A name with a line end in it.
            return None
        # Git keeps branches as files, so one of that name leaves no room for others below it.
        taken = self._runs.run(folder, "rev-parse", "--verify", "--quiet", "refs/heads/coterie").returncode == 0
        inner = told[1].rstrip("/")
        return Origin(str(self._home), told[0], inner, told[2], "coterie-" if taken else "coterie/")

    def _own(self, worktree: Worktree) -> Path:
        """What git keeps of the worktree, in the repository and out of the session's reach."""
        common = self._git(worktree, "rev-parse", "--path-format=absolute", "--git-common-dir")
        return Path(common.removesuffix("\n")) / "worktrees" / Path(worktree.path).name

    def _has(self, worktree: Worktree, ref: str) -> bool:
        return self._is_so(worktree, "rev-parse", "--verify", "--quiet", ref)

    def _prepare(self, worktree: Worktree) -> None:
        if not Path(worktree.repository).is_dir():
            raise _refused(Code.FOLDER_GONE, f"The repository {worktree.repository} is not there any more.")
        path, own = Path(worktree.path), self._own(worktree)
        if _is_half_made(own):
            _remove(path)
        if not _holds(path):
            # Not there yet, or removed by hand: what was committed is on the branch.
            self._home.mkdir(mode=0o700, exist_ok=True)
            # Made here, because git may write into it but not beside it.
            path.mkdir(exist_ok=True)
            has = self._has(worktree, _ref(worktree))
            named = [worktree.path, worktree.branch] if has else ["-b", worktree.branch, worktree.path, worktree.base]
            # Twice: also where git still knows the folder, or was killed while it made it.
            self._git(worktree, "worktree", "add", "--quiet", "--force", "--force", *named)
        elif not own.is_dir():
            text = f"The worktree {path} is not one of {worktree.repository} any more; move it away to go on."
            raise _refused(Code.WORKER_NOT_READY, text)
        # A subfolder without any committed file is not in a new worktree.
        Path(worktree.folder).mkdir(parents=True, exist_ok=True)

    def _record(self, worktree: Worktree, title: str) -> Change:
        own = self._own(worktree)
        if _holds(Path(worktree.path)) and own.is_dir() and not _is_half_made(own):
            self._commit(worktree, own, title)
        self._needs_branch(worktree)
        return self._change(worktree)

    def _commit(self, worktree: Worktree, own: Path, title: str) -> None:
        _unlock(own, worktree)
        # The session may have switched to another branch; what it has made belongs to its own.
        self._git(worktree, "symbolic-ref", "HEAD", _ref(worktree), own=own)
        # A repository in the worktree can only be named in a commit, not be held by it.
        others = self._git(worktree, "ls-files", "--others", "--exclude-standard", "-z", own=own).split("\0")
        apart = [f":(exclude,literal){name.removesuffix('/')}" for name in others if name.endswith("/")]
        self._git(worktree, "add", "--all", "--", ".", *apart, own=own)
        if not self._is_so(worktree, "diff", "--cached", "--quiet", "--no-ext-diff", own=own):
            name = re.sub(r"[<>\n]", " ", f"Coterie session {title}").strip()
            who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _person(name)}
            message = f"Changes of the session {title}"
            self._git(worktree, "commit", "--quiet", "--no-verify", "-m", message, own=own, **who)

    def _change(self, worktree: Worktree) -> Change:
        told = self._git(worktree, *_COMPARE, "--numstat", "-z", *_span(worktree))
        rows = [row.split("\t", 2) for row in told.split("\0") if row]
        added, removed = (sum(int(row[at]) for row in rows if row[at] != "-") for at in (0, 1))
        return Change(tuple(mend(row[2]) for row in rows[:FILES_MAX]), len(rows), added, removed)

    def _diff(self, worktree: Worktree) -> tuple[str, Change]:
        self._needs_branch(worktree)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "change.diff")
            self._git(worktree, *_COMPARE, "--patch", f"--output={file}", *_span(worktree))
            with file.open("rb") as opened:
                text = os.fsdecode(opened.read(_DIFF_BYTES_MAX))
            if file.stat().st_size > _DIFF_BYTES_MAX:
                text += f"\n[the start of {file.stat().st_size} bytes: git diff {' '.join(_span(worktree)[:2])}]\n"
        return mend(text), self._change(worktree)

    def _needs_branch(self, worktree: Worktree) -> None:
        if not self._has(worktree, _ref(worktree)):
            raise _refused(Code.CONFLICT, f"There is no branch {worktree.branch}: nothing was done yet, or it is gone.")

    def _apply(self, worktree: Worktree) -> Change:
        self._needs_branch(worktree)
        change, top = self._change(worktree), worktree.repository
        with tempfile.TemporaryDirectory() as folder:
            patch = Path(folder, "change.patch")
            for start in self._starts(worktree, patch):
                self._write(worktree, patch, start, _ref(worktree))
                # A repeated request finds its own work.
                if not patch.stat().st_size or any(self._fits(worktree, patch, *how) for how in _WAYS):
                    self._git(worktree, "update-ref", _applied(worktree), _ref(worktree))
                    return change
            # A person may have merged the branch, and resolved what was in conflict.
            if self._is_so(worktree, "merge-base", "--is-ancestor", _ref(worktree), "HEAD"):
                return change
            said = self._runs.run(top, *_APPLY, str(patch), tree=worktree.path).stderr.decode("utf-8", "replace")
        files = tuple(dict.fromkeys(mend(name) for name in _CONFLICT.findall(said)))[:FILES_MAX] or change.files
        text = (
            f"The change does not fit what is in {top} by now; nothing was changed. In conflict: {', '.join(files)}. "
            f"To resolve that, commit what you have there and run `git merge {worktree.branch}`."
        )
        raise RefusedError(Refusal(Code.CONFLICT, text, candidates=files))

    def _starts(self, worktree: Worktree, patch: Path) -> Sequence[str]:
        """The commits from which on the change may be missing: what was applied is there unless it was undone."""
        last = _applied(worktree)
        if not self._has(worktree, last):
            return (worktree.base,)
        self._write(worktree, patch, worktree.base, last)
        if not patch.stat().st_size or self._fits(worktree, patch, "--reverse", "--check"):
            return (last,)
        is_new = not self._is_so(worktree, *_COMPARE, "--quiet", last, _ref(worktree), "--")
        return (worktree.base, last) if is_new else (worktree.base,)

    def _write(self, worktree: Worktree, patch: Path, start: str, end: str) -> None:
        words = (*_COMPARE, "--binary", "--full-index", f"--output={patch}")
        self._git(worktree, *words, start, end, "--")

    def _fits(self, worktree: Worktree, patch: Path, *how: str) -> bool:
        return self._is_so(worktree, *_APPLY, *how, str(patch))

    def _drop(self, worktree: Worktree, *, force: bool, branch: bool) -> None:
        path = Path(worktree.path)
        try:
            own = self._own(worktree)
        except RefusedError:
            # Without its repository nothing else is left of it.
            if not force:
                raise
            _remove(path)
            return
        if own.is_dir():
            if path.exists() and not force and not _is_half_made(own):
                self._needs_clean(worktree, own)
            # Whoever finds it half removed takes it for half made.
            (own / "locked").write_text(_HALF_MADE, encoding="utf-8")
        _remove(path)
        _remove(own)
        if branch:
            self._git(worktree, "update-ref", "-d", _applied(worktree))
            if self._has(worktree, _ref(worktree)):
                self._git(worktree, "branch", "--quiet", "-D", worktree.branch)

    def _needs_clean(self, worktree: Worktree, own: Path) -> None:
        words = ("status", "--porcelain", "--ignore-submodules=all", "--untracked-files=normal")
        staged = self._git(worktree, "ls-files", "--stage", "-z", own=own).split("\0")
        inner = (Path(worktree.path, line.partition("\t")[2]) for line in staged if line.startswith("160000 "))
        if self._git(worktree, *words, own=own) or any(map(_holds, inner)):
            text = f"The worktree {worktree.path} has changes that are not committed; force drops them."
            raise _refused(Code.CONFLICT, text)


def _is_half_made(own: Path) -> bool:
    """Whether git was killed while it made a worktree: it locks one until all files are there."""
    try:
        return (own / "locked").read_text(encoding="utf-8", errors="replace").strip() == _HALF_MADE
    except FileNotFoundError:
        return False


def _person(name: str) -> Sequence[tuple[str, str]]:
    return (("NAME", name), ("EMAIL", "session@coterie.invalid"))


def _ref(worktree: Worktree) -> str:
    return f"refs/heads/{worktree.branch}"


def _applied(worktree: Worktree) -> str:
    """Names the commit that was applied last."""
    return f"refs/coterie/applied/{worktree.branch}"


def _span(worktree: Worktree) -> tuple[str, str, str]:
    return worktree.base, _ref(worktree), "--"


def _where(worktree: Worktree, own: Path | None) -> tuple[str, dict[str, str]]:
    if own is None:
        return worktree.repository, {}
    return worktree.path, {"GIT_DIR": str(own), "GIT_WORK_TREE": worktree.path}


def _holds(folder: Path) -> bool:
    """Whether there is anything in a folder."""
    return folder.is_dir() and any(folder.iterdir())


def _unlock(own: Path, worktree: Worktree) -> None:
    """Remove what a git that was killed has locked: what a turn runs has ended before its change is recorded."""
    for lock in (*own.glob("*.lock"), own.parent.parent / f"{_ref(worktree)}.lock"):
        lock.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    """Remove a folder, if it is there; programs make some that are read only.

    Raises:
        RefusedError: The system does not let us.
    """
    if not folder.exists():
        return
    try:
        with contextlib.suppress(PermissionError):
            shutil.rmtree(folder)
            return
        for step, _, _ in os.walk(folder):
            Path(step).chmod(0o700)
        shutil.rmtree(folder)
    except OSError as error:
        text = f"{folder} could not be removed: {error.strerror or error}."
        raise _refused(Code.WORKER_NOT_READY, text) from error


def _refused(code: Code, text: str) -> RefusedError:
    return RefusedError(Refusal(code, text))
