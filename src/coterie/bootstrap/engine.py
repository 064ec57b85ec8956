"""Composes a host without doors: the store, what runs turns, and the operations over both."""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from coterie.app import describe, recover
from coterie.bootstrap.files import AGENTS, BLOBS, COMMANDS, DATABASE, make_data_directory, unusable
from coterie.bootstrap.system import RandomIds, SystemClock
from coterie.core.errors import ConfigInvalidError
from coterie.core.ids import HostId
from coterie.core.permission import Rule, idle_rule
from coterie.core.text import nearest
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.operations.act import HostParts
from coterie.operations.approving import Person
from coterie.operations.invocations import Invocations
from coterie.operations.lifecycle import purge
from coterie.operations.perform import Operations
from coterie.plugins.loader import load_tools
from coterie.ports.clock import Clock
from coterie.ports.feed import Feed
from coterie.ports.ids import IdSource
from coterie.ports.model_provider import ModelProvider, ModelRequest
from coterie.ports.rows import HostFacts
from coterie.ports.store import Store
from coterie.ports.tool import Tool
from coterie.runtime.delegate import Delegate
from coterie.runtime.effects import RuntimeParts
from coterie.runtime.probe import ProviderProbe
from coterie.runtime.subagents.delegations import Delegations
from coterie.runtime.supervisor import Supervisor
from coterie.runtime.tools.asking import ask_user_tool
from coterie.runtime.tools.catalogue import native_tools
from coterie.runtime.tools.delegating import delegating_tools
from coterie.runtime.tools.kept import read_output_tool
from coterie.runtime.tools.leftover import end_leftovers
from coterie.runtime.tools.project_notes import ProjectNotes
from coterie.runtime.tools.shell import can_confine
from coterie.runtime.tools.todo import todo_tool
from coterie.runtime.worktrees import Worktrees
from coterie.settings import Settings, model_hint
from coterie.storage.blobs import FileOutputs
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.storage.sqlite.lock import DataLock
from coterie.storage.sqlite.store import SqliteStore


class LateProvider:
    """A model provider that is imported in a thread: the vendors' SDKs take a second to load."""

    def __init__(self, provide: Callable[[], ModelProvider]) -> None:
        self._provide = provide
        self._loading: asyncio.Future[ModelProvider] | None = None

    def load(self) -> asyncio.Future[ModelProvider]:
        """Begin to load, so that the first request does not wait; a load that failed is tried again."""
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._provide))
        return self._loading

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None]) -> Replied | ModelFailed:
        """See `ports.model_provider.ModelProvider`."""
        return await (await asyncio.shield(self.load())).ask(request, on_text)

    async def close(self) -> None:
        """Close the connections, if there ever were any; a load that is under way or has failed has made none."""
        loading = self._loading
        if loading is not None and loading.done() and loading.exception() is None:
            await loading.result().close()


def _import_provider() -> ModelProvider:
    return importlib.import_module("coterie.runtime.providers.direct").DirectProvider()


class HostStore(Store, Protocol):
    """A store as a host needs it: from its first transaction on it acts as that host, and it can be closed."""

    def become(self, host: HostFacts) -> None:
        """Act as *host* from the next batch on."""
        ...

    async def close(self) -> None:
        """Commit what was accepted, then close the file."""
        ...


class OpenStore(Protocol):
    """Opens the ledger of a host."""

    def __call__(self, path: Path, host: HostFacts, clock: Clock, ids: IdSource, *, feed: Feed) -> HostStore:
        """Open *path*, bring its schema up to date, and wake *feed* after each commit."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """What a host stands in: the system, unless a simulation takes its place."""

    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=RandomIds)
    feed: Feed = field(default_factory=MemoryFeed)
    open_store: OpenStore = SqliteStore
    provide: Callable[[], ModelProvider] = _import_provider
    """Makes the model provider; called in a thread."""
    can_confine: Callable[[], bool] = can_confine
    """Whether commands of tools can be kept out of the data directory."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A host that runs turns and performs operations."""

    operations: Operations
    supervisor: Supervisor
    store: HostStore
    facts: HostFacts
    settings: Settings
    provider: LateProvider
    interrupted: int
    """Turns that an earlier run of the host left, and that the start has ended."""
    held: int
    """Sessions whose queue waits for a release."""


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Own the data directory inside the block; it is made if it is not there, and closed to other users.

    Raises:
        HostRunningError: Another process has it.
        ConfigInvalidError: It cannot be made or is not ours.
    """
    make_data_directory(folder)
    try:
        lock = DataLock(folder)
    except OSError as error:
        raise unusable(folder, error) from error
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def engine(
    settings: Settings, clock: Clock | None = None, *, world: World | None = None
) -> AsyncGenerator[Engine]:
    """Open the ledger of a `locked` directory, recover what an earlier run left, and run turns inside the block.

    Args:
        settings: Where and with what.
        clock: The system's, unless a test gives one.
        world: All that the host stands in, its clock included, for a simulation.

    Raises:
        SchemaNewerError, DatabaseCorruptError: The database is not ours to open.
    """
    world = world or World(clock or SystemClock())
    clock, ids, feed = world.clock, world.ids, world.feed
    facts = _facts(settings, ids)
    end_leftovers(settings.data_dir / COMMANDS)
    store = world.open_store(settings.data_dir / DATABASE, facts, clock, ids, feed=feed)
    provider = LateProvider(world.provide)
    supervisor: Supervisor | None = None
    try:
        host_id, epoch = await store.run(recover.begin_epoch, facts.id)
        facts = replace(facts, id=host_id, epoch=epoch)
        store.become(facts)
        # From before the recovery on: who is not looking is told of what a stop has interrupted and holds.
        since = await store.read(describe.newest_change, None) if settings.notify else 0
        held, interrupted = await _recover(store)
        supervisor, operations = _put_together(settings, world, store, provider)
        supervisor.start()
        # What a crash left of the transcripts of deleted sessions.
        await purge(store, operations.host.outputs)
        async with _noticing(settings, world, store, since):
            yield Engine(operations, supervisor, store, facts, settings, provider, interrupted, held)
    finally:
        try:
            if supervisor is not None:
                await supervisor.stop()
            await provider.close()
        finally:
            await store.close()


def _facts(settings: Settings, ids: IdSource) -> HostFacts:
    return HostFacts(
        HostId(ids.new("hst")),
        0,
        settings.permission_default,
        settings.limits,
        across=settings.across_projects,
        resume=settings.resume,
    )


def _put_together(
    settings: Settings, world: World, store: Store, provider: ModelProvider
) -> tuple[Supervisor, Operations]:
    """What runs turns, and the operations, over one ledger."""
    invocations, tools = Invocations(world.ids), dict[str, Tool]()
    outputs = FileOutputs(settings.data_dir / BLOBS, world.clock)
    confined = world.can_confine()
    workspaces = Worktrees(settings.data_dir, settings.shell_environment, confined=confined)
    delegates = Delegations(world.ids, world.clock, settings.data_dir / AGENTS, settings.limits.delegations_max)
    parts = RuntimeParts(
        store,
        world.feed,
        world.clock,
        invocations,
        settings.models,
        provider,
        tools,
        settings.limits,
        settings.permission_default,
        model_hint(settings.data_dir),
        delegates,
        settings.denied,
        outputs,
        outputs,
        ProjectNotes([settings.data_dir]),
        workspaces,
    )
    supervisor = Supervisor(parts, settings.limits.turns_max)
    delegates.run_by(Delegate(parts, Person(store, world.feed, None)).run)
    operations = Operations(
        HostParts(
            store,
            world.feed,
            world.clock,
            supervisor,
            invocations,
            settings.models,
            settings.limits,
            version("coterie"),
            delegates,
            ProviderProbe(provider, world.clock),
            confined=confined,
            workspaces=workspaces,
            outputs=outputs,
        )
    )
    # Tools act through operations, which need the supervisor, which needs the tools: the table is filled last.
    offered = list(_native(settings, confined=operations.host.confined))
    offered.append(read_output_tool(store, outputs, settings.limits.tool_result_chars_max))
    offered.extend(delegating_tools(delegates, supervisor))
    offered.append(ask_user_tool(Person(store, world.feed, supervisor)))
    offered.append(todo_tool())
    tools |= {tool.spec.name: tool for tool in offered}
    tools |= load_tools(operations, tools)
    if (rule := idle_rule(settings.denied, list(tools))) is not None:
        raise _for_nothing(rule, list(tools))
    return supervisor, operations


def _for_nothing(rule: Rule, tools: Sequence[str]) -> ConfigInvalidError:
    near = ", ".join(nearest(rule.tool, tools, 3)) or ", ".join(tools)
    return ConfigInvalidError(
        f"deny in [permissions] has {str(rule)!r}, but there is no tool {rule.tool!r}, so it would keep nobody from "
        f"anything. Did you mean: {near}?"
    )


@asynccontextmanager
async def _noticing(settings: Settings, world: World, store: Store, since: int) -> AsyncGenerator[None]:
    """Tell whom the settings name of what happens behind *since*."""
    if not settings.notify:
        yield
        return
    # A client of HTTP is slow to load, and most hosts need none of their own.
    from coterie.runtime.notices.posting import Surroundings, post_of
    from coterie.runtime.notices.watching import Notices

    folder = settings.data_dir
    surroundings = Surroundings(folder, settings.shell_environment, folder / COMMANDS)
    outlets = [(one, post_of(one, surroundings)) for one in settings.notify]
    async with Notices(store, world.feed, world.clock, outlets).running(since):
        yield


def _native(settings: Settings, *, confined: bool) -> tuple[Tool, ...]:
    return native_tools(
        closed=[settings.data_dir],
        environment=settings.shell_environment,
        denied=settings.denied,
        confined=confined,
        records=settings.data_dir / COMMANDS,
    )


async def _recover(store: Store) -> tuple[int, int]:
    """Hold what waits, then end what an earlier run left; each step may repeat after a crash (I9)."""
    await store.run(recover.hold_queues, None)
    left = await store.read(recover.turns_left_running, None)
    for turn in left:
        await store.run(recover.interrupt, turn)
    while await store.run(recover.expire, None):
        pass
    return len(await store.read(recover.held_sessions, None)), len(left)
