"""The server: picks the rule for each request and sends its reply, well-behaved or not."""

import asyncio
import hashlib
import hmac
import json
import logging
import signal
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from coterie.core.errors import PortInUseError, PublicBindRefusedError
from coterie.model_server.answer import Answer, answer, to_json
from coterie.model_server.anthropic_messages import ANTHROPIC_MESSAGES
from coterie.model_server.http import BadRequestError, ClientLeft, Connection, HttpRequest, listen
from coterie.model_server.openai_chat import CREATED, OPENAI_CHAT
from coterie.model_server.openai_responses import OPENAI_RESPONSES
from coterie.model_server.reading import load_script
from coterie.model_server.request import Request
from coterie.model_server.script import Drop, Ending, Failure, Hang, Script, Speech
from coterie.model_server.template import FillError, fill_shape
from coterie.model_server.wire_format import JsonObject, Place, WireFormat

_FORMATS: Final[Mapping[str, WireFormat]] = {
    "/chat/completions": OPENAI_CHAT,
    "/responses": OPENAI_RESPONSES,
    "/messages": ANTHROPIC_MESSAGES,
}
_JSON: Final[Mapping[str, str]] = MappingProxyType({"content-type": "application/json"})
_SSE: Final[Mapping[str, str]] = MappingProxyType({"content-type": "text/event-stream", "cache-control": "no-cache"})
_log: Final = logging.getLogger(__name__)


class ModelServer:
    """A scripted model server on a loopback address, for as long as its context lasts.

    Args:
        script: What to answer.
        host: A loopback address.
        port: 0 takes a free one.
    """

    def __init__(self, script: Script, host: str = "127.0.0.1", port: int = 0) -> None:
        if not _is_loopback(host):
            raise PublicBindRefusedError(f"The model server listens on loopback only; {host!r} is no such address.")
        self.script = script
        self.requests: list[dict[str, object]] = []
        """Bodies of the model requests so far, in order of arrival; those with a wrong key are not among them."""
        self.answering = 0
        """How many model requests are being answered, hanging ones included."""
        self.url = ""
        """Where it listens: Anthropic's base URL; OpenAI's is this with `/v1` behind it."""
        self._host, self._port = host, port
        self._used: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._group = asyncio.TaskGroup()
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            PortInUseError: The port is taken.
        """
        await self._group.__aenter__()
        try:
            self._server = await listen(self._host, self._port, self._welcome)
        except OSError as error:
            await self._group.__aexit__(None, None, None)
            raise PortInUseError(f"Port {self._port} of {self._host} cannot be had: {error.strerror}.") from error
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close every connection, also those that are being answered."""
        await self._stop_listening()
        await self._group.__aexit__(None, None, None)

    async def _stop_listening(self) -> None:
        assert self._server is not None, "the context was entered"
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Be gone inside the block, as a server that was stopped: no connection lives, and new ones are refused."""
        await self._stop_listening()
        try:
            yield
        finally:
            self._server = await listen(self._host, urlsplit(self.url).port or 0, self._welcome)

    async def until(self, holds: Callable[["ModelServer"], bool]) -> None:
        """Wait until *holds* is true of the server; for tests, such as `server.until(lambda s: s.answering == 0)`."""
        while not holds(self):
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _welcome(self, connection: Connection) -> None:
        task = self._group.create_task(self._converse(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: Connection) -> None:
        try:
            while (request := await connection.receive()) is not None:
                if not await self._handle(connection, request):
                    break
        except asyncio.CancelledError:
            connection.abort()
            raise
        except ClientLeft:
            connection.abort()
        except BadRequestError as error:
            await _refuse(connection, 400, str(error))
        except Exception:  # noqa: BLE001 - a server's edge: one bad connection must not end the others
            _log.warning("the model server failed at a request", exc_info=True)
            connection.abort()
        finally:
            await connection.close()

    async def _handle(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer one request; return whether the connection can take another."""
        path = request.path.rstrip("/")
        # SDKs differ on whether "/v1" belongs to the base URL, so it may stand there any number of times.
        while path.startswith("/v1/"):
            path = path.removeprefix("/v1")
        wire = _FORMATS.get(path.removesuffix("/count_tokens"), OPENAI_CHAT)
        if not self._lets_in(request.headers):
            return await _send_json(connection, 401, wire.fault(401, "The API key is not the one of the script."))
        if request.method == "GET" and (path == "/models" or path.startswith("/models/")):
            return await self._list_models(connection, path.removeprefix("/models").strip("/"))
        if path not in _FORMATS and path != "/messages/count_tokens":
            return await _send_json(connection, 404, wire.fault(404, f"There is nothing at {request.path}."))
        if request.method != "POST":
            return await _send_json(connection, 405, wire.fault(405, f"{request.path} takes POST only."))
        try:
            asked, body = wire.decode(request.body), _body(request.body)
        except ValueError as error:
            return await _send_json(connection, 400, wire.fault(400, f"The request cannot be read: {error}"))
        if path.endswith("/count_tokens"):
            return await _send_json(connection, 200, {"input_tokens": -(-asked.chars // 4)})
        return await self._counted(connection, wire, asked, body)

    async def _counted(self, connection: Connection, wire: WireFormat, asked: Request, body: JsonObject) -> bool:
        self.requests.append(body)
        self.answering += 1
        self._notify()
        try:
            return await self._answer(connection, wire, asked)
        finally:
            self.answering -= 1
            self._notify()

    async def _answer(self, connection: Connection, wire: WireFormat, asked: Request) -> bool:
        chosen = self.script.choose(asked, self._used)
        if chosen is None:
            return await _send_json(connection, 400, wire.fault(400, _unmatched(asked)))
        rule, values = chosen
        self._used[rule.name] += 1
        try:
            match rule.reply:
                case Hang():
                    await connection.until_left()
                    raise ClientLeft
                case Drop():
                    return False
                case Failure() as failure:
                    return await _fail(connection, wire, failure, values)
                case Speech() as speech:
                    filled = answer(speech, asked, values, self._nonce())
        except FillError as error:
            return await _send_json(connection, 500, wire.fault(500, f"Rule {rule.name!r}: {error}."))
        if asked.stream:
            return await _stream(connection, wire, filled)
        return await _send_whole(connection, speech, wire.whole(filled))

    def _nonce(self) -> str:
        # Not random, so that two runs of a script are alike; not a bare count, so that ids stay apart when a server
        # starts again in the middle of a conversation.
        seed = f"{len(self.requests)}:{to_json(self.requests[-1])}"
        return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _lets_in(self, headers: Mapping[str, str]) -> bool:
        if self.script.api_key is None:
            return True
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self.script.api_key.encode())

    async def _list_models(self, connection: Connection, wanted: str) -> bool:
        models = [_model(name) for name in self.script.models]
        if not wanted:
            first, last = self.script.models[0], self.script.models[-1]
            page: JsonObject = {"object": "list", "data": models, "has_more": False, "first_id": first, "last_id": last}
            return await _send_json(connection, 200, page)
        found = next((model for model in models if model["id"] == wanted), None)
        if found is None:
            return await _send_json(connection, 404, OPENAI_CHAT.fault(404, f"There is no model {wanted!r}."))
        return await _send_json(connection, 200, found)


def serve(path: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the script of the file *path* until SIGINT or SIGTERM.

    Args:
        path: The script.
        host: A loopback address.
        port: 0 takes a free one.
        announce: Called with the URL once the server listens.

    Raises:
        ScriptError: The script is wrong.
        PublicBindRefusedError: *host* is not loopback.
        PortInUseError: The port is taken.
    """
    asyncio.run(_serve(load_script(path), host, port, announce))


async def _serve(script: Script, host: str, port: int, announce: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    # Only the main thread is sent signals.
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
    async with ModelServer(script, host, port) as server:
        announce(server.url)
        await stopped.wait()


async def _stream(connection: Connection, wire: WireFormat, filled: Answer) -> bool:
    sent, speech = 0, filled.speech
    await connection.start_stream(_SSE)
    for frame in wire.frames(filled):
        if frame.place is Place.CLOSING and not filled.finished:
            break
        if frame.place is Place.CHUNK:
            if speech.ending is Ending.CUT and sent == speech.chunks_max:
                break
            await connection.pause(speech.delay_ms if sent else speech.first_delay_ms)
            sent += 1
        await connection.send_chunk(frame.data)
    if speech.ending is Ending.CUT:
        # Everything sent arrives; what is missing is HTTP's own mark of the end, so the client sees a broken response.
        return False
    await connection.end_stream()
    return True


async def _send_whole(connection: Connection, speech: Speech, body: JsonObject) -> bool:
    await connection.pause(speech.first_delay_ms)
    if speech.ending is Ending.CUT:
        await connection.answer_in_part(200, to_json(body).encode(), _JSON)
        return False
    return await _send_json(connection, 200, body)


async def _fail(connection: Connection, wire: WireFormat, failure: Failure, values: Mapping[str, str]) -> bool:
    body = fill_shape(failure.body, values)
    message = failure.message.fill(values)
    retry = {} if failure.retry_after is None else {"retry-after": failure.retry_after}
    await connection.pause(failure.delay_ms)
    if isinstance(body, str):
        headers = {"content-type": "text/plain; charset=utf-8", **retry}
        await connection.answer(failure.status, body.encode(), headers)
    else:
        shown = wire.fault(failure.status, message) if body is None else body
        await connection.answer(failure.status, to_json(shown).encode(), {**_JSON, **retry})
    return True


async def _send_json(connection: Connection, status: int, body: JsonObject) -> bool:
    await connection.answer(status, to_json(body).encode(), _JSON)
    return True


async def _refuse(connection: Connection, status: int, message: str) -> None:
    try:
        await _send_json(connection, status, OPENAI_CHAT.fault(status, message))
    except ClientLeft:
        connection.abort()


def _body(data: bytes) -> JsonObject:
    body: JsonObject = json.loads(data)
    return body


def _model(name: str) -> JsonObject:
    # What OpenAI and what Anthropic say of a model, in one: each SDK passes over what it does not know.
    openai: JsonObject = {"id": name, "object": "model", "created": CREATED, "owned_by": "script"}
    return {**openai, "type": "model", "display_name": name, "created_at": "2023-11-14T22:13:20Z"}


def _unmatched(asked: Request) -> str:
    last = asked.said[-1] if asked.said else None
    said = "nothing" if last is None else f"{last.speaker.value}: {last.text[:200]!r}"
    return (
        f"No rule of the script holds for this request: model {asked.model!r}, user_turn {asked.user_turn}, "
        f"requests_since_user {asked.requests_since_user}, last message {said}."
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
