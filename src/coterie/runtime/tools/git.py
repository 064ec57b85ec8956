"""Runs git: without secrets, prompts and hooks, and where that can be the host's folder is closed to it.

A repository can name programs that git runs by itself, such as filters, and sessions may write to its configuration.
So what git starts is held as the commands of sessions are.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coterie.core.codes import Code
from coterie.core.errors import RefusedError
from coterie.core.refusal import Refusal
from coterie.core.text import cut, mend
from coterie.runtime.tools.ground import worktree_at
from coterie.runtime.tools.process import without_secrets
from coterie.runtime.tools.shell import confining, staying

_TIMEOUT_S: Final = 120.0
_SAID_CHARS_MAX: Final = 500
_OPTIONS: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "commit.gpgSign=false"),
)
_STARTS_NOTHING: Final = frozenset({"rev-parse", "symbolic-ref", "update-ref", "branch", "ls-files"})
"""These read and write names only, so nothing has to be held; holding takes longer than they do."""
_ALONE: Final = {"GIT_DIR": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Without any configuration git starts nothing."""


class Git:
    """The git of one host; it blocks.

    Args:
        closed: The folder of the host.
        environment: What the host was started with; git sees a part of it.
        confined: Whether the folder is closed to it.
    """

    def __init__(self, closed: Path, environment: Mapping[str, str], *, confined: bool) -> None:
        self._closed = closed.resolve()
        self._program = shutil.which("git", path=environment.get("PATH"))
        self._before = confining([closed]) if confined else ()
        self._environment = without_secrets(environment) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    def run(
        self, folder: str, *words: str, tree: str | None = None, extra: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run git to its end.

        Args:
            folder: Where.
            words: What.
            tree: The worktree in the folder of the host that stays open to it, besides one that *folder* is in.
            extra: More variables.

        Raises:
            RefusedError: It cannot be run, or takes too long.
        """
        here = worktree_at(Path(folder), self._closed)
        opened = [path for path in (here, Path(tree) if tree else None) if path is not None]
        # Held, it could make nothing directly in a folder that the closed one lies below.
        alone = words[0] == "apply" and self._closed.is_relative_to(folder)
        is_held = self._before and words[0] not in _STARTS_NOTHING and not alone
        before = (*self._before, staying(opened)) if is_held else ()
        if self._program is None:
            raise _refused("git is not installed.")
        try:
            return subprocess.run(  # noqa: S603 - the words are ours, and no shell reads them
                [*before, self._program, *_OPTIONS, *words],
                cwd=folder,
                env={**self._environment, **(extra or {}), **(_ALONE if alone else {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refused(f"git cannot be run in {folder}: {error}.") from error

    def said(self, folder: str, *words: str, tree: str | None = None, extra: Mapping[str, str] | None = None) -> str:
        """What git says; see `run`.

        Raises:
            RefusedError: It refuses, with its words.
        """
        ended = self.run(folder, *words, tree=tree, extra=extra)
        if ended.returncode != 0:
            said = cut(mend(ended.stderr.decode("utf-8", "replace")).strip(), _SAID_CHARS_MAX)[0]
            raise _refused(f"git {words[0]} was refused in {folder}: {said}")
        return os.fsdecode(ended.stdout)


def _refused(text: str) -> RefusedError:
    return RefusedError(Refusal(Code.WORKER_NOT_READY, text))
