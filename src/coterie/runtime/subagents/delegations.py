"""The delegations that run in this process."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from coterie.core.ids import SessionId, TurnId, nonce_of
from coterie.core.text import head_and_tail, mend
from coterie.core.turn.items import Report, Usage, total
from coterie.ports.clock import Clock
from coterie.ports.delegates import Heartbeat
from coterie.ports.ids import IdSource
from coterie.ports.tool import Invocation
from coterie.runtime.subagents.definitions import GENERAL, PROJECT_FOLDER, Definition, definitions

_LOG: Final = logging.getLogger(__name__)
REPORT_CHARS_MAX: Final = 12_000
"""Characters of a report that the turn is told."""
KNOWN_MAX: Final = 100
"""Delegations of one turn that are remembered."""


class DelegationFailedError(Exception):
    """A delegation came to no answer; the text says why."""


@dataclass(slots=True)
class Delegation:
    """One of them, as it goes on."""

    id: str
    turn_id: TurnId
    session_id: SessionId
    definition: Definition
    prompt: str
    started_s: float
    status: str = "running"
    requests: int = 0
    tool_calls: int = 0
    last_tool: str | None = None
    used: Usage = field(default_factory=Usage)
    text: str = ""
    """All that it reports."""
    ref: str | None = None
    """Where that is kept, if it is longer than a report may be."""
    told: bool = False
    ended_s: float | None = None
    task: "asyncio.Task[str] | None" = None


Runner = Callable[[Delegation], Coroutine[Any, Any, str]]
"""Runs one to its end and returns what it says; raises `DelegationFailedError`."""


class Delegations:
    """Implements `ports.delegates.Delegates`.

    Args:
        ids: For their ids and the nonces of their reports.
        clock: Tells how long they run.
        folder: Where the person's own definitions are.
        running_max: How many may run for one turn (`delegations_max`).
    """

    def __init__(self, ids: IdSource, clock: Clock, folder: Path, running_max: int) -> None:
        self._ids, self._clock, self._folder, self._max = ids, clock, folder, running_max
        self._run: Runner | None = None
        self._of: defaultdict[TurnId, list[Delegation]] = defaultdict(list)
        self._changed: defaultdict[TurnId, asyncio.Event] = defaultdict(asyncio.Event)

    def run_by(self, run: Runner) -> None:
        """Say what runs them: it needs the tools, which need this."""
        self._run = run

    async def start(self, invocation: Invocation, prompt: str, agent: str | None) -> Heartbeat | str:
        """See the port."""
        turn_id = invocation.turn_id
        workspace = [Path(invocation.workspace) / PROJECT_FOLDER] if invocation.workspace else []
        found, flaws = await asyncio.to_thread(definitions, (self._folder, *workspace))
        definition = found.get(agent or GENERAL.name)
        if definition is None:
            broken = next((f" {flaw.name}.md is none: {flaw.text}." for flaw in flaws if flaw.name == agent), "")
            return f"There is no agent {agent!r}.{broken} Known: {', '.join(found)}."
        if self.running(turn_id) >= self._max:
            return f"{self._max} delegations of this turn run already (delegations_max); wait for one, or stop one."
        if len(self._of[turn_id]) >= KNOWN_MAX:
            return f"This turn has begun {KNOWN_MAX} delegations, and may begin no more."
        one = Delegation(
            self._ids.new("dlg"), turn_id, invocation.session_id, definition, prompt, self._clock.monotonic()
        )
        self._of[turn_id].append(one)
        assert self._run is not None, "the host has said what runs them"
        one.task = asyncio.get_running_loop().create_task(self._run(one))
        one.task.add_done_callback(lambda task: self._ended(one, task))
        return self._heartbeat(one)

    def _ended(self, one: Delegation, task: "asyncio.Task[str]") -> None:
        """Note how it ended; whatever broke it ends it alone."""
        if task.cancelled():
            text, one.status = "It was stopped before it had an answer.", "stopped"
        elif (error := task.exception()) is None:
            text, one.status = task.result(), "completed"
        elif isinstance(error, DelegationFailedError):
            text, one.status = str(error), "failed"
        else:
            _LOG.error("delegation %s broke", one.id, exc_info=error)
            text, one.status = f"It broke: {type(error).__name__}; the host's log has the cause.", "failed"
        one.text = mend(text)
        one.ended_s = self._clock.monotonic()
        self._changed[one.turn_id].set()

    def known(self, turn_id: TurnId) -> tuple[Heartbeat, ...]:
        """See the port."""
        return tuple(map(self._heartbeat, self._of.get(turn_id, ())))

    def of_session(self, session_id: SessionId) -> tuple[Heartbeat, ...]:
        """See the port."""
        every = (one for known in self._of.values() for one in known)
        return tuple(self._heartbeat(one) for one in every if one.session_id == session_id and one.status == "running")

    def _heartbeat(self, one: Delegation) -> Heartbeat:
        until = self._clock.monotonic() if one.ended_s is None else one.ended_s
        report = None if one.status == "running" else one.text
        counts = (one.requests, one.tool_calls, one.last_tool)
        return Heartbeat(one.id, one.definition.name, one.status, until - one.started_s, *counts, report)

    async def wait(
        self, turn_id: TurnId, ids: Sequence[str], mode: Literal["all", "any"], timeout_s: float | None = None
    ) -> tuple[Heartbeat, ...]:
        """See the port."""
        wanted = [one for one in self._of.get(turn_id, ()) if not ids or one.id in ids]
        tasks = [one.task for one in wanted if one.task is not None and one.status == "running"]
        if tasks and (mode == "all" or len(tasks) == len(wanted)):
            until = asyncio.ALL_COMPLETED if mode == "all" else asyncio.FIRST_COMPLETED
            await asyncio.wait(tasks, timeout=timeout_s, return_when=until)
        for one in wanted:
            one.told |= one.status != "running"
        return tuple(map(self._heartbeat, wanted))

    async def stop(self, turn_id: TurnId, id_: str) -> bool:
        """See the port."""
        found = [one for one in self._of.get(turn_id, ()) if one.id == id_ and one.status == "running"]
        await _stopped(found)
        return bool(found)

    def running(self, turn_id: TurnId) -> int:
        """See the port."""
        return sum(one.status == "running" for one in self._of.get(turn_id, ()))

    def open(self, turn_id: TurnId) -> int:
        """See the port."""
        return self.running(turn_id) + len(self._untold(turn_id))

    async def news(self, turn_id: TurnId) -> None:
        """See the port."""
        while self.running(turn_id) and not self._untold(turn_id):
            self._changed[turn_id].clear()
            await self._changed[turn_id].wait()

    def _untold(self, turn_id: TurnId) -> list[Delegation]:
        return [one for one in self._of.get(turn_id, ()) if one.status != "running" and not one.told]

    def take(self, turn_id: TurnId) -> tuple[tuple[Report, ...], Usage]:
        """See the port."""
        untold, known = self._untold(turn_id), self._of.get(turn_id, ())
        used = total(one.used for one in known)
        for one in known:
            one.used = Usage()
        for one in untold:
            one.told = True
        return tuple(map(self._report, untold)), used

    def _report(self, one: Delegation) -> Report:
        where = f"; read_output with ref {one.ref} shows it" if one.ref else ""
        text, _ = head_and_tail(one.text, REPORT_CHARS_MAX, where)
        return Report(one.id, one.definition.name, one.status, text, nonce_of(self._ids.new("dlg")), one.ref)

    async def end(self, turn_id: TurnId) -> None:
        """See the port."""
        await _stopped([one for one in self._of.get(turn_id, ()) if one.status == "running"])

    def forget(self, turn_id: TurnId) -> None:
        """See the port."""
        self._of.pop(turn_id, None)
        self._changed.pop(turn_id, None)


async def _stopped(found: Sequence[Delegation]) -> None:
    tasks = [one.task for one in found if one.task is not None]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
