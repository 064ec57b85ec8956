"""A vendor on a real socket that answers as it was told, and the shortest way to ask it."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from coterie.core.model_ref import Binding
from coterie.core.turn.context import Shown, UserPart
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.ports.model_provider import ModelRequest, ToolSpec
from coterie.runtime.providers.direct import DirectProvider

SECRET = "sk-secret"  # the key that must never be shown
BOUND_S = 20.0
needs_google = pytest.mark.skipif(
    (find_spec("google") is None or find_spec("google.genai") is None) and os.getenv("CI") != "true",
    reason="the extra `google` is not installed",
)
APIS = ("openai-chat", "openai-responses", "anthropic", pytest.param("google", marks=needs_google))
READ = ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@dataclass(frozen=True)
class Answer:
    """One scripted answer: its body in pieces, and how it ends."""

    pieces: tuple[str, ...] = ()
    then: Literal["end", "cut", "hang"] = "end"
    status: str = "200 OK"
    headers: tuple[str, ...] = ("Content-Type: text/event-stream",)


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Vendor:
    """A server that answers as it was told, and notes what it was asked."""

    answers: list[Answer] = field(default_factory=list[Answer])
    asked: list[Asked] = field(default_factory=list[Asked])
    connections: int = 0
    url: str = ""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    open: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(
        default_factory=dict[asyncio.Task[Any], asyncio.StreamWriter]
    )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.open[task] = writer
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.asked.append(Asked(lines[0].split()[1], headers, body))
        answer = self.answers.pop(0)
        head = (f"HTTP/1.1 {answer.status}", *answer.headers, "Transfer-Encoding: chunked", "", "")
        writer.write("\r\n".join(head).encode())
        for piece in answer.pieces:
            data = piece.encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
        match answer.then:
            case "cut":
                return False
            case "hang":
                self.hanging.set()
                await reader.read()
                self.left.set()
                return False
            case "end":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return True


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncGenerator[Vendor]:
    vendor = Vendor(list(answers))
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0)
    vendor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield vendor
        # Newer versions of Python wait for every connection before a server is closed.
        for writer in vendor.open.values():
            writer.close()
        await asyncio.gather(*vendor.open)


def binding_of(vendor: Vendor, api: str = "openai-chat", *, key: str | None = SECRET) -> Binding:
    url = f"{vendor.url}/v1" if api.startswith("openai") else vendor.url
    return Binding("test/script", api, url, "script-1", api_key=key, origin="MY_VARIABLE")


def request(binding: Binding, *context: Shown) -> ModelRequest:
    return ModelRequest(binding, "Be brief.", context or (UserPart("Hello"),), (READ,))


async def asked(provider: DirectProvider, wanted: ModelRequest) -> tuple[Replied | ModelFailed, list[str]]:
    texts: list[str] = []
    async with asyncio.timeout(BOUND_S):
        outcome = await provider.ask(wanted, texts.append)
    return outcome, texts


def gemini(*parts: dict[str, Any], finish: str | None = None, **candidate: Any) -> str:
    found = {"content": {"role": "model", "parts": parts}, "finishReason": finish, **candidate}
    return f"data: {json.dumps({'candidates': [found], 'responseId': 'r1'})}\r\n\r\n"


def gemini_call(arguments: dict[str, Any] | None, **part: Any) -> dict[str, Any]:
    return {"functionCall": {"id": "call-1", "name": "read", "args": arguments}, **part}


GEMINI_USAGE = f"data: {json.dumps({'usageMetadata': {'promptTokenCount': 11, 'candidatesTokenCount': 7}})}\r\n\r\n"


def failing(status: str, *headers: str, text: str = "no") -> Answer:
    body = json.dumps({"type": "error", "error": {"type": "some_error", "message": text}})
    return Answer((body,), status=status, headers=("Content-Type: application/json", *headers))
