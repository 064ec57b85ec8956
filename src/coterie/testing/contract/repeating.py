"""What is asked again with its key writes nothing, whatever it was."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest

from coterie.app.idempotency import Key
from coterie.app.prompt_session import Prompted
from coterie.app.receipt import Receipt
from coterie.core.ids import MessageId, SessionId
from coterie.testing.contract.ground import LedgerContract
from coterie.testing.ledger import Ledger

KEY: Final = Key("person", "k", "f")


@dataclass(frozen=True, slots=True)
class Scene:
    """Two sessions: one runs, the other is idle and has done something."""

    ledger: Ledger
    running: SessionId
    idle: SessionId
    done: MessageId


Verb: TypeAlias = Callable[[Scene], Awaitable[Receipt | Prompted]]

VERBS: Final[dict[str, Verb]] = {
    "prompt": lambda scene: scene.ledger.prompt(scene.idle, key=KEY),
    "prompt that waits": lambda scene: scene.ledger.prompt(scene.running, key=KEY),
    "steer": lambda scene: scene.ledger.steer(scene.running, key=KEY),
    "send": lambda scene: scene.ledger.send(scene.running, scene.idle, key=KEY),
    "send that waits": lambda scene: scene.ledger.send(scene.running, scene.idle, key=KEY, slot=False),
    "spawn": lambda scene: scene.ledger.spawn(scene.running, key=KEY),
    "retry": lambda scene: scene.ledger.retry(scene.done, key=KEY),
}
"""Whatever makes an input or a message."""


class RepeatingContract(LedgerContract):
    """A replay is an answer and nothing else (I14)."""

    @pytest.mark.guarantee("I14")
    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
    async def test_a_replay_writes_nothing(self, ledger: Ledger, verb: Verb) -> None:
        """Not a row, not a budget, not a place: who repeats a request a thousand times has asked for one thing."""
        running, idle = await ledger.sessions("AB")
        await ledger.begin(running)
        task = await ledger.task(running, idle)
        await ledger.settle(task.turn_id, slot=False)
        scene = Scene(ledger, running, idle, task.message.id)
        first = await verb(scene)
        commits = ledger.store.commits

        again = await verb(scene)

        assert (first.replayed, again.replayed) == (False, True)
        assert ledger.store.commits == commits
