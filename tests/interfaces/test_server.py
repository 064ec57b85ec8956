"""The socket and the server: where it listens, how it starts and how it stops."""

import asyncio
import signal
import socket

import httpx2
import pytest
from starlette.types import Receive, Scope, Send
from tests.interfaces.conftest import BOUND_S

from coterie.core.errors import InvalidArgumentError, PortInUseError, PublicBindRefusedError
from coterie.interfaces.http import Server, bind, hosts_of, url_of


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.0.2.1", "example.com", "localhost.example.com", "127.0.0.1.example.com"]
)
def test_an_address_that_others_reach_is_refused(host: str) -> None:
    """A name is not looked up: what it means today it may not mean tomorrow."""
    with pytest.raises(PublicBindRefusedError, match="loopback"):
        bind(host, 0)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    """In words, not as an overflow."""
    with pytest.raises(InvalidArgumentError, match=str(port)):
        bind("127.0.0.1", port)


def test_a_port_that_is_taken_comes_with_a_way_out() -> None:
    """The text names the port and what to do."""
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=rf"port {port} of 127\.0\.0\.1.*--port") as caught:
            bind("127.0.0.1", port)
    assert "0 takes a free one" in str(caught.value)


def test_a_socket_knows_its_names() -> None:
    """The port is the one that the system chose."""
    with bind("localhost", 0) as listening:
        port = listening.getsockname()[1]
        assert hosts_of(listening) == {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
        assert url_of(listening) == f"http://127.0.0.1:{port}"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_the_other_loopback_is_good_too() -> None:
    """Some systems prefer it for localhost."""
    try:
        listening = bind("::1", 0)
    except PortInUseError:
        pytest.skip("this machine has no address ::1")
    with listening:
        assert url_of(listening).startswith("http://[::1]:")


async def _hello(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


async def test_a_server_leaves_signals_to_the_host() -> None:
    """Uvicorn's own handlers would end the process before the ledger is closed."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    server = Server(_hello, bind("127.0.0.1", 0), asyncio.Event())
    assert not server.started.is_set()
    await server.start()
    assert server.started.is_set()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    async with httpx2.AsyncClient(timeout=BOUND_S) as client:
        assert (await client.get(server.url)).text == "hello"
    await server.stop()


async def test_a_stopped_server_gives_its_port_back() -> None:
    """A restart takes the same port at once, although connections of the old one linger."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = Server(_hello, listening, asyncio.Event())
    await server.start()
    async with httpx2.AsyncClient(timeout=BOUND_S) as client:
        await client.get(server.url)
        await server.stop()
    bind("127.0.0.1", port).close()


async def test_a_request_that_never_ends_does_not_hold_up_the_stop() -> None:
    """A person who stops the host waits for a bounded time."""
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def hang(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    stopping = asyncio.Event()
    server = Server(hang, bind("127.0.0.1", 0), stopping, stop_s=0)
    await server.start()

    async def ask() -> None:
        async with httpx2.AsyncClient(timeout=BOUND_S) as client:
            assert (await client.get(server.url)).status_code == 500

    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        group.create_task(ask())
        await arrived.wait()
        await server.stop()
        assert stopping.is_set()
        await gone.wait()
