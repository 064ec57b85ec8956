"""Calls to a running host: `POST /rpc`, and its stream of events.

The client is the standard library's: importing httpx2 takes as long as all the rest of this program's start, and a
command's start is what a person at a terminal waits for most often.
"""

import json
import os
import secrets
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast
from urllib.parse import urlencode, urlsplit

from coterie.core.codes import Code
from coterie.core.errors import HostUnavailableError
from coterie.interfaces.cli.failure import AnswerError

Answer: TypeAlias = dict[str, Any]
_T = TypeVar("_T")

HOST_FILE: Final = "host.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - the name of a file

_SILENCE_S_MAX: Final = 60.0
"""Silence after which a connection counts as broken; longer than a host sleeps in one call or between two beats."""
_ASK_AGAIN: Final = frozenset({Code.STORAGE_UNKNOWN.value, Code.HOST_UNAVAILABLE.value})


def fresh_key() -> str:
    """A new idempotency key."""
    return f"cli-{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True)
class HostFile:
    """What a running host writes into its data directory."""

    url: str
    pid: int
    host_id: str
    epoch: int
    interrupted: int = 0
    """Turns that the stop before its start has cut off, where it says so."""


def read_host(data: Path) -> HostFile | None:
    """Read `host.json` of the data directory; None where there is none.

    Raises:
        HostUnavailableError: It cannot be read.
    """
    path = data / HOST_FILE
    try:
        found = json.loads(path.read_text("utf-8"))
        stopped = int(found.get("interrupted", 0))
        return HostFile(str(found["url"]), int(found["pid"]), str(found["hostId"]), int(found["epoch"]), stopped)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostUnavailableError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HostUnavailableError(
            f"{path} is not what a host writes; stop the host that uses {data}, delete the file, "
            "and start again with `coterie up`."
        ) from error


def is_alive(pid: int) -> bool:
    """Whether a process with this id runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the stream."""

    name: str
    """`change`, `delta` or `reset`."""
    id: str
    """Where to go on after it; empty for what is not repeated."""
    data: Answer


@dataclass(frozen=True, slots=True)
class Dial:
    """The way to the host of one data directory."""

    data: Path
    host: HostFile
    token: str

    @classmethod
    def to(cls, data: Path) -> "Dial":
        """Find the host that runs on *data*; it is not called yet.

        Raises:
            HostUnavailableError: None does, or it cannot be reached by this user.
        """
        host = read_host(data)
        if host is None:
            raise HostUnavailableError(f"No host runs on {data}; start one with `coterie up{_option(data)}`.")
        if not is_alive(host.pid):
            raise HostUnavailableError(
                f"The host on {data} is gone (process {host.pid} does not run); "
                f"start one with `coterie up{_option(data)}`."
            )
        try:
            token = (data / TOKEN_FILE).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise HostUnavailableError(
                f"The token of the host on {data} cannot be read ({error}); use the account that started it."
            ) from error
        return cls(data, host, token)

    def call(self, operation: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Perform an operation and return its result; parameters that are None are left out.

        Raises:
            AnswerError: The host refused.
            HostUnavailableError: It does not answer.
        """
        given = {key: value for key, value in (parameters or {}).items() if value is not None}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": operation, "params": given}).encode()

        def ask() -> Answer:
            connection = self._connect()
            try:
                connection.request("POST", f"{self._prefix}/rpc", body, self._headers("application/json"))
                response = connection.getresponse()
                return self._result(response.status, response.read())
            finally:
                connection.close()

        return self._reached(ask)

    def act(self, operation: str, parameters: Mapping[str, Any], key: str | None = None) -> Answer:
        """Perform a mutating operation; ask once more, with the same key, where nobody knows whether it was done.

        Args:
            operation: As in the catalogue.
            parameters: Without the key.
            key: The idempotency key; a fresh one by default.

        Raises:
            AnswerError: The host refused.
            HostUnavailableError: It does not answer.
        """
        keyed = {**parameters, "idempotencyKey": key or fresh_key()}
        try:
            return self.call(operation, keyed)
        except HostUnavailableError:
            pass
        except AnswerError as error:
            if error.error_code not in _ASK_AGAIN:
                raise
        return Dial.to(self.data).call(operation, keyed)

    def pages(self, operation: str, field: str, parameters: Mapping[str, Any]) -> Iterator[Answer]:
        """Yield the entries of all pages of a list."""
        cursor: object = None
        while True:
            page = self.call(operation, {**parameters, "cursor": cursor})
            yield from page[field]
            cursor = page.get("cursor")
            if cursor is None:
                return

    def events(self, session_id: str | None, after: str | None) -> "EventStream":
        """Open the stream of events; when this returns, the host has accepted it.

        Args:
            session_id: One session, or None for all.
            after: The id of the last known event; None begins now.

        Raises:
            AnswerError: The host refused.
            HostUnavailableError: It does not answer.
        """
        given = {key: value for key, value in (("sessionId", session_id), ("after", after)) if value}
        # A word of the command line may have bytes that are no text.
        query = urlencode(given, errors="replace")

        def ask() -> EventStream:
            connection = self._connect()
            try:
                path = f"{self._prefix}/api/v1/events" + (f"?{query}" if query else "")
                connection.request("GET", path, headers=self._headers("text/event-stream"))
                # With the answer the connection may let go of it.
                wire = connection.sock
                response = connection.getresponse()
                if response.status == 200:  # noqa: PLR2004 - OK
                    return EventStream(self, connection, response, wire)
                self._result(response.status, response.read())
            except BaseException:
                connection.close()
                raise
            connection.close()
            raise self._foreign()

        return self._reached(ask)

    @property
    def _prefix(self) -> str:
        return urlsplit(self.host.url).path.rstrip("/")

    def _headers(self, accept: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Accept": accept, "Content-Type": "application/json"}

    def _connect(self) -> HTTPConnection:
        url = urlsplit(self.host.url)
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        return kind(url.hostname or "", url.port, timeout=_SILENCE_S_MAX)

    def _reached(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except (OSError, HTTPException, ValueError) as error:
            said = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            raise HostUnavailableError(
                f"The host on {self.data} does not answer at {self.host.url} ({said}); "
                f"see whether it runs, or start one with `coterie up{_option(self.data)}`."
            ) from error

    def _foreign(self) -> HostUnavailableError:
        return HostUnavailableError(
            f"What answers at {self.host.url} is not the host of {self.data}; stop it, or start yours on another port "
            "with `coterie up --port 0`."
        )

    def _result(self, status: int, body: bytes) -> Answer:
        """Read an answer: of JSON-RPC, or of the doorkeeper before it, whose body is the error itself."""
        try:
            found = json.loads(body)
        except ValueError as error:
            raise self._foreign() from error
        if not isinstance(found, dict):
            raise self._foreign()
        answer = cast("Answer", found)
        wrong = answer.get("error", answer if status >= 400 else None)  # noqa: PLR2004 - what is refused
        if isinstance(wrong, dict):
            raise _answered(cast("Answer", wrong))
        result = answer.get("result")
        if not isinstance(result, dict):
            raise self._foreign()
        return cast("Answer", result)


def _answered(wrong: Answer) -> AnswerError:
    data = wrong.get("data")
    detail = cast("Answer", data) if isinstance(data, dict) else {}
    code = detail.get("errorCode", wrong.get("errorCode", Code.INTERNAL.value))
    return AnswerError(str(code), str(wrong.get("message", "The host gave no reason.")), detail)


def _option(data: Path) -> str:
    return f" --data {shlex.quote(str(data))}"


class EventStream(AbstractContextManager["EventStream"]):
    """An open stream of events; it ends with its connection."""

    def __init__(self, dial: Dial, connection: HTTPConnection, response: HTTPResponse, wire: socket.socket) -> None:
        self._dial, self._connection, self._response, self._wire = dial, connection, response, wire

    def hang_up(self) -> None:
        """End it from another thread than the one that waits for its next event."""
        with suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_fault: object) -> None:
        self._response.close()
        self._connection.close()

    def __iter__(self) -> Iterator[Event]:
        """Yield events as they come.

        Raises:
            HostUnavailableError: The connection broke.
        """
        try:
            yield from parse(iter(self._response.readline, b""))
        except (OSError, HTTPException, ValueError) as error:
            raise HostUnavailableError(f"The stream of {self._dial.host.url} broke ({error}).") from error


def parse(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events in the lines of a `text/event-stream` whose data is JSON; an unfinished one is dropped."""
    name, id_, data = "", "", list[str]()
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield Event(name or "message", id_, cast("Answer", json.loads("\n".join(data))))
            name, id_, data = "", "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "id":
            id_ = value
        elif field == "data":
            data.append(value)
