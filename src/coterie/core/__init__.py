"""The rules of the host: states, bounds and errors. Pure."""
