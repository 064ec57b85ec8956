"""Finds plugins by entry point and collects what they offer."""

from collections.abc import Mapping
from importlib.metadata import entry_points

import pluggy

from coterie.core.errors import ConfigInvalidError
from coterie.operations.perform import Operations
from coterie.plugins.gateway import Gateway
from coterie.plugins.hooks import GROUP, Hooks
from coterie.ports.tool import Tool


def load_tools(operations: Operations, taken: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools of all installed plugins by name.

    Args:
        operations: What plugins act through.
        taken: The host's own tools, whose names no plugin may take.

    Raises:
        ConfigInvalidError: A plugin cannot be loaded, or offers a tool whose name is taken.
    """
    tools: dict[str, Tool] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            plugin = entry.load()
        except ImportError as error:
            raise ConfigInvalidError(
                f"The plugin {entry.name} ({entry.value}) cannot be loaded: {error}. Repair it or uninstall it."
            ) from error
        manager = pluggy.PluginManager("coterie")
        manager.add_hookspecs(Hooks)
        manager.register(plugin, entry.name)
        declared = frozenset(getattr(plugin, "OPERATIONS", ()))
        # Anybody may register any name; what counts is where the code lies.
        ships = entry.module.startswith(f"{__package__}.")
        gateway = Gateway(operations, declared, entry.name, ships=ships)
        for offered in manager.hook.coterie_tools(gateway=gateway):
            for tool in offered:
                if tool.spec.name in tools or tool.spec.name in taken:
                    raise ConfigInvalidError(
                        f"The plugin {entry.name} offers a second tool {tool.spec.name!r}. Uninstall one of the two."
                    )
                tools[tool.spec.name] = tool
    return tools
