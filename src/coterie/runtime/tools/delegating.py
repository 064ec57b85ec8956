"""The tools `task`, `task_wait`, `task_list` and `task_stop`: a turn gives work to subagents of its own session."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal

from pydantic import Field

from coterie.core.permission import Risk
from coterie.core.text import cut
from coterie.ports.delegates import Delegates, Heartbeat
from coterie.ports.model_provider import ToolSpec
from coterie.ports.slots import Slots
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.tools.arguments import Arguments, ArgumentsT, Text, UnfitError, parse, schema_of

WAIT_S_MAX: Final = 900
_ABOUT_CHARS_MAX: Final = 200


class TaskArguments(Arguments):
    """Which work, and for whom."""

    prompt: Text = Field(min_length=1, description="The whole task: the subagent knows nothing of this conversation.")
    agent: Text | None = Field(default=None, description="Name of a definition. Default: general, which only reads.")
    wait: bool = Field(default=False, description="Wait for the report instead of going on at once.")


class WaitArguments(Arguments):
    """Which of them, and for how long."""

    ids: list[Text] = Field(default_factory=list, max_length=100, description="Delegations. Default: all that run.")
    mode: Literal["all", "any"] = Field(default="all", description="Whether all must have ended, or any of them.")
    timeout_s: float = Field(default=300, gt=0, le=WAIT_S_MAX, allow_inf_nan=False, description="Seconds at most.")


class ListArguments(Arguments):
    """Nothing."""


class StopArguments(Arguments):
    """Which one."""

    id: Text = Field(min_length=1, description="The delegation.")


@dataclass(frozen=True, slots=True)
class DelegatingTool(Generic[ArgumentsT]):
    """One of the four. What a subagent does is judged call by call, so giving it work is no risk."""

    spec: ToolSpec
    arguments_type: type[ArgumentsT]
    act: Callable[[Invocation, ArgumentsT], Awaitable[ToolOutput]]

    def risk(self, arguments: Mapping[str, object]) -> Risk:
        """Low."""
        del arguments
        return Risk.LOW

    async def about(self, invocation: Invocation, arguments: Mapping[str, object]) -> About:
        """The agent and the beginning of its task."""
        del invocation
        words = " ".join(str(arguments[name]) for name in ("agent", "prompt", "id") if arguments.get(name))
        return About(cut(words, _ABOUT_CHARS_MAX)[0])

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Do it."""
        try:
            return await self.act(invocation, parse(self.arguments_type, arguments))
        except UnfitError as error:
            return ToolOutput(str(error), error=True)


@dataclass(frozen=True, slots=True)
class _Acts:
    delegates: Delegates
    slots: Slots

    async def task(self, invocation: Invocation, given: TaskArguments) -> ToolOutput:
        begun = await self.delegates.start(invocation, given.prompt, given.agent)
        if isinstance(begun, str):
            raise UnfitError(begun)
        if not given.wait:
            return _told([begun])
        return _told(await self._waited(invocation, WaitArguments(ids=[begun.id], timeout_s=WAIT_S_MAX)))

    async def wait(self, invocation: Invocation, given: WaitArguments) -> ToolOutput:
        known = {one.id for one in self.delegates.known(invocation.turn_id)}
        strange = [id_ for id_ in given.ids if id_ not in known]
        if strange:
            raise UnfitError(f"{strange[0]!r} is no delegation of this turn; task_list tells which there are.")
        return _told(await self._waited(invocation, given))

    async def _waited(self, invocation: Invocation, given: WaitArguments) -> tuple[Heartbeat, ...]:
        async with self.slots.parked(invocation.turn_id):
            return await self.delegates.wait(invocation.turn_id, given.ids, given.mode, given.timeout_s)

    async def list(self, invocation: Invocation, given: ListArguments) -> ToolOutput:
        del given
        return _told(self.delegates.known(invocation.turn_id), reports=False)

    async def stop(self, invocation: Invocation, given: StopArguments) -> ToolOutput:
        if not await self.delegates.stop(invocation.turn_id, given.id):
            raise UnfitError(f"No delegation {given.id!r} of this turn runs; task_list tells which do.")
        return _told([one for one in self.delegates.known(invocation.turn_id) if one.id == given.id])


def delegating_tools(delegates: Delegates, slots: Slots) -> tuple[DelegatingTool[Any], ...]:
    """Return the four tools.

    Args:
        delegates: What runs them.
        slots: Where a turn that waits for one is parked.
    """
    acts = _Acts(delegates, slots)
    task = (
        "Give a piece of work to a subagent that runs beside you and reports once. Answers its id at once; its report "
        "comes by task_wait, or by itself when you have nothing else to do. The turn stays open until all have ended."
    )
    return (
        DelegatingTool(ToolSpec("task", task, schema_of(TaskArguments)), TaskArguments, acts.task),
        DelegatingTool(
            ToolSpec("task_wait", "Wait for delegations and read their reports.", schema_of(WaitArguments)),
            WaitArguments,
            acts.wait,
        ),
        DelegatingTool(
            ToolSpec("task_list", "List the delegations of this turn and what they do.", schema_of(ListArguments)),
            ListArguments,
            acts.list,
        ),
        DelegatingTool(
            ToolSpec("task_stop", "Stop a delegation and all that it runs.", schema_of(StopArguments)),
            StopArguments,
            acts.stop,
        ),
    )


def _told(found: Iterable[Heartbeat], *, reports: bool = True) -> ToolOutput:
    body = [
        {
            "id": one.id,
            "agent": one.agent,
            "status": one.status,
            "elapsedS": round(one.elapsed_s, 1),
            "requests": one.requests,
            "toolCalls": one.tool_calls,
        }
        | ({"lastTool": one.last_tool} if one.last_tool else {})
        | ({"report": one.report} if reports and one.report is not None else {})
        for one in found
    ]
    return ToolOutput(json.dumps({"delegations": body}, ensure_ascii=False))
