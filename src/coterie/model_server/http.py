"""As much of an HTTP/1.1 server as it takes to misbehave on purpose.

Not for production: one request at a time on a connection, loopback only. It stands on sockets directly, because closing
one in the middle of a stream is what web frameworks rightly make hard.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

HEAD_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_MAX: Final = 64 * 1024 * 1024


class BadRequestError(Exception):
    """What arrived is not an HTTP request that this server reads."""


class ClientLeft(Exception):
    """The client closed the connection, so there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request."""

    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Their names are in lower case."""
    body: bytes


class Connection:
    """One client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: asyncio.Event) -> None:
        self._reader, self._writer, self._left = reader, writer, left

    async def receive(self) -> HttpRequest | None:
        """Return the next request, or None when the client has no more.

        Raises:
            BadRequestError: It is not HTTP, or too large.
            ClientLeft: The connection ended inside the request.
        """
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                raise ClientLeft from error
            return None
        except ConnectionError as error:
            raise ClientLeft from error
        except asyncio.LimitOverrunError as error:
            raise BadRequestError("the request's head is too large") from error
        method, path, headers = _parse_head(head.decode("latin-1"))
        if headers.get("expect", "").lower() == "100-continue":
            await self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await self._body(headers)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ClientLeft from error
        return HttpRequest(method, path, headers, body)

    async def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole response."""
        await self.send(_head(status, {**headers, "content-length": str(len(body))}) + body)

    async def answer_in_part(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a response that promises all of *body* and keeps back its second half."""
        await self.send(_head(status, {**headers, "content-length": str(len(body))}) + body[: len(body) // 2])

    async def start_stream(self, headers: Mapping[str, str]) -> None:
        """Send the head of a response whose length is open."""
        await self.send(_head(200, {**headers, "transfer-encoding": "chunked"}))

    async def send_chunk(self, data: bytes) -> None:
        """Send a part of the response under way."""
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end_stream(self) -> None:
        """Say that the response is complete."""
        await self.send(b"0\r\n\r\n")

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._left.is_set():
            raise ClientLeft
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise ClientLeft from error

    async def pause(self, delay_ms: int) -> None:
        """Wait, but not for a client that leaves meanwhile."""
        if delay_ms == 0:
            return
        try:
            await asyncio.wait_for(self._left.wait(), delay_ms / 1000)
        except TimeoutError:
            return
        raise ClientLeft

    async def until_left(self) -> None:
        """Wait until the client closes the connection."""
        await self._left.wait()

    async def close(self) -> None:
        """Close the connection when everything written is sent, or at once where the caller is cancelled."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await self._chunked_body()
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise BadRequestError("the content length is no number")
        return await self._reader.readexactly(_within_bounds(int(length)))

    async def _chunked_body(self) -> bytes:
        body = bytearray()
        while True:
            line = (await self._reader.readuntil(b"\r\n")).split(b";")[0].strip()
            try:
                size = int(line, 16)
            except ValueError as error:
                raise BadRequestError("the size of a chunk is no number") from error
            _within_bounds(len(body) + size)
            if size == 0:
                break
            body += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        # Trailers, if any, end with an empty line.
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return bytes(body)


class _Protocol(asyncio.StreamReaderProtocol):
    """Tells when the client leaves, also while nobody reads."""

    def __init__(self, on_connection: Callable[[Connection], None], loop: asyncio.AbstractEventLoop) -> None:
        self._gone = asyncio.Event()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            on_connection(Connection(reader, writer, self._gone))

        super().__init__(asyncio.StreamReader(limit=HEAD_BYTES_MAX, loop=loop), connected, loop)

    def eof_received(self) -> bool | None:
        self._gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(exc)


async def listen(host: str, port: int, on_connection: Callable[[Connection], None]) -> asyncio.Server:
    """Listen, and call *on_connection* for each client; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _Protocol(on_connection, loop), host, port)


def _parse_head(head: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.strip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):  # noqa: PLR2004 - method, target and version
        raise BadRequestError("the first line is not that of an HTTP/1.1 request")
    fields = (line.partition(":") for line in lines)
    return parts[0], parts[1].partition("?")[0], {name.strip().lower(): value.strip() for name, _, value in fields}


def _within_bounds(size: int) -> int:
    if not 0 <= size <= BODY_BYTES_MAX:
        raise BadRequestError("the body is too large")
    return size


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
