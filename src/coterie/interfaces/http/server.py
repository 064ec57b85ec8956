"""The socket and the server on it, inside a loop that somebody else runs."""

import asyncio
import errno
import math
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from coterie.core.errors import InvalidArgumentError, PortInUseError, PublicBindRefusedError

PORT_MAX: Final = 65_535
STOP_S: Final = 5.0
"""Seconds that running requests have to end when the server stops."""
_BACKLOG: Final = 1024
# Longer than clients keep a connection in their pool, so that none is closed under a request.
_KEEP_ALIVE_S: Final = 75
_HTTP_PORT: Final = 80


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket on a loopback address; the system chooses port 0.

    Raises:
        PublicBindRefusedError: *host* is no loopback address.
        PortInUseError: The port cannot be had.
        InvalidArgumentError: *port* is none.
    """
    if not 0 <= port <= PORT_MAX:
        raise InvalidArgumentError(f"port is {port}; it must be from 0 to {PORT_MAX}, and 0 takes a free one.")
    address = "127.0.0.1" if host == "localhost" else host
    if not _is_loopback(address):
        text = (
            f"{host!r} is no loopback address. Coterie listens for this machine only: use 127.0.0.1, ::1 or localhost."
        )
        raise PublicBindRefusedError(text)
    listening = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        if os.name == "posix":
            # The port of a host that has stopped is free at once; one that somebody listens on is refused all the same.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        # Two sockets may be bound to one port until one listens, so it is taken only now.
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise PortInUseError(_told(host, port, error)) from error
    listening.settimeout(0)
    return listening


def _told(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Another program listens on port {port} of {host}. Stop it, or choose another port: "
            "`--port N`, or `port` under `[server]` in config.toml; 0 takes a free one."
        )
    return f"Port {port} of {host} cannot be had: {error.strerror}. Choose another with `--port N`; 0 takes a free one."


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def hosts_of(listening: socket.socket) -> frozenset[str]:
    """The names of a bound socket, as clients write them in `Host`."""
    address, port = listening.getsockname()[:2]
    names = {"127.0.0.1", "localhost", "[::1]", _bracketed(address)}
    with_port = {f"{name}:{port}" for name in names}
    # Clients leave out the port that a scheme has by itself.
    return frozenset(with_port | names if port == _HTTP_PORT else with_port)


def url_of(listening: socket.socket) -> str:
    """The address of a bound socket, as a client dials it."""
    address, port = listening.getsockname()[:2]
    return f"http://{_bracketed(address)}:{port}"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its signal handlers: they would end the process behind the host's back."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class Server:
    """Serves an app on a bound socket; start and stop it in the same task.

    Args:
        app: From `build_app`.
        listening: From `bind`; closed at the stop.
        stopping: Set first when it stops, so that streams and waits end by themselves.
        stop_s: Seconds that running requests have then.
    """

    def __init__(
        self, app: ASGIApp, listening: socket.socket, stopping: asyncio.Event, *, stop_s: float = STOP_S
    ) -> None:
        self.url = url_of(listening)
        self._socket, self._stopping = listening, stopping
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=math.ceil(stop_s),
        )
        self._uvicorn = _Uvicorn(config)
        self._group = asyncio.TaskGroup()

    @property
    def started(self) -> asyncio.Event:
        """Set when requests are answered."""
        return self._uvicorn.listening

    async def start(self) -> None:
        """Begin to answer; returns when it does."""
        await self._group.__aenter__()
        self._group.create_task(self._uvicorn.serve(sockets=[self._socket]), name="http-server")
        await self.started.wait()

    async def stop(self) -> None:
        """Take no new requests, let running ones end in bounded time, close."""
        self._stopping.set()
        self._uvicorn.should_exit = True
        await self._group.__aexit__(None, None, None)
