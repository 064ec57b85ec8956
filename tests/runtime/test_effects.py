"""What a tool does wrong is told to its model, and ends neither the turn nor the session."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from coterie.core.ids import ChainId, HostId, InputId, SessionId, TurnId
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.core.permission import Mode, Risk, StoredMode
from coterie.core.session.session import Session
from coterie.core.turn.items import ToolCall
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.operations.approving import Person
from coterie.operations.invocations import Invocations
from coterie.ports.model_provider import ModelProvider, ToolSpec
from coterie.ports.store import Store
from coterie.ports.tool import About, Invocation, ToolOutput
from coterie.runtime.effects import CallDone, RuntimeParts, Scene, call_tool
from coterie.runtime.subagents.delegations import Delegations
from coterie.storage.sqlite.feed import MemoryFeed
from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds

SESSION = Session(
    SessionId("ses_a"),
    "a",
    None,
    None,
    permission_mode=StoredMode.ASK,
    held=None,
    streak=0,
    ready=None,
    revision=1,
    created_at=0,
    updated_at=0,
)
TURN = Turn(
    TurnId("turn_a"),
    SESSION.id,
    InputId("inp_a"),
    "prompt",
    message_id=None,
    state=TurnState.RUNNING,
    host_id=HostId("hst_a"),
    epoch=1,
    permission=Mode.ASK,
    chain_id=ChainId("chn_a"),
    hops=9,
    fenced=False,
    created_at=0,
)

NOBODY = cast("Person", None)
"""No call here waits for a person."""


class Unruly:
    """A tool that does what no tool should."""

    def __init__(self, way: str) -> None:
        self._way = way
        self.began = asyncio.Event()

    @property
    def spec(self) -> ToolSpec:
        """Takes anything."""
        return ToolSpec("unruly", "", {"type": "object"})

    def risk(self, arguments: Mapping[str, object]) -> Risk:
        """Fails, if that is its way."""
        del arguments
        if self._way == "risk":
            raise KeyError("mode")
        return Risk.LOW

    async def about(self, invocation: Invocation, arguments: Mapping[str, object]) -> About:
        """Nothing."""
        del invocation, arguments
        return About("")

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """Break off in its way."""
        del invocation, arguments
        self.began.set()
        if self._way == "cancel":
            own = asyncio.ensure_future(asyncio.Event().wait())
            own.cancel()
            await own
        if self._way == "wait":
            await asyncio.Event().wait()
        raise ValueError("broken")


def _parts(tool: Unruly) -> RuntimeParts:
    return RuntimeParts(
        # Neither is asked by a tool call.
        store=cast("Store", None),
        feed=MemoryFeed(),
        clock=FakeClock(),
        invocations=Invocations(SeededIds()),
        models=(),
        provider=cast("ModelProvider", None),
        tools={"unruly": tool},
        limits=Limits(),
        permission_default=Mode.ASK,
        model_hint="",
        delegates=Delegations(SeededIds(), FakeClock(), Path(), running_max=1),
    )


async def _called(tool: Unruly, arguments: str = "{}") -> CallDone:
    call, binding = ToolCall("1", "unruly", arguments), Binding("local/one", "openai-chat", None, "one")
    return await call_tool(_parts(tool), Scene(TURN, SESSION), call, NOBODY, binding=binding)


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("risk", "The tool cannot tell its risk: KeyError"),
        ("cancel", "The tool was cancelled from within."),
        ("raise", "The tool failed: ValueError: broken"),
    ],
)
async def test_a_tool_that_breaks_off_is_an_error_of_its_call(way: str, told: str) -> None:
    """A cancellation that a tool made itself must not pass for one of the host: the turn would run again."""
    done = await _called(Unruly(way))
    assert done.result.error
    assert done.result.text.startswith(told)


async def test_a_call_that_the_host_cancels_ends_as_cancelled() -> None:
    """Else a fenced turn would go on with its next call."""
    tool = Unruly("wait")
    call = asyncio.ensure_future(_called(tool))
    await tool.began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("arguments", ["[" * 100_000, '{"a":' * 100_000, "[]", "{"])
async def test_arguments_that_are_no_object_never_reach_the_tool(arguments: str) -> None:
    """However deep a model nests them; the session has to go on with this call in its transcript."""
    done = await _called(Unruly("raise"), arguments)
    assert "not one JSON object" in done.result.text
