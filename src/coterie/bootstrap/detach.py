"""Starts a host in a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from coterie.bootstrap.files import HOST_FILE, make_data_directory
from coterie.core.codes import Code
from coterie.core.errors import HostUnavailableError, StartError

START_S_MAX: Final = 60.0
_LOOK_S: Final = 0.05


def start_detached(data: Path, options: Sequence[str] = ()) -> dict[str, Any]:
    """Start `coterie up` on *data* and return what its `host.json` says, once it answers.

    Raises:
        StartError: It ended; the text is its own last word.
        HostUnavailableError: It did not answer in time.
    """
    make_data_directory(data)
    log = data / "host.log"
    command = [sys.executable, "-m", "coterie", "up", "--data", str(data), "--no-open", "--json", *options]
    with log.open("ab") as output:
        began = output.tell()
        process = subprocess.Popen(  # noqa: S603 - this program itself
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, close_fds=True
        )
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        about = _about(data)
        if about is not None and about.get("pid") == process.pid:
            # The child outlives us on purpose; this keeps its object from warning that nobody waited.
            process.returncode = 0
            return about
        if process.poll() is not None:
            raise _last_word(log, began)
        time.sleep(_LOOK_S)
    process.terminate()
    raise HostUnavailableError(f"The host did not answer within {START_S_MAX:.0f} s; {log} has its words.")


def _about(data: Path) -> dict[str, Any] | None:
    try:
        found: Any = json.loads((data / HOST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


class _EndedError(StartError):
    """The host ended at its start, with a code of its own."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def _last_word(log: Path, began: int) -> StartError:
    with log.open("rb") as file:
        file.seek(began)
        lines = file.read().decode(errors="replace").strip().splitlines()
    for line in reversed(lines):
        try:
            found: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and "errorCode" in found:
            told = cast("dict[str, Any]", found)
            return _EndedError(Code(told["errorCode"]), str(told["message"]))
    return _EndedError(Code.INTERNAL, f"The host ended at its start; {log} has its words.")
