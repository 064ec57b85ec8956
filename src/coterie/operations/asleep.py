"""The waits of turns that sleep, in memory: a ledger in SQLite has one host."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from coterie.core.errors import NotFoundError, RefusedError
from coterie.core.ids import SessionId
from coterie.core.ledger.waits import Wait, admit_wait


class Sleep:
    """One wait of a turn, and how to learn whom it is still for.

    Args:
        wait: Who waits, and for whom at its beginning.
        targets: Reads in the ledger whom it is for by now: nobody once it has what it waits for.
    """

    def __init__(self, wait: Wait, targets: Callable[[], Awaitable[tuple[SessionId, ...]]]) -> None:
        self.wait = wait
        self._targets = targets

    async def look(self) -> None:
        """Let go of those who are waited for no more.

        Looks may overtake each other, so nobody is taken in again: only the sleeper does that (`Waits.renew`).
        """
        try:
            found = await self._targets()
        except NotFoundError:
            # What it waits for is gone: that is for the sleeper to hear, and ends its wait.
            found = ()
        self.wait = replace(self.wait, targets=tuple(one for one in self.wait.targets if one in found))


class Waits:
    """Knows who sleeps for whom, and lets no ring of them close."""

    def __init__(self) -> None:
        self._sleeps: list[Sleep] = []

    async def begin(self, sleep: Sleep) -> None:
        """Count *sleep* from now on.

        Raises:
            RefusedError: `WAIT_CYCLE`, it could never end.
        """
        while (refusal := admit_wait([one.wait for one in self._sleeps], sleep.wait)) is not None:
            # Wake-ups may be late or lost: what all wait for is read again before it counts against anybody.
            known = (sleep, *self._sleeps)
            before = [one.wait for one in known]
            for one in known:
                await one.look()
            if [one.wait for one in known] == before:
                raise RefusedError(refusal)
        # Nothing awaits between question and entry, so of two that begin at once the second meets the first.
        self._sleeps.append(sleep)

    async def renew(self, sleep: Sleep, targets: tuple[SessionId, ...]) -> None:
        """Count *sleep* for *targets*, whom a look of its own has found, before it sleeps on.

        A session may be idle when others look and busy again when the sleeper does. Who was let go meanwhile is taken
        in like somebody new, so of a ring that this would close the sleeper is the last, though it began first.

        Raises:
            RefusedError: `WAIT_CYCLE`, it could never end.
        """
        if set(targets) <= set(sleep.wait.targets):
            return
        self.end(sleep)
        sleep.wait = replace(sleep.wait, targets=targets)
        await self.begin(sleep)

    def end(self, sleep: Sleep) -> None:
        """Count *sleep* no more, if it was counted."""
        self._sleeps = [one for one in self._sleeps if one is not sleep]
