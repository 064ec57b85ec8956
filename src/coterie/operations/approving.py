"""Awaiting a person's answer to a tool call: sleeps on the feed, parked, reads the truth from the store."""

from dataclasses import dataclass
from typing import Final

from coterie.app.approve import AskPerson, ask_person
from coterie.app.describe import call_request
from coterie.ports.feed import Feed
from coterie.ports.rows import CallAnswer, CallRequest
from coterie.ports.slots import Slots
from coterie.ports.store import Store

LOOK_S: Final = 5.0
"""The longest sleep without a look at the ledger."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who can be asked, sooner or later."""

    store: Store
    feed: Feed
    slots: Slots

    async def answer(self, asking: AskPerson) -> CallRequest | None:
        """Ask about one tool call and sleep until it is answered; the turn holds no slot meanwhile.

        There is no time-out: a person may be away for a weekend. A turn that is cancelled leaves its sleep.

        Returns:
            The answered question, or None if the turn has ended.
        """
        with self.feed.listen([asking.turn_id]) as listener:
            asked = await self.store.run(ask_person, asking, brief=True)
            if asked is None or asked.answer is not None:
                return asked
            async with self.slots.parked(asking.turn_id):
                while asked is not None and asked.answer is None:
                    # Wake-ups may be lost, so it looks again even if nobody woke it.
                    await listener.wait(LOOK_S)
                    asked = await self.store.read(call_request, asked.id, brief=True)
        return asked


def is_allowed(asked: CallRequest | None) -> bool:
    """Whether the answer lets the call run."""
    return asked is not None and asked.answer in (CallAnswer.ONCE, CallAnswer.SESSION)
