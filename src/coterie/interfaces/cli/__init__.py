"""The terminal: dials the host."""
