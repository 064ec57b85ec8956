"""Coterie: a host for agent sessions that work together."""
