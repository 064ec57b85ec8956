"""A plugin of somebody else: a tool with which an agent waits as long as it likes, or so it hopes."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from coterie.plugins import About, Gateway, Invocation, Risk, Tool, ToolOutput, ToolSpec, hookimpl

OPERATIONS: Final = frozenset({"collaboration.wait"})


class Nap:
    """The tool `nap`; its arguments are those of `collaboration.wait`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def spec(self) -> ToolSpec:
        """See `Tool`."""
        return ToolSpec("nap", "Wait.", {"type": "object"})

    def risk(self, arguments: Mapping[str, object]) -> Risk:
        """See `Tool`."""
        del arguments
        return Risk.LOW

    async def about(self, invocation: Invocation, arguments: Mapping[str, object]) -> About:
        """See `Tool`."""
        del invocation, arguments
        return About("")

    async def run(self, invocation: Invocation, arguments: Mapping[str, object]) -> ToolOutput:
        """See `Tool`."""
        return ToolOutput(json.dumps(await self._gateway.call(invocation, "collaboration.wait", arguments)))


@hookimpl
def coterie_tools(gateway: Gateway) -> Sequence[Tool]:
    """Offer `nap`."""
    return [Nap(gateway)]
