"""Awaiting a person's answer to a tool call: sleeps on the feed, parked, reads the truth from the store."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from coterie.app.approve import AskPerson, Withdraw, ask_person, withdraw
from coterie.app.describe import call_request
from coterie.core.errors import StorageError
from coterie.core.ids import TurnId
from coterie.ports.feed import Feed, Listener
from coterie.ports.rows import CallAnswer, CallRequest
from coterie.ports.slots import Slots
from coterie.ports.store import Store

LOOK_S: Final = 5.0
"""The longest sleep without a look at the ledger."""
TRIES_S: Final = (0.2, 1.0, 5.0)
"""Waits before a question is written again that the database did not take, or perhaps did."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who can be asked, sooner or later."""

    store: Store
    feed: Feed
    slots: Slots | None
    """Where the turn is parked; None for a subagent: its turn may work meanwhile, and goes on if it is stopped."""

    async def answer(self, asking: AskPerson) -> CallRequest | None:
        """Ask about one tool call and sleep until it is answered; the turn holds no slot meanwhile.

        There is no time-out: a person may be away for a weekend. A turn that is cancelled leaves its sleep.

        Returns:
            The answered question, or None if the turn has ended.

        Raises:
            StorageError: It could not be written.
        """
        try:
            with self.feed.listen([asking.turn_id]) as listener:
                asked = await self._asked(asking, listener)
                if asked is None or asked.answer is not None:
                    return asked
                async with self._parked(asking.turn_id):
                    return await self._answered(asked, listener)
        except asyncio.CancelledError:
            if self.slots is None:
                with suppress(StorageError):
                    await self.store.run(withdraw, Withdraw(asking.turn_id, asking.call_id), brief=True)
            raise

    def _parked(self, turn_id: TurnId) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self.slots is None else self.slots.parked(turn_id)

    async def _answered(self, asked: CallRequest, listener: Listener) -> CallRequest | None:
        found: CallRequest | None = asked
        while found is not None and found.answer is None:
            # Wake-ups may be lost, so it looks again even if nobody woke it.
            await listener.wait(LOOK_S)
            # A database that is gone for a moment has not answered for the person.
            with suppress(StorageError):
                found = await self.store.read(call_request, asked.id, brief=True)
        return found

    async def _asked(self, asking: AskPerson, listener: Listener) -> CallRequest | None:
        """The question, written once however often that is tried; else one would stay open that nobody waits for."""
        for wait_s in TRIES_S:
            with suppress(StorageError):
                return await self.store.run(ask_person, asking, brief=True)
            await listener.wait(wait_s)
        return await self.store.run(ask_person, asking, brief=True)


def is_allowed(asked: CallRequest | None) -> bool:
    """Whether the answer lets the call run."""
    return asked is not None and asked.answer in (CallAnswer.ONCE, CallAnswer.SESSION)
