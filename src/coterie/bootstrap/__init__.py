"""Composes a host from settings; the only place that knows all adapters."""
