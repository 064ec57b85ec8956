"""A client that writes bytes to a socket: a client library would be most of the figure."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Connection:
    """A client of one connection that it keeps."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes

    async def call(self, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation by `POST /rpc`."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": operation, "params": given}).encode()
        self.writer.write(self.head % len(body) + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(size))
        assert "result" in answer, answer
        return answer["result"]


@asynccontextmanager
async def connected(port: int, token: str) -> AsyncGenerator[Connection]:
    """Connect to a host of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    try:
        yield Connection(reader, writer, head.encode())
    finally:
        writer.close()
        await writer.wait_closed()
