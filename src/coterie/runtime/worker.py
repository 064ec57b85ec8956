"""Runs one turn: asks the pure loop what to do, does it, and reports what came of it.

The worker owns nothing. It re-reads the turn before each effect and at each wake-up, so a cancel, a lower permission or
a lost lease acts at the next step; whatever it has not written is lost with it, and nothing else is.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from coterie.app import describe
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.describe import Whole
from coterie.app.settle_turn import Settled, SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import MessageId, TurnId
from coterie.core.ledger.message import Kind
from coterie.core.model_ref import Binding
from coterie.core.refusal import Refusal
from coterie.core.turn.items import Item, Reply, ToolCall, ToolResult
from coterie.core.turn.loop import (
    AppendItems,
    AskModel,
    CancelAsked,
    Effect,
    Finish,
    LoopTurn,
    Outcome,
    Replied,
    RunTools,
    Started,
    ToolsFinished,
    advance,
)
from coterie.core.turn.start import binding_for
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.feed import Listener
from coterie.runtime.effects import RuntimeParts, Scene, ask, call_tool

T = TypeVar("T")
Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class _LostError(Exception):
    """The turn is no longer this worker's: it was settled by somebody else."""


@dataclass(slots=True)
class _Run:
    """What a worker keeps in memory of its turn; all of it can be read again."""

    turn_id: TurnId
    binding: Binding
    loop: LoopTurn
    items: list[Item]
    listener: Listener
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    """Results that no item has yet."""
    shows: list[MessageId] = field(default_factory=list[MessageId])
    """Messages whose outcome those results show."""
    input_tokens: int | None = None
    output_tokens: int | None = None

    def count(self, reply: Reply) -> None:
        """Add a reply's usage."""
        usage = reply.usage
        if usage.input_tokens is not None:
            self.input_tokens = (self.input_tokens or 0) + usage.input_tokens
        if usage.output_tokens is not None:
            self.output_tokens = (self.output_tokens or 0) + usage.output_tokens


class Worker:
    """Runs turns with the given parts."""

    def __init__(self, parts: RuntimeParts, spawn: Spawn, passes_on: Callable[[], bool]) -> None:
        """Take what a turn is run with.

        Args:
            parts: The host's parts.
            spawn: Starts a task that the supervisor owns.
            passes_on: Whether a turn that ends may give its slot to new work: not while a parked turn waits for one.
        """
        self._parts = parts
        self._spawn = spawn
        self._passes_on = passes_on

    async def run(self, turn_id: TurnId) -> Turn | None:
        """Run a bound turn to its end; returns the turn that its slot goes on to."""
        with self._parts.feed.listen([turn_id]) as listener:
            whole = await self._parts.store.read(describe.whole_turn, turn_id)
            if whole is None or whole.turn.state is not TurnState.RUNNING:
                return None
            ready = self._ready(whole)
            if isinstance(ready, Refusal):
                return await self._settle(turn_id, Finish(ready.code, ready.message), None)
            # Only the ledger's own kind of the input can excuse a silent reply, never a text.
            loop = LoopTurn(
                self._parts.limits.model_requests_max, may_be_silent=whole.turn.kind == Kind.COMPLETION.value
            )
            run = _Run(turn_id, ready, loop, list(whole.items), listener)
            try:
                return await self._until_finished(run)
            except _LostError:
                return None

    async def fail(self, turn_id: TurnId, message: str) -> Turn | None:
        """Settle a turn whose worker broke; returns the turn that its slot goes on to."""
        return await self._settle(turn_id, Finish(Code.INTERNAL, message), None)

    def _ready(self, whole: Whole) -> Binding | Refusal:
        path = whole.session.project_path
        if path is not None and not Path(path).is_dir():
            return Refusal(Code.FOLDER_GONE, f"The project folder {path} is not there any more.")
        return binding_for(whole.session, self._parts.models, self._parts.model_hint)

    async def _until_finished(self, run: _Run) -> Turn | None:
        outcome: Outcome = Started()
        while True:
            run.loop, effects = advance(run.loop, outcome)
            for effect in effects:
                if isinstance(effect, Finish):
                    return await self._settle(run.turn_id, effect, run)
                outcome = await self._perform(run, effect) or outcome

    async def _perform(self, run: _Run, effect: Effect) -> Outcome | None:
        scene = await self._now(run.turn_id)
        if scene.turn.fenced:
            return CancelAsked()
        match effect:
            case AppendItems(items):
                await self._append(run, items)
                return None
            case AskModel():
                outcome = await self._interruptible(run, ask(self._parts, scene, run.binding, run.items, effect=effect))
                if isinstance(outcome, Replied):
                    run.count(outcome.reply)
                return outcome
            case RunTools(calls):
                return await self._run_tools(run, calls)
            case Finish():
                raise AssertionError("finishing is not a step of its own")

    async def _run_tools(self, run: _Run, calls: Sequence[ToolCall]) -> ToolsFinished | CancelAsked:
        """Run calls one after the other: an agent that spawns and then waits means that order."""
        for call in calls:
            scene = await self._now(run.turn_id)
            if scene.turn.fenced:
                return CancelAsked()
            done = await self._interruptible(run, call_tool(self._parts, scene, call))
            if isinstance(done, CancelAsked):
                return done
            run.results.append(done.result)
            run.shows += done.shows
        return ToolsFinished(tuple(run.results))

    async def _now(self, turn_id: TurnId) -> Scene:
        found = await self._parts.store.read(describe.turn_now, turn_id)
        if found is None or found[0].state is not TurnState.RUNNING:
            raise _LostError
        return Scene(*found)

    async def _append(self, run: _Run, items: tuple[Item, ...]) -> None:
        if not await self._parts.store.run(append_items, AppendToTurn(run.turn_id, items, tuple(run.shows))):
            raise _LostError
        run.items += items
        run.shows, run.results = [], []

    async def _settle(self, turn_id: TurnId, finish: Finish, run: _Run | None) -> Turn | None:
        command = SettleTurn(
            turn_id,
            # What tools had answered before a cancel is kept; an end by the loop has it in its own items.
            items=(*run.results, *finish.items) if run is not None and finish.cancelled else finish.items,
            shows=tuple(run.shows) if run is not None else (),
            cancelled=finish.cancelled,
            code=finish.code,
            message=finish.message,
            input_tokens=run.input_tokens if run else None,
            output_tokens=run.output_tokens if run else None,
            slot=self._passes_on(),
        )
        settled: Settled = await self._parts.store.run(settle_turn, command)
        return settled.next

    async def _interruptible(self, run: _Run, doing: Coroutine[Any, Any, T]) -> T | CancelAsked:
        """Await *doing*, but leave it when the turn is fenced: it gets `cancel_grace_s` to clean up."""
        work = self._spawn(doing)
        fence = self._spawn(self._fenced(run))
        try:
            await asyncio.wait({work, fence}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            work.cancel()
            await asyncio.wait({work}, timeout=self._parts.limits.cancel_grace_s)
            fence.result()
            return CancelAsked()
        finally:
            fence.cancel()
            work.cancel()

    async def _fenced(self, run: _Run) -> None:
        """Return when somebody has asked to cancel the turn, or raise when it is lost."""
        while not (await self._now(run.turn_id)).turn.fenced:
            await run.listener.wait()
