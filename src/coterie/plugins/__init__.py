"""Plugins: what an author needs, and the plugins that ship with the host.

A plugin is a module that an entry point of group `coterie.plugins` names. It declares the operations that it needs in
`OPERATIONS` and offers tools through the hook `coterie_tools`; `session_orchestrator` is the example to read.
"""

from coterie.core.permission import Risk
from coterie.plugins.gateway import Gateway
from coterie.plugins.hooks import hookimpl
from coterie.ports.model_provider import ToolSpec
from coterie.ports.tool import About, Invocation, Tool, ToolOutput

__all__ = ["About", "Gateway", "Invocation", "Risk", "Tool", "ToolOutput", "ToolSpec", "hookimpl"]
