"""The hooks of a plugin (pluggy); a plugin is a module or object named by an entry point of group `coterie.plugins`."""

from collections.abc import Sequence
from typing import Final

import pluggy

from coterie.plugins.gateway import Gateway
from coterie.ports.tool import Tool

GROUP: Final = "coterie.plugins"

hookspec: Final = pluggy.HookspecMarker("coterie")
hookimpl: Final = pluggy.HookimplMarker("coterie")


class Hooks:
    """What the host asks of plugins."""

    @hookspec
    def coterie_tools(self, gateway: Gateway) -> Sequence[Tool]:  # pyright: ignore[reportReturnType]  # a specification has no body
        """Return the tools that the plugin offers to agents.

        Args:
            gateway: The plugin's only way to act on the host.
        """
