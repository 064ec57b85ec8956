"""What the server makes of requests that no SDK would send."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from coterie.model_server import ModelServer

Start = Callable[[str], Awaitable[ModelServer]]


BOUND_S = 20
ASK = b'{"model":"m","messages":[{"role":"user","content":"x"}]}'
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


async def raw(server: ModelServer, data: bytes) -> bytes:
    """Send *data* and return all that comes until the server closes."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    async with asyncio.timeout(BOUND_S):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"hello\r\n\r\n", b"the first line is not that of an HTTP/1.1 request"),
        (b"GET / HTTP/2\r\n\r\n", b"the first line is not that of an HTTP/1.1 request"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", b""),
        (HEAD + b"Content-Length: many\r\n\r\n", b"the content length is no number"),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", b"the body is too large"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", b"the size of a chunk is no number"),
    ],
)
async def test_what_is_no_request_is_answered_once_and_dropped(start: Start, data: bytes, problem: bytes) -> None:
    """The author of a client learns what is wrong, and the next client is served."""
    server = await start("[{reply: {text: x}}]")
    try:
        answer = await raw(server, data)
    except ConnectionError:
        # The server may close while the rest of an endless head is under way.
        answer = b"HTTP/1.1 400 "
        problem = b""
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert problem in answer
    async with httpx2.AsyncClient() as http:
        assert (await http.get(f"{server.url}/v1/models")).status_code == 200


async def test_a_body_in_chunks_is_read_and_an_expectation_met(start: Start) -> None:
    """Curl asks before it sends a large body, and some clients do not know its length."""
    server = await start("[{reply: {text: heard, cut_after: 0}}]")
    head = HEAD + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    body = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\nTrailer: a\r\n\r\n" % (9, ASK[:9], len(ASK) - 9, ASK[9:])
    answer = await raw(server, head + body)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert server.requests == [{"model": "m", "messages": [{"role": "user", "content": "x"}]}]


async def test_a_client_that_leaves_inside_of_a_request_is_no_trouble(start: Start) -> None:
    """Nothing is recorded of half a request, and nothing is logged as a fault."""
    server = await start("[{reply: {text: x}}]")
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    for part in (b"", b"POST /v1", HEAD + b"Content-Length: 50\r\n\r\n{"):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(part)
        writer.close()
        await writer.wait_closed()
    async with httpx2.AsyncClient() as http:
        assert (await http.get(f"{server.url}/models")).status_code == 200
    assert server.requests == []


async def test_other_paths_methods_and_bodies_have_their_status(start: Start) -> None:
    """A wrong base URL is the commonest mistake, so its answer names the path."""
    server = await start("[{reply: {text: x}}]")
    async with httpx2.AsyncClient(base_url=server.url) as http:
        missing = await http.post("/v2/chat", content=ASK)
        method = await http.get("/v1/chat/completions")
        unread = await http.post("/v1/messages", content=b"{}")
        query = await http.post("/v1/messages?beta=true", content=ASK)
    assert (missing.status_code, missing.json()["error"]["message"]) == (404, "There is nothing at /v2/chat.")
    assert method.status_code == 405
    assert (unread.status_code, unread.json()["error"]["type"]) == (400, "invalid_request_error")
    assert query.status_code == 200


async def test_an_address_of_the_sixth_version_is_a_good_url(start: Start) -> None:
    """Brackets belong around it."""
    script = (await start("[{reply: {text: x}}]")).script
    try:
        async with ModelServer(script, "::1") as server, httpx2.AsyncClient() as http:
            assert (await http.get(f"{server.url}/v1/models")).status_code == 200
    except OSError:
        pytest.skip("this machine has no ::1")


async def test_a_fault_of_the_server_ends_one_connection_only(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Half a surrogate pair is text to JSON and none to UTF-8, so this answer cannot be sent; the next one can."""
    server = await start("[{when: {user: ud800}, reply: {text: '${json:user}'}}, {reply: {text: x}}]")
    async with httpx2.AsyncClient(base_url=server.url) as http:
        with pytest.raises(httpx2.TransportError):
            await http.post("/v1/chat/completions", content=ASK.replace(b'"x"', rb'"\"\\ud800\""'))
        assert (await http.post("/v1/chat/completions", content=ASK)).status_code == 200
    assert "the model server failed at a request" in caplog.text


async def test_a_client_that_is_killed_between_requests_is_no_fault(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Its connection is reset while nobody asks anything; a log that tells of that tells nothing."""
    server = await start("[{reply: {text: x}}]")
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        client.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await loop.sock_recv(client, 100)).startswith(b"HTTP/1.1 200 ")
        # Closed without the usual farewell.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    async with httpx2.AsyncClient() as http:
        assert (await http.get(f"{server.url}/v1/models")).status_code == 200
    assert not caplog.records
