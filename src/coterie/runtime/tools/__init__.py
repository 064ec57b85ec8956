"""The tools that ship with the native backend."""
