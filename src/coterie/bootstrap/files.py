"""The names of the files in a data directory, and how they are written."""

import errno
import os
import secrets
from pathlib import Path
from typing import Final

from coterie.core.errors import ConfigInvalidError

COMMANDS: Final = "commands"
"""The folder with a record of each command that runs."""
DATABASE: Final = "coterie.db"
AGENTS: Final = "agents"
"""Definitions of subagents, for all projects."""
BLOBS: Final = "blobs"
HOST_FILE: Final = "host.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - the name of the file, not the secret

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


def unusable(path: Path, error: OSError) -> ConfigInvalidError:
    """The fault of a file or folder that is in the way."""
    return ConfigInvalidError(
        f"{path} cannot be used ({error.strerror}); move it away, or name another data directory with --data."
    )


def make_data_directory(folder: Path) -> None:
    """Make the data directory if it is not there, and close it to other users.

    Raises:
        ConfigInvalidError: It cannot be made, or is not ours.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user")
        folder.chmod(0o700)
    except OSError as error:
        raise unusable(folder, error) from error


def read_token(folder: Path) -> str:
    """The person's bearer token: made at the first start, readable by its owner only.

    Raises:
        ConfigInvalidError: Something else has its name.
    """
    path = folder / TOKEN_FILE
    try:
        if path.exists() or path.is_symlink():
            # Not through a link: what somebody has put there must not make a file of ours the token.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
                os.fchmod(file.fileno(), 0o600)
                known = file.read().strip()
            if known:
                return known
        token = secrets.token_urlsafe(32)
        write_private(path, token)
    except OSError as error:
        raise unusable(path, error) from error
    return token


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by its owner only: a reader sees the old text or the new one."""
    beside = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(beside, _NEW, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    beside.replace(path)
