"""Who may wait in a queue, what starts next, and what may start at once.

Pure module: counts are given.
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from coterie.core.codes import Code
from coterie.core.refusal import Refusal

STREAK_MAX: Final = 3
"""Human turns in a row after which one session message goes first."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Places:
    """What is taken of one session's queue."""

    prompts: int
    """A person's waiting inputs, steering included."""
    messages: int
    """Waiting tasks and messages."""
    completions: int
    running: bool
    """Whether a turn runs."""

    @property
    def waiting(self) -> int:
        """Everything in the queue."""
        return self.prompts + self.messages + self.completions


def admit_prompt(places: Places, prompts_max: int) -> Refusal | None:
    """Why a person's input may not wait."""
    if places.prompts < prompts_max:
        return None
    text = (
        f"{places.prompts} prompts wait in this session already (prompts_max). Wait for a turn to end, or cancel one."
    )
    return Refusal(Code.QUEUE_FULL, text, limit="prompts_max", value=prompts_max)


def admit_message(places: Places, inbox_max: int) -> Refusal | None:
    """Why a task or message may not wait; completions always may."""
    if places.messages < inbox_max:
        return None
    text = f"{places.messages} messages wait for this session already (inbox_max). Send again when one has settled."
    return Refusal(Code.AGENT_BUSY, text, limit="inbox_max", value=inbox_max)


def may_bind(places: Places, *, held: bool, slot: bool) -> bool:
    """Whether an input may start in the very transaction that accepts it."""
    return slot and not held and not places.running and places.waiting == 0


@dataclass(frozen=True, slots=True)
class Heads(Generic[T]):
    """The first of each part of a session's queue; inputs that wait for a person are passed by."""

    promoted: T | None
    """What a person has moved to the front."""
    prompt: T | None
    message: T | None


def head(heads: Heads[T], streak: int) -> T | None:
    """Which input of a session starts next.

    What a person promoted comes first, then people before sessions; but after `STREAK_MAX` human turns in a row a
    waiting message gets its turn, so a busy person cannot starve the sessions that wait for an answer.
    """
    if heads.promoted is not None:
        return heads.promoted
    prompt, message = heads.prompt, heads.message
    if prompt is None or (message is not None and streak >= STREAK_MAX):
        return message if message is not None else prompt
    return prompt


def admit_worker(active: int, workers_max: int, limit: str) -> Refusal | None:
    """Why a session may not spawn one more worker; idle workers are not counted.

    Args:
        active: Workers with a running turn or a queue, of the same session or of the same plugin.
        workers_max: How many there may be.
        limit: The setting's name.
    """
    if active < workers_max:
        return None
    text = (
        f"{active} workers have work ({limit} is {workers_max}). "
        "Wait for one to finish, or send to a worker that you have."
    )
    return Refusal(Code.LIMIT_EXCEEDED, text, limit=limit, value=workers_max)
