"""How one notice leaves the host: on the standard input of a command, or by HTTP to an address."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.parse import urlsplit

import httpx2

from coterie.core.notice import Notify
from coterie.core.text import cut
from coterie.runtime.tools.process import Ended, Program, run_group, without_secrets

TIMEOUT_S: Final = 5.0
"""How long a command or an address may take."""
_SAID_CHARS_MAX: Final = 200
_DESKTOP: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""What a command needs to show something on the person's screen; no secret is in these."""


class UndeliveredError(Exception):
    """A notice did not arrive; the text says why and names no secret."""


class Post(Protocol):
    """One way out."""

    async def deliver(self, body: bytes) -> None:
        """Send one notice, a JSON object.

        Raises:
            UndeliveredError: It did not arrive.
        """
        ...

    async def close(self) -> None:
        """Send nothing more."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What commands are run with."""

    folder: Path
    """Where they begin."""
    environment: Mapping[str, str]
    """The host's; commands see a part of it."""
    records: Path
    """Where running commands are on record, for a start after a crash."""
    timeout_s: float = TIMEOUT_S

    def program(self, line: tuple[str, ...], stdin: IO[bytes]) -> Program:
        """*line* as a program that is told *stdin*."""
        shown = {name: self.environment[name] for name in _DESKTOP if name in self.environment}
        environment = without_secrets(self.environment) | shown
        return Program(line, self.folder, environment, stdin=stdin, records=self.records)


def post_of(notify: Notify, surroundings: Surroundings) -> Post:
    """The way that *notify* names."""
    return CommandPost(notify.command, surroundings) if notify.command else UrlPost(notify.url, surroundings.timeout_s)


@dataclass(frozen=True, slots=True)
class CommandPost:
    """Runs a program for each notice; no shell reads its arguments."""

    line: tuple[str, ...]
    surroundings: Surroundings

    async def deliver(self, body: bytes) -> None:
        """See `Post`."""
        try:
            ended = await self._run(body)
        except OSError as error:
            raise UndeliveredError(f"{self.line[0]} could not be run: {error.strerror or error}") from error
        if ended.status is None:
            raise UndeliveredError(f"{self.line[0]} was ended, for it took more than {self.surroundings.timeout_s:g} s")
        if ended.status:
            said = cut(" ".join(ended.output.split()), _SAID_CHARS_MAX)[0]
            raise UndeliveredError(f"{self.line[0]} ended with status {ended.status}: {said}")

    async def _run(self, body: bytes) -> Ended:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(body)
            stdin.seek(0)
            return await run_group(self.surroundings.program(self.line, stdin), self.surroundings.timeout_s)

    async def close(self) -> None:
        """See `Post`."""


@dataclass(slots=True)
class UrlPost:
    """Posts each notice; what is answered beyond the status is not read, and nobody is followed elsewhere."""

    url: str = field(repr=False)
    timeout_s: float = TIMEOUT_S
    _client: httpx2.AsyncClient | None = None

    async def deliver(self, body: bytes) -> None:
        """See `Post`."""
        place = urlsplit(self.url).hostname
        try:
            # In a thread: a client reads the certificates of this machine.
            self._client = self._client or await asyncio.to_thread(httpx2.AsyncClient, timeout=self.timeout_s)
            async with (
                asyncio.timeout(self.timeout_s),
                self._client.stream(
                    "POST", self.url, content=body, headers={"content-type": "application/json"}
                ) as answer,
            ):
                status, taken = answer.status_code, answer.is_success
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise UndeliveredError(f"{place} cannot be reached ({type(error).__name__})") from error
        if not taken:
            raise UndeliveredError(f"{place} answered HTTP {status}")

    async def close(self) -> None:
        """See `Post`."""
        if self._client is not None:
            await self._client.aclose()
