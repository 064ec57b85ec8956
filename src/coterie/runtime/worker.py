"""Runs one turn: asks the pure loop what to do, does it, and reports what came of it.

The worker owns nothing. It re-reads the turn before each effect and at each wake-up, so a cancel, a lower permission or
a lost lease acts at the next step; whatever it has not written is lost with it, and nothing else is.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from coterie.app import describe
from coterie.app.append_items import AppendToTurn, append_items
from coterie.app.recall import Outline, Recall, Recalled, outline, recall
from coterie.app.settle_turn import Settled, SettleTurn, settle_turn
from coterie.app.take_news import TakeNews, take_news
from coterie.core.codes import Code
from coterie.core.errors import HostError, RefusedError, StorageError
from coterie.core.ids import MessageId, TurnId
from coterie.core.ledger.message import Kind
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session
from coterie.core.session.worktree import change_view
from coterie.core.turn.context import newest_checkpoint
from coterie.core.turn.fitting import BYTES_PER_TOKEN, missing, older
from coterie.core.turn.instructions import ProjectNote
from coterie.core.turn.items import (
    Checkpoint,
    Item,
    PersonText,
    Report,
    SessionText,
    ToolCall,
    ToolResult,
    Usage,
    total,
)
from coterie.core.turn.loop import (
    AppendItems,
    AskModel,
    AwaitReports,
    CancelAsked,
    Crowded,
    Effect,
    Finish,
    LoopTurn,
    Outcome,
    Replied,
    Reported,
    RunTools,
    Started,
    Summarise,
    Summarised,
    ToolsFinished,
    advance,
    is_crowded,
    joined,
)
from coterie.core.turn.start import binding_for
from coterie.core.turn.states import TurnState
from coterie.core.turn.todo import newest_list
from coterie.core.turn.turn import Turn
from coterie.operations.approving import Person
from coterie.ports.feed import Listener
from coterie.ports.rows import NumberedItem
from coterie.ports.slots import Slots
from coterie.runtime.effects import RuntimeParts, Scene, Sight, ask, call_tool, request_tokens, spared_tokens, summarise
from coterie.runtime.persist import Persist

_LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
LOOK_S: Final = 3.0
"""How often a turn is read again while an effect runs."""
Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class _LostError(Exception):
    """The turn is no longer this worker's: it was settled by somebody else."""


@dataclass(slots=True)
class _Run:
    """What a worker keeps in memory of its turn; all of it can be read again."""

    turn_id: TurnId
    sight: Sight
    loop: LoopTurn
    listener: Listener
    session: Session
    last: int = 0
    """Number of the newest item."""
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    """Results that no item has yet."""
    shows: list[MessageId] = field(default_factory=list[MessageId])
    """Messages whose outcome those results show."""
    used: Usage = field(default_factory=Usage)
    """What its replies and summaries have used."""

    task: NumberedItem | None = None
    """What the turn was asked."""

    def remember(self, recalled: Recalled) -> None:
        """Take what was read of the transcript for what the model is shown, and the task even if it was not read."""
        self.last, items, left_out = recalled.last, recalled.items, recalled.left_out
        if self.task is None:
            mine = (one for one in recalled.numbered if one.turn_id == self.turn_id)
            self.task = next((one for one in mine if isinstance(one.item, PersonText | SessionText)), None)
        elif all(one.number != self.task.number for one in recalled.numbered):
            items, left_out = [self.task.item, *items], left_out - 1
        self.sight = replace(self.sight, items=items, left_out=left_out, task=self.task.item if self.task else None)


class Worker:
    """Runs turns with the given parts."""

    def __init__(self, parts: RuntimeParts, spawn: Spawn, passes_on: Callable[[TurnId], bool], slots: Slots) -> None:
        """Take what a turn is run with.

        Args:
            parts: The host's parts.
            spawn: Starts a task that the supervisor owns.
            passes_on: Whether a turn that ends may give its slot to new work: not while a parked turn waits for one.
            slots: Where a turn that waits for a person is parked.
        """
        self._person = Person(parts.store, parts.feed, slots)
        self._persist = Persist(parts.store, parts.clock)
        self._slots = slots
        self._parts = parts
        self._spawn = spawn
        self._passes_on = passes_on

    async def run(self, turn_id: TurnId) -> Turn | None:
        """Run a bound turn to its end; returns the turn that its slot goes on to."""
        try:
            return await self._run(turn_id)
        finally:
            await _end_delegations(self._parts, turn_id)

    async def _run(self, turn_id: TurnId) -> Turn | None:
        with self._parts.feed.listen([turn_id]) as listener:
            begun = await self._parts.store.read(outline, turn_id, brief=True)
            if begun is None or begun.turn.state is not TurnState.RUNNING:
                return None
            ready = await self._ready(begun)
            if isinstance(ready, Refusal):
                return await self._settle(turn_id, Finish(ready.code, ready.message), None)
            # Only the ledger's own kind of the input can excuse a silent reply, never a text.
            loop = LoopTurn(
                self._parts.limits.model_requests_max, may_be_silent=begun.turn.kind == Kind.COMPLETION.value
            )
            run = _Run(turn_id, ready, loop, listener, begun.session)
            run.remember(await self._recall(begun, ready))
            try:
                return await self._until_finished(run)
            except _LostError:
                return None

    async def fail(self, turn_id: TurnId, message: str) -> Turn | None:
        """Settle a turn whose worker broke; returns the turn that its slot goes on to."""
        return await self._settle(turn_id, Finish(Code.INTERNAL, message), None)

    async def _ready(self, begun: Outline) -> Sight | Refusal:
        worktree, workspaces = begun.session.worktree, self._parts.workspaces
        if worktree is not None and workspaces is not None:
            try:
                await workspaces.prepare(worktree)
            except RefusedError as error:
                return error.refusal
        path = begun.session.folder
        # In a thread: a network drive may take its time to answer.
        notes = () if path is None else await asyncio.to_thread(self._notes, path)
        if notes is None:
            return Refusal(Code.FOLDER_GONE, f"The project folder {path} is not there any more.")
        binding = binding_for(begun.session, self._parts.models, self._parts.model_hint)
        return binding if isinstance(binding, Refusal) else Sight(binding, [], 0, notes)

    def _notes(self, path: str) -> Sequence[ProjectNote] | None:
        """What the project tells agents; None if its folder is gone."""
        return self._parts.project_notes(path) if os.path.isdir(path) else None  # noqa: PTH112 - as it is stored

    async def _until_finished(self, run: _Run) -> Turn | None:
        outcome: Outcome = Started()
        while True:
            run.loop = replace(run.loop, delegations=self._parts.delegates.open(run.turn_id))
            run.loop, effects = advance(run.loop, outcome)
            run.sight = replace(run.sight, tight=run.loop.tight)
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
                return await self._append(run, items)
            case AskModel():
                return await self._ask(run, scene, effect)
            case RunTools(calls):
                return await self._run_tools(run, calls)
            case AwaitReports():
                return await self._interruptible(run, self._await_reports(run))
            case Summarise():
                return await self._summarise(run, scene, effect)
            case Finish():
                raise AssertionError("finishing is not a step of its own")

    async def _ask(self, run: _Run, scene: Scene, effect: AskModel) -> Outcome:
        """Wait as the effect says, let join what has come by then, and send one request."""
        if effect.after_s:
            await self._interruptible(run, self._parts.clock.sleep(effect.after_s))
            scene = await self._now(run.turn_id)
            if scene.turn.fenced:
                return CancelAsked()
        if scene.turn.news:
            await self._take_news(run)
        await self._append(run, self._taken(run))
        if is_crowded(run.loop, request_tokens(self._parts, scene, run.sight), run.sight.window):
            return Crowded(replace(effect, after_s=0.0))
        asking = ask(self._parts, scene, run.sight, instruction=effect.instruction)
        outcome = await self._interruptible(run, asking)
        if isinstance(outcome, Replied):
            run.used = total((run.used, outcome.reply.usage))
        return outcome

    async def _await_reports(self, run: _Run) -> Outcome:
        """Sleep until a delegation has ended, or something else is there for the turn."""
        # What a person says to the turn wakes who listens to its session.
        with self._parts.feed.listen([run.turn_id, run.session.id]) as listener:
            async with self._slots.parked(run.turn_id):
                ended = self._spawn(self._parts.delegates.news(run.turn_id))
                try:
                    while not ended.done() and not (await self._now(run.turn_id)).turn.news:
                        woken = self._spawn(listener.wait(LOOK_S))
                        await asyncio.wait({ended, woken}, return_when=asyncio.FIRST_COMPLETED)
                        woken.cancel()
                finally:
                    ended.cancel()
        return Reported(self._taken(run))

    def _taken(self, run: _Run) -> tuple[Report, ...]:
        """The reports that the turn was not told yet; what they have cost is the turn's."""
        reports, used = self._parts.delegates.take(run.turn_id)
        run.used = total((run.used, used))
        return reports

    async def _take_news(self, run: _Run) -> None:
        """Let what is meant for the turn join it: steering, and messages that it may take in."""
        took = await self._persist(take_news, TakeNews(run.turn_id), None)
        recalled = await self._recalled(run)
        # After a commit of unknown end a second try finds nothing, but the transcript tells what has joined.
        if took or recalled.last > run.last:
            run.loop = joined(run.loop)
            run.remember(recalled)

    async def _summarise(self, run: _Run, scene: Scene, effect: Summarise) -> Outcome:
        """Write a checkpoint over what is older; where nothing is, the request goes on as it is."""
        recalled = await self._recalled(run)
        sight = replace(run.sight, items=recalled.items)
        items = recalled.items[: older(sight.items, spared_tokens(self._parts, scene, sight))]
        up_to = recalled.numbered[len(items) - 1].number if items else 0
        if up_to <= recalled.covered:
            return Summarised(effect.asking)
        last = newest_checkpoint(recalled.items)
        if last is not None and last not in items:
            # It comes after what it leaves as it was said, and the new one takes its place.
            items.append(last)
        told = summarise(self._parts, replace(sight, items=items))
        summary = await self._interruptible(run, told)
        if isinstance(summary, CancelAsked):
            return summary
        text, used = summary
        run.used = total((run.used, used))
        if not text:
            return Summarised(effect.asking, failed=True)
        if recalled.left_out:
            text = f"{missing(recalled.left_out)}\n{text}"
        asked = run.task.number if run.task is not None and run.task.number <= up_to else None
        await self._append(run, (Checkpoint(text, up_to, asked, used, newest_list(items, last)),))
        run.remember(await self._recalled(run))
        return Summarised(effect.asking)

    async def _run_tools(self, run: _Run, calls: Sequence[ToolCall]) -> ToolsFinished | CancelAsked:
        """Run calls one after the other: an agent that spawns and then waits means that order."""
        for call in calls:
            scene = await self._now(run.turn_id)
            if scene.turn.fenced:
                return CancelAsked()
            calling = call_tool(self._parts, scene, call, self._person, binding=run.sight.binding)
            done = await self._interruptible(run, calling)
            if isinstance(done, CancelAsked):
                return done
            run.results.append(done.result)
            run.shows += done.shows
        return ToolsFinished(tuple(run.results))

    async def _recalled(self, run: _Run) -> Recalled:
        """What is in the transcript now, as far as the model could be shown it."""
        found = await self._parts.store.read(outline, run.turn_id, brief=True)
        if found is None:
            raise _LostError
        return await self._recall(found, run.sight)

    async def _recall(self, found: Outline, sight: Sight) -> Recalled:
        # Twice what fits, so that a summary is given what is about to be left out.
        reading = Recall(found.session.id, 2 * sight.window * BYTES_PER_TOKEN)
        return await self._parts.store.read(recall, reading, brief=found.short)

    async def _now(self, turn_id: TurnId) -> Scene:
        found = await self._parts.store.read(describe.turn_now, turn_id, brief=True)
        if found is None or found[0].state is not TurnState.RUNNING:
            raise _LostError
        return Scene(*found)

    async def _append(self, run: _Run, items: tuple[Item, ...]) -> None:
        if not items:
            return
        command = AppendToTurn(run.turn_id, items, tuple(run.shows))

        async def is_there() -> bool:
            return (await self._recalled(run)).last > run.last

        if not await self._persist(append_items, command, is_there):
            raise _LostError
        run.last += len(items)
        run.sight = replace(run.sight, items=[*run.sight.items, *items])
        run.shows, run.results = [], []

    async def _settle(self, turn_id: TurnId, finish: Finish, run: _Run | None) -> Turn | None:
        # Before the end is written, or a subagent would act for a turn that is over.
        await self._parts.delegates.end(turn_id)
        reports = self._taken(run) if run is not None else ()
        command = SettleTurn(
            turn_id,
            # What tools had answered before a cancel is kept; an end by the loop has it in its own items.
            items=(*(run.results if run is not None and finish.cancelled else ()), *reports, *finish.items),
            shows=tuple(run.shows) if run is not None else (),
            cancelled=finish.cancelled,
            code=finish.code,
            message=finish.message,
            input_tokens=run.used.input_tokens if run else None,
            output_tokens=run.used.output_tokens if run else None,
            cost=run.used.cost if run else None,
            counted=run is not None,
            slot=self._passes_on(turn_id),
            change=await self._change(run.session) if run else None,
        )
        # What nobody has counted is read out of the whole transcript.
        settled = await self._persist(settle_turn, command, None, brief=run is not None)
        return settled.next if isinstance(settled, Settled) else None

    async def _change(self, session: Session) -> Mapping[str, object] | None:
        """Commit what the turn has changed in the session's worktree, and tell it."""
        worktree, workspaces = session.worktree, self._parts.workspaces
        if worktree is None or workspaces is None:
            return None
        try:
            return change_view(worktree, await workspaces.record(worktree, session.title))
        except HostError as error:
            _LOG.warning("the worktree of session %s was not committed: %s", session.id, error)
            return {"branch": worktree.branch, "base": worktree.base, "error": str(error)}

    async def _interruptible(self, run: _Run, doing: Coroutine[Any, Any, T]) -> T | CancelAsked:
        """Await *doing*, but leave it when the turn is fenced: it gets `cancel_grace_s` to clean up."""
        work = self._spawn(doing)
        fence = self._spawn(self._fenced(run))
        try:
            await asyncio.wait({work, fence}, return_when=asyncio.FIRST_COMPLETED)
            if work.cancelled():
                raise RuntimeError("an effect was cancelled by something other than the host")
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
        while True:
            # A turn may wait for a person over a weekend: a database that is gone for a moment must not end it.
            with suppress(StorageError):
                if (await self._now(run.turn_id)).turn.fenced:
                    return
            # Looks again even if nobody woke it: wake-ups may be lost.
            await run.listener.wait(LOOK_S)


async def _end_delegations(parts: RuntimeParts, turn_id: TurnId) -> None:
    """However a turn ends, nothing that it has given away runs on.

    Where its own end did not tell of them, because the host stops or the worker broke, they are told here.
    """
    await parts.delegates.end(turn_id)
    reports, _ = parts.delegates.take(turn_id)
    parts.delegates.forget(turn_id)
    if reports:
        with suppress(HostError):
            await parts.store.run(append_items, AppendToTurn(turn_id, reports))
