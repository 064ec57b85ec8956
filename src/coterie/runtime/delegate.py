"""Runs one delegation: the same loop as a turn's, in memory, with fewer tools and for one report."""

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Final

from coterie.app import describe
from coterie.core.model_ref import Binding, Chosen, choose
from coterie.core.refusal import Refusal
from coterie.core.text import mend
from coterie.core.turn.items import Item, PersonText, Reply, ToolCall, ToolResult, total
from coterie.core.turn.loop import (
    AppendItems,
    AskModel,
    AwaitReports,
    Finish,
    LoopTurn,
    Outcome,
    Replied,
    RunTools,
    Started,
    Summarise,
    ToolsFinished,
    advance,
)
from coterie.core.turn.start import binding_for
from coterie.core.turn.states import TurnState
from coterie.operations.approving import Person
from coterie.runtime.effects import RuntimeParts, Scene, Sight, ask, call_tool
from coterie.runtime.subagents.delegations import REPORT_CHARS_MAX, Delegation, DelegationFailedError

_LOG: Final = logging.getLogger(__name__)

NOT_FOR_SUBAGENTS: Final = frozenset(
    {"task", "task_wait", "task_list", "task_stop", "session_task", "ask_user", "read_output"}
)
"""Tools that no definition can give: a subagent reports to its session, and speaks to nobody else."""
_RULES: Final = (
    "You are a subagent of this session: you were given one piece of work, and nobody answers questions. Your last "
    "reply is your report to the session: make it complete and short."
)


@dataclass(frozen=True, slots=True)
class _Work:
    """A delegation under way."""

    one: Delegation
    parts: RuntimeParts
    """With the tools of its definition alone."""
    sight: Sight
    items: list[Item]
    """What the sight shows; it grows."""


class Delegate:
    """Runs delegations with a host's parts."""

    def __init__(self, parts: RuntimeParts, person: Person) -> None:
        self._parts, self._person = parts, person

    async def run(self, one: Delegation) -> str:
        """Run it to its end; what it may do is asked as for its turn.

        Raises:
            DelegationFailedError: It came to no answer.
        """
        given = [name for name in one.definition.tools if name in self._parts.tools and name not in NOT_FOR_SUBAGENTS]
        # Kept outputs are named by the transcript of a session, which these are not in.
        parts = replace(self._parts, tools={name: self._parts.tools[name] for name in given}, outputs=None)
        scene, items = await self._now(one), list[Item]([PersonText(one.prompt)])
        path = scene.session.folder
        notes = () if path is None else await asyncio.to_thread(parts.project_notes, path)
        work = _Work(one, parts, Sight(self._binding(one, scene), items, 0, notes), items)
        loop = LoopTurn(parts.limits.model_requests_max)
        outcome: Outcome = Started()
        while True:
            loop, effects = advance(loop, outcome)
            for effect in effects:
                match effect:
                    case AppendItems(new):
                        work.items.extend(new)
                    case AskModel():
                        outcome = await self._ask(replace(work, sight=replace(work.sight, tight=loop.tight)), effect)
                    case RunTools(calls):
                        outcome = ToolsFinished(tuple([await self._call(work, call) for call in calls]))
                    case AwaitReports() | Summarise():
                        raise AssertionError("a subagent gives nothing away, and drops what does not fit")
                    case Finish():
                        return await self._kept(one, _said(effect))

    async def _kept(self, one: Delegation, text: str) -> str:
        """Keep a report that is too long to be told whole, before the row that will refer to it."""
        outputs = self._parts.outputs
        if len(text) > REPORT_CHARS_MAX and outputs is not None:
            try:
                one.ref = await asyncio.to_thread(outputs.keep, mend(text))
            except OSError as error:
                _LOG.warning("a report of %d characters could not be kept: %s", len(text), error)
        return text

    async def _ask(self, work: _Work, effect: AskModel) -> Outcome:
        one = work.one
        if effect.after_s:
            await work.parts.clock.sleep(effect.after_s)
        instruction = "\n".join(text for text in (_RULES, one.definition.instructions, effect.instruction) if text)
        one.requests += 1
        scene = await self._now(one)
        outcome = await ask(work.parts, scene, work.sight, instruction=instruction, live=False)
        if isinstance(outcome, Replied):
            one.used = total((one.used, outcome.reply.usage))
        return outcome

    async def _call(self, work: _Work, call: ToolCall) -> ToolResult:
        one = work.one
        one.tool_calls, one.last_tool = one.tool_calls + 1, call.name
        return (
            await call_tool(work.parts, await self._now(one), call, self._person, binding=work.sight.binding)
        ).result

    async def _now(self, one: Delegation) -> Scene:
        found = await self._parts.store.read(describe.turn_now, one.turn_id, brief=True)
        if found is None or found[0].state is not TurnState.RUNNING or found[0].fenced:
            raise DelegationFailedError("Its turn has ended.")
        return Scene(*found)

    def _binding(self, one: Delegation, scene: Scene) -> Binding:
        if one.definition.model is None:
            found = binding_for(scene.session, self._parts.models, self._parts.model_hint)
        else:
            found = choose(self._parts.models, one.definition.model, delegated=True)
        if isinstance(found, Refusal):
            raise DelegationFailedError(found.message)
        return found.binding if isinstance(found, Chosen) else found


def _said(finish: Finish) -> str:
    if finish.code is not None:
        raise DelegationFailedError(f"{finish.code.value}: {finish.message}")
    return next((item.text for item in reversed(finish.items) if isinstance(item, Reply)), "")
