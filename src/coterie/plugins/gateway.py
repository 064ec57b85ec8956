"""A plugin's only way to act on the host: reviewed operations, with the invocation of the tool call that it serves."""

from collections.abc import Mapping
from typing import Any, Final

from coterie.core.errors import PermissionDeniedError
from coterie.operations.caller import Agent
from coterie.operations.catalogue import OPERATIONS
from coterie.operations.perform import Operations
from coterie.ports.tool import Invocation

REVIEWED: Final = frozenset(operation.name for operation in OPERATIONS if operation.agents)
"""What a plugin may call at all; a plugin declares which of these it needs."""


class Gateway:
    """Performs operations for tool calls. The sender is the call's session and cannot be named (ADR 0239).

    Args:
        operations: What the plugin acts through.
        declared: Names of the operations that it needs.
        plugin: How it is called.
        ships: Whether it is part of the host itself: only then may a call of it sleep as long as a native turn.
    """

    def __init__(self, operations: Operations, declared: frozenset[str], plugin: str, *, ships: bool = False) -> None:
        self._operations = operations
        self._plugin, self._ships = plugin, ships
        self._declared = declared & REVIEWED

    async def call(self, invocation: Invocation, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform *operation* as the session of *invocation*; answers its wire form.

        Raises:
            PermissionDeniedError: Not declared, not reviewed, or the invocation has ended.
            HostError: What the operation refused.
        """
        if operation not in self._declared:
            raise PermissionDeniedError(f"The plugin has not declared {operation}.")
        caller = Agent(invocation, self._plugin, self._ships)
        return (await self._operations.perform(caller, operation, params)).wire()
