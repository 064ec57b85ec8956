"""Finds plugins by entry point and collects what they offer."""

from importlib.metadata import entry_points

import pluggy

from coterie.core.errors import ConfigInvalidError
from coterie.operations.perform import Operations
from coterie.plugins.gateway import Gateway
from coterie.plugins.hooks import GROUP, Hooks
from coterie.ports.tool import Tool


def load_tools(operations: Operations) -> dict[str, Tool]:
    """The tools of all installed plugins by name.

    Raises:
        ConfigInvalidError: Two plugins offer a tool of the same name.
    """
    tools: dict[str, Tool] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        plugin = entry.load()
        manager = pluggy.PluginManager("coterie")
        manager.add_hookspecs(Hooks)
        manager.register(plugin, entry.name)
        gateway = Gateway(operations, frozenset(getattr(plugin, "OPERATIONS", ())))
        for offered in manager.hook.coterie_tools(gateway=gateway):
            for tool in offered:
                if tool.spec.name in tools:
                    raise ConfigInvalidError(f"The plugin {entry.name} offers a second tool {tool.spec.name!r}.")
                tools[tool.spec.name] = tool
    return tools
