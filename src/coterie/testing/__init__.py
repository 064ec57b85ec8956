"""Public doubles. The suite that a store must pass is `coterie.testing.store_contract`, which needs pytest."""

from coterie.testing.clock import FakeClock
from coterie.testing.ids import SeededIds
from coterie.testing.probe import ScriptedProbe
from coterie.testing.slots import IdleSlots

__all__ = ["FakeClock", "IdleSlots", "ScriptedProbe", "SeededIds"]
