"""Worktrees by git: implements `ports.workspaces.Workspaces`.

Git runs without secrets, prompts and hooks. For a worktree its git directory is named, because a session may have
written to the `.git` file in its folder, and what that names could run programs.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.refusal import Refusal
from coterie.core.session.worktree import FILES_MAX, FOLDER, Change, Origin, Worktree
from coterie.core.text import cut, mend
from coterie.runtime.tools.process import without_secrets

_TIMEOUT_S: Final = 120.0
_SAID_CHARS_MAX: Final = 500
_DIFF_BYTES_MAX: Final = 8_000_000
"""How much of a difference is read into memory."""
_OPTIONS: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "commit.gpgSign=false"),
)
_PLAIN: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")
_CONFLICT: Final = re.compile(
    r"^error: (.+): (?:patch does not apply|already exists in working directory|No such file or directory)$",
    re.MULTILINE,
)


class Worktrees:
    """The worktrees of one host."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str]) -> None:
        self._home = data_dir.resolve() / FOLDER
        self._environment = without_secrets(environment) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self._one = asyncio.Lock()
        """Changes of repositories come one after the other."""

    async def origin(self, folder: str) -> Origin | None:
        """See the port."""
        return await asyncio.to_thread(self._origin, folder)

    async def prepare(self, worktree: Worktree) -> None:
        """See the port."""
        async with self._one:
            await asyncio.to_thread(self._prepare, worktree)

    async def record(self, worktree: Worktree, title: str) -> Change:
        """See the port."""
        async with self._one:
            return await asyncio.to_thread(self._record, worktree, title)

    async def diff(self, worktree: Worktree) -> tuple[str, Change]:
        """See the port."""
        return await asyncio.to_thread(self._diff, worktree)

    async def apply(self, worktree: Worktree) -> Change:
        """See the port."""
        async with self._one:
            return await asyncio.to_thread(self._apply, worktree)

    async def drop(
        self, worktree: Worktree, *, force: bool, branch: bool, may: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """See the port."""
        async with self._one:
            if may is not None:
                await may()
            await asyncio.to_thread(self._drop, worktree, force=force, branch=branch)

    def _run(
        self, folder: str, *words: str, extra: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        line = ["git", *_OPTIONS, *words]
        environment = {**self._environment, **(extra or {})}
        try:
            return subprocess.run(  # noqa: S603 - the words are ours, and no shell reads them
                line,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refused(Code.WORKER_NOT_READY, f"git cannot be run in {folder}: {error}.") from error

    def _git(self, folder: str, *words: str, extra: Mapping[str, str] | None = None) -> str:
        ended = self._run(folder, *words, extra=extra)
        if ended.returncode != 0:
            said = cut(mend(ended.stderr.decode("utf-8", "replace")).strip(), _SAID_CHARS_MAX)[0]
            raise _refused(Code.WORKER_NOT_READY, f"git {words[0]} was refused in {folder}: {said}")
        return os.fsdecode(ended.stdout)

    def _origin(self, folder: str) -> Origin | None:
        path = Path(folder)
        if not any((step / ".git").exists() for step in (path, *path.parents)):
            return None
        try:
            told = self._git(folder, "rev-parse", "--show-toplevel", "--show-prefix", "HEAD^{commit}").split("\n")
        except RefusedError:
            return None
        return Origin(str(self._home), told[0], told[1].rstrip("/"), told[2])

    def _own(self, worktree: Worktree) -> Path:
        """What git keeps of the worktree, in the repository and out of the session's reach."""
        common = self._git(worktree.repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
        return Path(common.removesuffix("\n")) / "worktrees" / Path(worktree.path).name

    def _inside(self, worktree: Worktree) -> dict[str, str]:
        return {"GIT_DIR": str(self._own(worktree)), "GIT_WORK_TREE": worktree.path}

    def _has_branch(self, worktree: Worktree) -> bool:
        ref = f"refs/heads/{worktree.branch}"
        return self._run(worktree.repository, "rev-parse", "--verify", "--quiet", ref).returncode == 0

    def _prepare(self, worktree: Worktree) -> None:
        if not Path(worktree.repository).is_dir():
            raise _refused(Code.FOLDER_GONE, f"The repository {worktree.repository} is not there any more.")
        path, own = Path(worktree.path), self._own(worktree)
        if _is_half_made(own):
            shutil.rmtree(path, ignore_errors=True)
        if not path.is_dir():
            # Not there yet, or removed by hand: what was committed is on the branch.
            self._home.mkdir(mode=0o700, exist_ok=True)
            has = self._has_branch(worktree)
            named = [worktree.path, worktree.branch] if has else ["-b", worktree.branch, worktree.path, worktree.base]
            # Twice: also where git still knows the folder, or was killed while it made it.
            self._git(worktree.repository, "worktree", "add", "--quiet", "--force", "--force", *named)
        elif not own.is_dir():
            text = f"The worktree {path} is not one of {worktree.repository} any more; move it away to go on."
            raise _refused(Code.WORKER_NOT_READY, text)
        # A subfolder without any committed file is not in a new worktree.
        Path(worktree.folder).mkdir(parents=True, exist_ok=True)

    def _record(self, worktree: Worktree, title: str) -> Change:
        own = self._own(worktree)
        if Path(worktree.path).is_dir() and own.is_dir() and not _is_half_made(own):
            self._commit(worktree, title)
        self._needs_branch(worktree)
        return self._change(worktree)

    def _commit(self, worktree: Worktree, title: str) -> None:
        inside = self._inside(worktree)
        # The session may have switched to another branch; what it has made belongs to its own.
        self._git(worktree.path, "symbolic-ref", "HEAD", f"refs/heads/{worktree.branch}", extra=inside)
        self._git(worktree.path, "add", "--all", extra=inside)
        staged = self._run(worktree.path, "diff", "--cached", "--quiet", "--no-ext-diff", extra=inside)
        if staged.returncode != 0:
            name = re.sub(r"[<>\n]", " ", f"Coterie session {title}").strip()
            who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _person(name)}
            message = f"Changes of the session {title}"
            self._git(worktree.path, "commit", "--quiet", "--no-verify", "-m", message, extra={**inside, **who})

    def _change(self, worktree: Worktree) -> Change:
        told = self._git(worktree.repository, "diff", "--numstat", "-z", *_PLAIN, *_span(worktree))
        rows = [row.split("\t", 2) for row in told.split("\0") if row]
        added, removed = (sum(int(row[at]) for row in rows if row[at] != "-") for at in (0, 1))
        return Change(tuple(mend(row[2]) for row in rows[:FILES_MAX]), len(rows), added, removed)

    def _diff(self, worktree: Worktree) -> tuple[str, Change]:
        self._needs_branch(worktree)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "change.diff")
            self._git(worktree.repository, "diff", f"--output={file}", *_PLAIN, *_span(worktree))
            with file.open("rb") as opened:
                text = os.fsdecode(opened.read(_DIFF_BYTES_MAX))
            if file.stat().st_size > _DIFF_BYTES_MAX:
                text += f"\n[the start of {file.stat().st_size} bytes: git diff {' '.join(_span(worktree)[:2])}]\n"
        return mend(text), self._change(worktree)

    def _needs_branch(self, worktree: Worktree) -> None:
        if not self._has_branch(worktree):
            raise _refused(Code.CONFLICT, f"There is no branch {worktree.branch}: nothing was done yet, or it is gone.")

    def _apply(self, worktree: Worktree) -> Change:
        self._needs_branch(worktree)
        change = self._change(worktree)
        if not change.count:
            return change
        top = worktree.repository
        with tempfile.TemporaryDirectory() as folder:
            patch = f"{folder}/change.patch"
            self._git(top, "diff", "--binary", "--full-index", f"--output={patch}", *_PLAIN, *_span(worktree))
            ended = self._run(top, "apply", "--whitespace=nowarn", patch)
            if ended.returncode == 0:
                return change
            # A repeated request finds its own work, or a person has merged the branch.
            merged = ("merge-base", "--is-ancestor", f"refs/heads/{worktree.branch}", "HEAD")
            if any(
                self._run(top, *words).returncode == 0 for words in (("apply", "--reverse", "--check", patch), merged)
            ):
                return change
        said = ended.stderr.decode("utf-8", "replace")
        files = tuple(dict.fromkeys(mend(name) for name in _CONFLICT.findall(said)))[:FILES_MAX] or change.files
        text = (
            f"The change does not fit what is in {top} by now; nothing was changed. In conflict: {', '.join(files)}. "
            f"To resolve that, commit what you have there and run `git merge {worktree.branch}`."
        )
        raise RefusedError(Refusal(Code.CONFLICT, text, candidates=files))

    def _drop(self, worktree: Worktree, *, force: bool, branch: bool) -> None:
        path, own = Path(worktree.path), self._own(worktree)
        if path.exists() and not force and not _is_half_made(own):
            self._needs_clean(worktree)
        if path.exists():
            shutil.rmtree(path)
        if own.exists():
            shutil.rmtree(own)
        if branch and self._has_branch(worktree):
            self._git(worktree.repository, "branch", "--quiet", "-D", worktree.branch)

    def _needs_clean(self, worktree: Worktree) -> None:
        words = ("status", "--porcelain", "--ignore-submodules=all")
        if self._git(worktree.path, *words, extra=self._inside(worktree)):
            text = f"The worktree {worktree.path} has changes that are not committed; force drops them."
            raise _refused(Code.CONFLICT, text)


def _is_half_made(own: Path) -> bool:
    """Whether git was killed while it made a worktree: it locks one until all files are there."""
    try:
        return (own / "locked").read_text(encoding="utf-8").strip() == "initializing"
    except FileNotFoundError:
        return False


def _person(name: str) -> Sequence[tuple[str, str]]:
    return (("NAME", name), ("EMAIL", "session@coterie.invalid"))


def _span(worktree: Worktree) -> tuple[str, str, str]:
    return worktree.base, f"refs/heads/{worktree.branch}", "--"


def _refused(code: Code, text: str) -> RefusedError:
    return RefusedError(Refusal(code, text))
