"""A probe without a network: every model answers, or none does."""

from coterie.core.model_ref import Binding
from coterie.core.turn.items import Reply, Usage
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.ports.model_probe import Probed


class ScriptedProbe:
    """Implements `ports.model_probe.ModelProbe`."""

    def __init__(self) -> None:
        self.outcome: Replied | ModelFailed = Replied(Reply("Hello.", usage=Usage(11, 2, 150)))
        """What the next one comes to."""
        self.probed: list[str] = []
        """Keys of the models that were asked, in order."""

    async def probe(self, binding: Binding) -> Probed:
        """See the port."""
        self.probed.append(binding.key)
        return Probed(self.outcome, 42)
