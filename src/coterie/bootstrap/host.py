"""A whole host: the engine, its doors, and the files that tell the terminal where it is."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from coterie.bootstrap.engine import Engine, engine, locked
from coterie.bootstrap.files import HOST_FILE, read_token, write_private
from coterie.bootstrap.world import world_of
from coterie.interfaces.http.application import build_app
from coterie.interfaces.http.server import Server, bind, hosts_of, url_of
from coterie.settings import Settings

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningHost:
    """A host that answers."""

    url: str
    engine: Engine


@asynccontextmanager
async def host(settings: Settings) -> AsyncGenerator[RunningHost]:
    """Run a host inside the block.

    Raises:
        StartError: Why it cannot start; nothing was changed.
    """
    folder = settings.data_dir
    with locked(folder):
        # Before the database is touched: a port in use changes nothing.
        listening = bind(settings.host, settings.port)
        async with AsyncExitStack() as stack:
            stack.callback(listening.close)
            token, stopping = read_token(folder), asyncio.Event()
            # Taken away last, so that who waits for that finds the directory free.
            stack.callback((folder / HOST_FILE).unlink, missing_ok=True)
            world = await stack.enter_async_context(world_of(settings))
            running = await stack.enter_async_context(engine(settings, world=world))
            app = build_app(running.operations, token=token, hosts=lambda: hosts_of(listening), stopping=stopping)
            server = Server(app, listening, stopping)
            await server.start()
            about = {"url": url_of(listening), "pid": os.getpid()}
            about |= {"hostId": running.facts.id, "epoch": running.facts.epoch, "interrupted": running.interrupted}
            write_private(folder / HOST_FILE, json.dumps(about))
            running.provider.load()
            try:
                yield RunningHost(url_of(listening), running)
            finally:
                await server.stop()


async def serve(settings: Settings, announce: Callable[[RunningHost], None]) -> None:
    """Run a host until SIGINT or SIGTERM; *announce* is called once it answers."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with host(settings) as running:
        announce(running)
        await stop.wait()
        _LOG.info("stopping")
