"""`collaboration.wait`: sleeps on the feed, reads the truth from the store."""

import base64
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from coterie.app import describe
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import MessageId, SessionId
from coterie.core.ledger.message import Message
from coterie.core.ledger.states import SETTLED
from coterie.core.ledger.waits import Wait
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.operations.asleep import Sleep
from coterie.operations.caller import Agent

OUTSIDE_MS_MAX: Final = 45_000
"""The longest sleep of whoever is no native turn, and of a plugin of others: clients give up after a minute."""
OUTSIDE_MS_DEFAULT: Final = 25_000
BRIEF_MAX: Final = 8
"""Messages, each perhaps with a long text, that are looked at without a change of thread."""
LOOK_S: Final = 5.0
"""The longest sleep without a look at the ledger."""
_BUSY: Final = frozenset({"running", "queued"})
_SUM_CHARS: Final = 8
"""Hex digits of the checksum at the head of a cursor."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look at the ledger has found."""

    targets: tuple[SessionId, ...]
    """The sessions whose work is waited for still; none once the wait has what it is for."""
    messages: tuple[Message, ...] = ()
    status: str | None = None


async def wait(act: Act, given: params.Wait) -> views.Waited:
    """Sleep until all, or any, of the messages have settled, or until a session is idle.

    A native turn is parked meanwhile: it holds no slot. Turns that would come to wait for each other in a ring are
    refused the last of these waits (`WAIT_CYCLE`). It is refused in its sleep if it is for a session that was idle for
    a while, which nobody but others noticed, and has begun to wait for the sleeper since.
    """
    wanted = given if given.cursor is None else _resumed(given.cursor, given)
    seen, timeout_s = await _look(act, wanted), _timeout_s(act, given)
    if seen.targets and timeout_s > 0:
        seen = await _slept(act, wanted, seen, timeout_s)
    return views.Waited(
        timed_out=bool(seen.targets),
        messages=[_state(message) for message in seen.messages],
        status=seen.status,
        cursor=_cursor(wanted) if seen.targets else None,
    )


async def _look(act: Act, wanted: params.Wait) -> _Seen:
    if wanted.until == "idle":
        return await _look_at_session(act, wanted)
    if wanted.session_id is not None:
        raise InvalidArgumentError("sessionId goes with until = idle; without it messageIds say what to wait for.")
    if not wanted.message_ids:
        raise InvalidArgumentError("messageIds is empty: name what to wait for, or a sessionId with until = idle.")
    which = tuple(dict.fromkeys(MessageId(text) for text in wanted.message_ids))
    found = await act.host.store.read(describe.messages, (which, act.reader), brief=len(which) <= BRIEF_MAX)
    unsettled = [message for message in found if message.state not in SETTLED]
    if wanted.mode == "any" and len(unsettled) < len(found):
        return _Seen((), messages=found)
    return _Seen(tuple(dict.fromkeys(message.target_session_id for message in unsettled)), messages=found)


async def _look_at_session(act: Act, wanted: params.Wait) -> _Seen:
    if wanted.session_id is None or wanted.message_ids:
        raise InvalidArgumentError("until = idle takes a sessionId and no messageIds.")
    session_id = SessionId(wanted.session_id)
    found = await act.host.store.read(describe.status, session_id, brief=True)
    return _Seen((session_id,) if found.status in _BUSY else (), status=found.status)


async def _slept(act: Act, wanted: params.Wait, seen: _Seen, timeout_s: float) -> _Seen:
    """Sleep until it has come or the time has run out; returns what was seen last."""
    clock = act.host.clock
    end_s = clock.monotonic() + timeout_s
    with act.host.feed.listen(seen.targets) as listener:
        # Registered before it looks again, so that nothing is missed in between.
        seen = await _look(act, wanted)
        if not seen.targets:
            return seen
        async with _asleep(act, wanted, seen) as sleep:
            while seen.targets and (left_s := end_s - clock.monotonic()) > 0:
                if sleep is not None:
                    await act.host.waits.renew(sleep, seen.targets)
                # Wake-ups may be lost, so it looks again even if nobody woke it.
                await listener.wait(min(left_s, LOOK_S))
                if isinstance(act.caller, Agent):
                    act.host.invocations.check(act.caller.invocation)
                seen = await _look(act, wanted)
    return seen


@asynccontextmanager
async def _asleep(act: Act, wanted: params.Wait, seen: _Seen) -> AsyncGenerator[Sleep | None]:
    """Park the turn of an agent, unless it waits in vain; a person who waits holds nobody up."""
    if not isinstance(act.caller, Agent):
        yield None
        return
    invocation = act.caller.invocation

    async def targets() -> tuple[SessionId, ...]:
        return (await _look(act, wanted)).targets

    sleep = Sleep(Wait(invocation.session_id, seen.targets, needs_all=wanted.mode == "all"), targets)
    await act.host.waits.begin(sleep)
    async with act.host.slots.parked(invocation.turn_id):
        try:
            yield sleep
        finally:
            # All that the turn waits for from here on is a slot.
            act.host.waits.end(sleep)


def _timeout_s(act: Act, given: params.Wait) -> float:
    if isinstance(act.caller, Agent) and act.caller.is_native:
        most = act.host.limits.wait_max_s
        return min(given.timeout_ms / 1000, most) if given.timeout_ms is not None else most
    return min(OUTSIDE_MS_DEFAULT if given.timeout_ms is None else given.timeout_ms, OUTSIDE_MS_MAX) / 1000


def _state(message: Message) -> views.MessageState:
    return views.MessageState(
        id=message.id,
        status=message.state.value,
        session_id=message.target_session_id,
        turn_id=message.turn_id,
        result=message.result,
        truncated=message.truncated or None,
        error=message.error,
    )


def _cursor(wanted: params.Wait) -> str:
    """What is waited for, as text that a client hands back; it gives no right to anything."""
    body = wanted.model_dump_json(by_alias=True, exclude_defaults=True, exclude={"cursor", "timeout_ms"}).encode()
    return base64.urlsafe_b64encode(f"{zlib.crc32(body):0{_SUM_CHARS}x}".encode() + body).decode().rstrip("=")


def _resumed(cursor: str, given: params.Wait) -> params.Wait:
    """What the call waited for that returned *cursor*.

    Raises:
        InvalidArgumentError: None did, or *given* names something besides.
    """
    if given.model_dump(exclude_unset=True, exclude_none=True, exclude={"cursor", "timeout_ms"}):
        raise InvalidArgumentError("cursor stands for all that the wait named: give it alone or with timeoutMs.")
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        wanted = params.Wait.model_validate_json(text[_SUM_CHARS:])
    except ValueError:
        wanted = params.Wait()
    if _cursor(wanted) != cursor:
        raise InvalidArgumentError(
            "cursor is not one that a wait returned: hand it back as it was, or name messageIds."
        )
    return wanted
