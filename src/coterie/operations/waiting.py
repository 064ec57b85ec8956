"""`collaboration.wait`: sleeps on the feed, reads the truth from the store."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from coterie.app import describe
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import MessageId, SessionId
from coterie.core.ledger.message import Message
from coterie.core.ledger.states import SETTLED
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.operations.caller import Agent
from coterie.ports.feed import Listener

OUTSIDE_MS_MAX: Final = 45_000
"""The longest sleep of a caller that is not a native turn: clients give up after a minute."""
OUTSIDE_MS_DEFAULT: Final = 25_000
LOOK_S: Final = 5.0
"""The longest sleep without a look at the ledger."""


async def wait(act: Act, given: params.Wait) -> views.Waited:
    """Sleep until all, or any, of the messages have settled, or until a session is idle.

    A native turn is parked meanwhile: it holds no slot.
    """
    timeout_s = _timeout_s(act, given)
    if given.until == "idle":
        return await _until_idle(act, given, timeout_s)
    if not given.message_ids:
        raise InvalidArgumentError("messageIds is empty: name what to wait for, or a sessionId with until = idle.")
    which = (tuple(dict.fromkeys(MessageId(text) for text in given.message_ids)), act.reader)

    async def look() -> tuple[bool, tuple[Message, ...]]:
        found = await act.host.store.read(describe.messages, which)
        settled = [message.state in SETTLED for message in found]
        return (all(settled) if given.mode == "all" else any(settled)), found

    done, found = await look()
    if not done:
        topics = {id_ for message in found for id_ in (message.source_session_id, message.target_session_id)}
        with act.host.feed.listen(topics) as listener:
            # Registered before it looks again, so that nothing is missed in between.
            done, found = await look()
            async with _parked(act):
                deadline = _Deadline(timeout_s)
                while not done and await deadline.sleep(act, listener):
                    done, found = await look()
    return views.Waited(timed_out=not done, messages=[_state(message) for message in found])


async def _until_idle(act: Act, given: params.Wait, timeout_s: float) -> views.Waited:
    if given.session_id is None or given.message_ids:
        raise InvalidArgumentError("until = idle takes a sessionId and no messageIds.")
    session_id = SessionId(given.session_id)
    if act.reader == session_id:
        raise InvalidArgumentError("A session cannot wait for itself to be idle.")
    with act.host.feed.listen([session_id]) as listener:
        found = await act.host.store.read(describe.status, session_id)
        if found.status in {"running", "queued"}:
            async with _parked(act):
                deadline = _Deadline(timeout_s)
                while found.status in {"running", "queued"} and await deadline.sleep(act, listener):
                    found = await act.host.store.read(describe.status, session_id)
    return views.Waited(timed_out=found.status in {"running", "queued"}, messages=[], status=found.status)


def _timeout_s(act: Act, given: params.Wait) -> float:
    if isinstance(act.caller, Agent):
        most = act.host.limits.wait_max_s
        return min(given.timeout_ms / 1000, most) if given.timeout_ms is not None else most
    return min(OUTSIDE_MS_DEFAULT if given.timeout_ms is None else given.timeout_ms, OUTSIDE_MS_MAX) / 1000


def _parked(act: Act) -> AbstractAsyncContextManager[None]:
    if isinstance(act.caller, Agent):
        return act.host.slots.parked(act.caller.invocation.turn_id)
    return nullcontext()


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


class _Deadline:
    """Time that is left; measured by the loop, so a clock step neither ends nor lengthens a wait."""

    def __init__(self, timeout_s: float) -> None:
        self._left_s = timeout_s

    async def sleep(self, act: Act, listener: Listener) -> bool:
        """Sleep until woken, or for `LOOK_S`; False when the time has run out."""
        before = act.host.clock.monotonic()
        # Wake-ups may be lost, so it looks again even if nobody woke it.
        woken = await listener.wait(max(0.0, min(self._left_s, LOOK_S)))
        self._left_s -= act.host.clock.monotonic() - before
        return woken or self._left_s > 0
