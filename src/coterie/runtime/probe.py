"""Asks a model for one word: what a turn would meet, without a session, a tool or a retry."""

import asyncio
from typing import Final

from coterie.core.codes import Code
from coterie.core.model_ref import Binding
from coterie.core.turn.context import UserPart
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.ports.clock import Clock
from coterie.ports.model_probe import Probed
from coterie.ports.model_provider import ModelProvider, ModelRequest

PATIENCE_S: Final = 45.0
"""A model that has not answered by then is told as one that does not; no client of the host waits a minute."""
_INSTRUCTIONS: Final = "You are being tested for whether you can be reached. Answer with one word."
_PROMPT: Final = UserPart("Say hello.")


def _unseen(text: str) -> None:
    """Nobody looks on while a word arrives."""
    del text


class ProviderProbe:
    """Implements `ports.model_probe.ModelProbe` over the provider that turns use.

    Args:
        provider: Whom to ask.
        clock: What the latency is read from.
        patience_s: How long the whole answer may take.
    """

    def __init__(self, provider: ModelProvider, clock: Clock, *, patience_s: float = PATIENCE_S) -> None:
        self._provider, self._clock, self._patience_s = provider, clock, patience_s

    async def probe(self, binding: Binding) -> Probed:
        """See the port."""
        begun = self._clock.monotonic()
        outcome = await self._ask(ModelRequest(binding, _INSTRUCTIONS, (_PROMPT,), ()))
        return Probed(outcome, round((self._clock.monotonic() - begun) * 1000))

    async def _ask(self, request: ModelRequest) -> Replied | ModelFailed:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._provider.ask(request, _unseen)
        except TimeoutError:
            text = f"{request.binding.key}: no whole answer came within {self._patience_s:g} seconds."
            return ModelFailed(Code.PROVIDER_ERROR, text, transient=True)
