"""Performs the effects of the agent loop: asks models and runs tools.

What comes back is a value in every case; a fault of a tool is a result that the model can read.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from coterie.app.approve import AskPerson, CallOf, is_granted
from coterie.core.errors import StorageError
from coterie.core.ids import MessageId
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding
from coterie.core.permission import Decision, Mode, Risk, Rule, decide, least, refusing, resolve
from coterie.core.session.session import Session
from coterie.core.text import head_and_tail, is_blank, mend, nearest
from coterie.core.thinking import applied
from coterie.core.turn.context import UserPart
from coterie.core.turn.fitting import (
    FILL,
    WINDOW_TOKENS,
    allowance,
    fit,
    measure,
    shortened,
    spared,
    transcribed,
    weight,
)
from coterie.core.turn.instructions import SUMMARY, ProjectNote, instructions
from coterie.core.turn.items import Item, ToolCall, ToolResult, Usage
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.core.turn.turn import Turn
from coterie.operations.approving import Person, is_allowed
from coterie.operations.invocations import Invocations
from coterie.ports.clock import Clock
from coterie.ports.delegates import Delegates
from coterie.ports.feed import Delta, Feed
from coterie.ports.model_provider import ModelProvider, ModelRequest
from coterie.ports.outputs import Images, Outputs
from coterie.ports.store import Store
from coterie.ports.tool import DIFF_CHARS_MAX, Invocation, Tool, ToolOutput
from coterie.ports.workspaces import Workspaces
from coterie.runtime import pictures
from coterie.runtime.live import live_text

_LOG: Final = logging.getLogger(__name__)
_SUMMARY_PART: Final = 8
"""The part of a window that a summary may fill, as a divisor."""


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """What turns are run with."""

    store: Store
    feed: Feed
    clock: Clock
    invocations: Invocations
    models: Sequence[Binding]
    provider: ModelProvider
    tools: Mapping[str, Tool]
    limits: Limits
    permission_default: Mode
    model_hint: str
    """What to tell a person who has configured no model."""
    delegates: Delegates
    denied: tuple[Rule, ...] = ()
    """What is refused in every mode."""
    outputs: Outputs | None = None
    """Where long outputs are kept; None keeps head and tail only."""
    images: Images | None = None
    """Where pictures are kept; without it none is shown."""
    project_notes: Callable[[str], Sequence[ProjectNote]] = lambda _: ()
    """Reads what a project folder tells agents; called in a thread."""
    workspaces: Workspaces | None = None
    """What makes worktrees; without it there are none."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A running turn as it is now."""

    turn: Turn
    session: Session

    def mode(self, default: Mode) -> Mode:
        """What a tool call may do: lowering the session acts at once, raising it does not reach a running turn."""
        return least([self.turn.permission, resolve(self.session.permission_mode, default)])


@dataclass(frozen=True, slots=True)
class CallDone:
    """One tool call with its result."""

    result: ToolResult
    shows: tuple[MessageId, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model is asked with, besides instructions and tools of the host."""

    binding: Binding
    items: Sequence[Item]
    left_out: int
    """Entries of the transcript before *items* that no checkpoint covers."""
    notes: Sequence[ProjectNote] = ()
    task: Item | None = None
    """What the turn was asked; it stays whatever is left out."""
    tight: int = 1
    """See `LoopTurn.tight`."""

    @property
    def window(self) -> int:
        """What the model takes, in tokens of the estimate."""
        return (self.binding.context_window or WINDOW_TOKENS) // self.tight


async def ask(
    parts: RuntimeParts, scene: Scene, sight: Sight, *, instruction: str | None, live: bool = True
) -> Replied | ModelFailed:
    """Send one request that fits the model's window; *live* shows its text as it arrives."""
    turn = scene.turn

    def show(text: str) -> None:
        if live:
            parts.feed.publish(Delta(turn.session_id, turn.id, text))

    told = _instructions(parts, scene, sight, instruction)
    room = allowance(sight.items, _overhead(parts, told), sight.window)
    tools = tuple(tool.spec for tool in parts.tools.values())
    seen = fit(sight.items, sight.left_out, room, sight.task)
    images: Mapping[str, bytes] = {}
    if pictures.are_in(seen):
        images = await asyncio.to_thread(pictures.fetched, parts.images, sight.binding, seen)
        seen = pictures.without(seen, images)
    thinking = applied(scene.session.thinking, sight.binding)
    request = ModelRequest(sight.binding, told, seen, tools, thinking, images)
    return await parts.provider.ask(request, show)


def request_tokens(parts: RuntimeParts, scene: Scene, sight: Sight) -> int:
    """The tokens that the next request would take if nothing were left out."""
    return measure(sight.items, _overhead(parts, _instructions(parts, scene, sight, None)))


def spared_tokens(parts: RuntimeParts, scene: Scene, sight: Sight) -> int:
    """The estimated tokens of the newest items that a summary leaves as they are."""
    return spared(sight.items, _overhead(parts, _instructions(parts, scene, sight, None)), sight.window)


async def summarise(parts: RuntimeParts, sight: Sight) -> tuple[str, Usage]:
    """Let the model summarise the items of *sight*; returns its text, blank where there is none, and what was used."""
    text = transcribed(sight.items, int(FILL * sight.window) - weight([UserPart(SUMMARY)]))
    request = ModelRequest(sight.binding, SUMMARY, (UserPart(text),), ())
    outcome = await parts.provider.ask(request, lambda _: None)
    if isinstance(outcome, ModelFailed):
        _LOG.warning("no summary by %s: %s", sight.binding.key, outcome.message)
        return "", Usage()
    reply = outcome.reply
    return "" if is_blank(reply.text) else shortened(reply.text, sight.window // _SUMMARY_PART), reply.usage


def _instructions(parts: RuntimeParts, scene: Scene, sight: Sight, extra: str | None) -> str:
    return instructions(scene.session, scene.mode(parts.permission_default), extra, sight.notes)


def _overhead(parts: RuntimeParts, told: str) -> int:
    """The estimate for what a request carries besides the transcript."""
    specs = [tool.spec for tool in parts.tools.values()]
    return weight(UserPart(f"{one.name}{one.description}{json.dumps(one.parameters)}") for one in specs) + weight(
        [UserPart(told)]
    )


async def call_tool(parts: RuntimeParts, scene: Scene, call: ToolCall, person: Person, *, binding: Binding) -> CallDone:
    """Run one call: at once, or when a person allows what the turn may not do by itself."""
    tool = parts.tools.get(call.name)
    if tool is None:
        near = ", ".join(nearest(call.name, list(parts.tools), 3)) or ", ".join(parts.tools)
        return _refused(call, f"There is no tool {call.name!r}. Available: {near}.")
    arguments = _object(call.arguments)
    if arguments is None:
        return _refused(call, "The arguments are not one JSON object; call the tool again with valid JSON.")
    try:
        risk = tool.risk(arguments)
    except Exception as error:  # noqa: BLE001 - a tool that cannot tell its risk is not run
        return _refused(call, f"The tool cannot tell its risk: {type(error).__name__}: {error}")
    turn = scene.turn

    def publish(text: str) -> None:
        parts.feed.publish(Delta(turn.session_id, turn.id, text, call.id))

    with (
        live_text(publish) as show,
        parts.invocations.live(turn.session_id, turn.id, call.id, scene.session.folder, show=show) as invocation,
    ):
        try:
            output = await _hindered(parts, scene, _Wish(call, tool, arguments, risk, invocation), person)
            if output is None:
                output = await tool.run(invocation, arguments)
        except Exception as error:  # noqa: BLE001 - whatever a tool does, the turn goes on and its model is told
            _LOG.exception("tool %s failed in turn %s", call.name, turn.id)
            output = ToolOutput(f"The tool failed: {type(error).__name__}: {error}", error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The tool cancelled something of its own and let it out: that ends its call, not the turn.
            output = ToolOutput("The tool was cancelled from within.", error=True)
    return await _done(parts, call, output, binding)


async def _done(parts: RuntimeParts, call: ToolCall, output: ToolOutput, binding: Binding) -> CallDone:
    if output.picture is not None:
        return CallDone(await asyncio.to_thread(pictures.pictured, parts.images, binding, call, output), output.shows)
    if len(output.text) <= parts.limits.tool_result_chars_max:
        return CallDone(_result(call, output, mend(output.text)), output.shows)
    # What is cut out was not shown, so its notice still has something to tell.
    return CallDone(await asyncio.to_thread(_shortened, parts, call, output))


def _shortened(parts: RuntimeParts, call: ToolCall, output: ToolOutput) -> ToolResult:
    """Keep a long output, then cut it: the row that will refer to it comes last, so a crash leaves no empty reference.

    Megabytes are looked through here, and written: a matter for a thread.
    """
    text = mend(output.text)
    ref, where = None, ""
    if parts.outputs is not None:
        try:
            ref = parts.outputs.keep(text)
            where = f"; read_output with ref {ref} shows it"
        except OSError as error:
            _LOG.warning("an output of %d characters could not be kept: %s", len(text), error)
            where = " and could not be kept"
    shown_, _ = head_and_tail(text, parts.limits.tool_result_chars_max, where)
    return _result(call, output, shown_, ref)


def _result(call: ToolCall, output: ToolOutput, text: str, ref: str | None = None) -> ToolResult:
    diff, _ = head_and_tail(mend(output.diff), DIFF_CHARS_MAX)
    return ToolResult(call.id, call.name, text, output.error, ref, diff or None)


@dataclass(frozen=True, slots=True)
class _Wish:
    """A call that is about to run."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, object]
    risk: Risk
    invocation: Invocation


async def _hindered(parts: RuntimeParts, scene: Scene, wish: _Wish, person: Person) -> ToolOutput | None:
    """What a call answers that may not run; None lets it. Rules come first, so that nobody is asked in vain."""
    name = wish.call.name
    mode = scene.mode(parts.permission_default)
    decision = decide(mode, wish.risk)
    if decision is Decision.ALLOW and not parts.denied:
        return None
    about = await wish.tool.about(wish.invocation, wish.arguments)
    if isinstance(about, ToolOutput):
        return about
    subject = mend(about.subject)
    rule = refusing(parts.denied, name, subject)
    if rule is not None:
        return ToolOutput(f"Denied by the rule {rule} of this host, whoever asks. Go on without it.", error=True)
    if decision is Decision.ALLOW:
        return None
    turn = scene.turn
    if await parts.store.read(is_granted, CallOf(turn.id, name, subject), brief=True):
        return None
    # By the invocation, not by the id that its model chose: some number the calls of each reply anew.
    asking = AskPerson(turn.id, wish.invocation.id, name, wish.risk, subject, mend(about.shown), mode)
    try:
        asked = await person.answer(asking)
    except StorageError as error:
        return ToolOutput(f"Denied: a person has to allow this, and could not be asked: {error}", error=True)
    if is_allowed(asked):
        # What runs is what the person has seen: days may have gone by, and somebody else may have been at the file.
        if await wish.tool.about(wish.invocation, wish.arguments) == about:
            return None
        text = "A person has allowed this call, but its file has changed since they were asked, so nothing was done. "
        return ToolOutput(text + "Look at the file again, then call again.", error=True)
    note = f" They say: {asked.note}" if asked is not None and asked.note else ""
    return ToolOutput(f"Denied by a person.{note} Go on without it, or say what you would have done.", error=True)


def _refused(call: ToolCall, text: str) -> CallDone:
    return CallDone(ToolResult(call.id, call.name, text, error=True))


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
