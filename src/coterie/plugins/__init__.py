"""Plugins: hooks, the loader, and the plugins that ship with the host."""
